"""What moved when a change alert begins: the app, the judge, the traffic or the model.

The judge is asked again about frozen answers. Questions, models, versions and answers of the time since the change are
compared with those before. What could not be checked is said, so that nobody takes silence for an all-clear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from rageval_spec.data.alerts import Moved
from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError
from rageval_spec.judging.language import find_language
from rageval_spec.libraries import Floats, np
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.looks.windows import Span
from rageval_spec.monitoring.tables import PANE, choose_minutes
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.pipeline.execution.anchor_judging import JudgeDrift
from rageval_spec.plugin import EmbeddingModel
from rageval_spec.statistics.drift_causes import Evidence, attribute_change
from rageval_spec.statistics.intervals import Resampling
from rageval_spec.statistics.traffic_drift import (
    SAMPLE,
    Shift,
    compare_categories,
    compare_embeddings,
    compare_lengths,
    embed_words,
    find_new_kinds,
    find_new_words,
)
from rageval_spec.statistics.two_windows import compare_means
from rageval_spec.wording import count_noun, format_p_value, format_percent, list_names

AskAnchors = Callable[[str], JudgeDrift | None]
"""Asks the judge of a metric about frozen answers; raises `RagevalError` if that is not possible."""
_CHECKED: Mapping[str, tuple[str, Moved | None]] = {
    "anchors": ("the judge", "judge"),
    "traffic": ("the questions", "traffic"),
    "lengths": ("the lengths of answers", None),
    "model_version": ("the model", "model"),
    "app_version": ("the version of the app", "app"),
}
"""What people call each piece of evidence, and the part that it stands for."""
_LOOKED_AT = 25
"""How many times as many judged traces are looked at as the sample has."""
_SURE = 0.01
_EXAMPLES = 3
_LONGEST = 80
_FEWEST = 20
_SETTINGS = Resampling(permutations=999)


class Explanation(NamedTuple):
    """What moved, with the reasons; what could not be checked, and why; and what was checked and is as before."""

    moved: Mapping[Moved, str]
    unknown: Sequence[str]
    same: Sequence[str] = ()

    def tell(self) -> str:
        """What follows the text of an alert: `. What moved: traffic. As before: the model. Not checked: the judge`."""
        same = f". As before: {list_names(self.same)}" if self.same else ""
        unchecked = f". Not checked: {'; '.join(self.unknown)}" if self.unknown else ""
        return f". What moved: {', '.join(self.moved) or 'not known'}{same}{unchecked}"


@dataclass(frozen=True)
class ChangeExplainer:
    """Finds what moved.

    Attributes:
        embedding: the spec's embedding model; None without one.
        ask_anchors: None without anchors.
    """

    ledger: Ledger
    embedding: EmbeddingModel[Any] | None = None
    ask_anchors: AskAnchors | None = None

    def explain(self, series: Series, before: Span, now: Span) -> Explanation:
        """Compare the time since a change with that before it, and ask the judge again."""
        sides = [_read_sample(self.ledger, series.id, span) for span in (before, now)]
        look = _Look(sides[0], sides[1], self.embedding)
        reasons, unknown = look.reasons, look.unknown
        kept = dict(zip(("before the change", "after it began"), (len(side.traces) for side in sides), strict=True))
        if few := [f"{count_noun(count, 'trace')} from {when}" for when, count in kept.items() if count < _FEWEST]:
            told = f"the texts of only {list_names(few)} are kept, and {_FEWEST} are needed"
            unknown.append(f"questions, models and answers, because {told}")
            seen = Evidence()
        else:
            seen = look.collect()
        seen = seen._replace(anchors=self._ask(series, reasons, unknown))
        moved = attribute_change(seen)
        has_judge = series.metric is not None and bool(series.metric.judges())
        same = [
            told
            for name, (told, part) in _CHECKED.items()
            if getattr(seen, name) is False and part not in moved and (has_judge or part != "judge")
        ]
        return Explanation({part: reasons.get(part, why) for part, why in moved.items()}, unknown, same)

    def _ask(self, series: Series, reasons: dict[Moved, str], unknown: list[str]) -> bool | None:
        """Whether the judge moved; None if it could not be asked. A metric without a judge has none that could."""
        if series.metric is None or not series.metric.judges():
            return False
        if self.ask_anchors is None:
            unknown.append("the judge, because the spec has no 'anchors:' (a file of 'calibrate --freeze')")
            return None
        try:
            found = self.ask_anchors(series.name)
        except (RagevalError, OSError) as error:
            unknown.append(f"the judge, because it could not be asked again: {error}")
            return None
        if found is None:
            unknown.append("the judge, because it gave a value to fewer than half of the anchors")
            return None
        flips = found.flips
        if found.has_drifted:
            differs = "" if found.difference is None else f"; the anchors were {found.difference}"
            said = f"{flips.moved} of {count_noun(flips.rows, 'frozen answer')} have another value"
            reasons["judge"] = f"{said}, {flips.up + flips.down} another decision{differs}"
        return found.has_drifted


class _Side(NamedTuple):
    """Some traces of one time, with their values and weights."""

    traces: Sequence[Trace]
    values: Floats
    weights: Floats

    @property
    def questions(self) -> list[str]:
        return [one.question for one in self.traces]


@dataclass
class _Look:
    """The comparison of two times: which questions are of a new kind, what moved, and what could not be compared."""

    before: _Side
    now: _Side
    embedding: EmbeddingModel[Any] | None
    new: Collection[int] = ()
    reasons: dict[Moved, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    by_words: bool = False

    def collect(self) -> Evidence:
        answers = (
            [float(len(one.answer)) for one in side.traces if one.answer is not None]
            for side in (self.before, self.now)
        )
        return Evidence(
            traffic=self._compare_traffic(),
            comparable=self._compare_comparable(),
            lengths=_is_sure(compare_lengths(*answers)),
            model_version=self._compare_named("model", "model"),
            app_version=self._compare_named("version", "app"),
        )

    @cached_property
    def _vectors(self) -> Sequence[Any]:
        """The questions of both sides by their meaning, or else by their words; `unknown` then says why."""
        sides = self.before.questions, self.now.questions
        if self.embedding is None:
            why = "the spec has no embedding model"
        else:
            try:
                self.embedding.prepare()
                return [self.embedding.embed(one).vectors for one in sides]
            except RagevalError as error:
                why = f"the embedding model failed: {error}"
        self.by_words = True
        self.unknown.append(f"the meaning of questions (their words were compared instead), because {why}")
        return embed_words(*sides)

    def _compare_traffic(self) -> bool:
        """Whether questions have another distribution."""
        tests = list(self._test_traffic())
        found = [(name, one) for name, one in tests if one is not None and one.p_value < _SURE / len(tests)]
        if self.by_words:
            self.new = find_new_words(self.before.questions, self.now.questions)
        elif (kinds := find_new_kinds(*self._vectors)) is not None:
            self.new = kinds.places
        if not found and not self.new:
            return False
        told = [f"{name} of questions changed ({format_p_value(one.p_value)})" for name, one in found]
        if self.new:
            asked = dict.fromkeys(self.now.traces[place].question for place in self.new)
            some = "; ".join(make_visible(one[:_LONGEST]) for one in [*asked][:_EXAMPLES])
            count = count_noun(len(self.new), "question")
            new = "have new words" if self.by_words else "are of a new kind"
            told.append(f"{count} of {len(self.now.traces)} {new}: {some}")
        self.reasons["traffic"] = "; ".join(told)
        return True

    def _test_traffic(self) -> Iterator[tuple[str, Shift | None]]:
        sides = self.before.questions, self.now.questions
        meaning = compare_embeddings(*self._vectors)
        yield "the words" if self.by_words else "the meaning", meaning
        yield "the languages", compare_categories(*([find_language(text) for text in side] for side in sides))
        yield "the lengths", compare_lengths(*([len(text.split()) for text in side] for side in sides))

    def _compare_named(self, column: str, part: Moved) -> bool | None:
        """Whether traces name another model or version; None if hardly any names one."""
        named = [[getattr(one, column) for one in side.traces] for side in (self.before, self.now)]
        if any(not any(side) for side in named):
            self.unknown.append(
                f"the {'model' if part == 'model' else 'version of the app'}, which the traces do not name"
            )
            return None
        shift = compare_categories(*([one or "" for one in side] for side in named))
        if shift is None or shift.p_value >= _SURE:
            return False
        told = [
            f"{make_visible(str(name)[:_LONGEST]) or 'traces without one'} {format_percent(abs(change))} "
            f"{'more' if change > 0 else 'fewer'}"
            for name, change in shift.moved[:_EXAMPLES]
        ]
        self.reasons[part] = f"traces name another {column}: {', '.join(told)}"
        return True

    def _compare_comparable(self) -> bool | None:
        """Whether scores changed on questions of kinds that were there before; None if that is not known."""
        kept = np.setdiff1d(np.arange(len(self.now.traces)), [*self.new])
        now, weights = self.now.values[kept], self.now.weights[kept]
        found = compare_means(self.before.values, now, self.before.weights, weights, settings=_SETTINGS)
        return None if found is None or found.p_value is None else found.p_value < _SURE


def _is_sure(shift: Shift | None) -> bool | None:
    return None if shift is None else shift.p_value < _SURE


def _read_sample(ledger: Ledger, series: int, span: Span) -> _Side:
    """Some judged traces of a stretch of time whose texts are kept, with values and weights; always the same.

    Of very many traces, those of every so many minutes are looked at. The ids choose among them: they say nothing of
    what was asked, so questions that repeat are as frequent in the sample as in the traffic.
    """
    ((count,),) = ledger.connection.execute(
        "SELECT SUM(judged) FROM rageval_panes WHERE series = ? AND pane > ? AND pane < ?",
        (series, span.start - PANE, span.end),
    )
    chosen = choose_minutes("j.started", count or 0, _LOOKED_AT * SAMPLE)
    rows = ledger.connection.execute(
        "SELECT j.trace_id, j.value, j.weight FROM rageval_judgements j JOIN rageval_traces t "
        "ON t.trace_id = j.trace_id AND t.monitor = ? WHERE j.series = ? AND j.state = 'judged' "
        f"AND j.started >= ? AND j.started < ? AND t.content IS NOT NULL AND {chosen}",
        (ledger.monitor, series, *span),
    )
    rows = sorted(rows, key=lambda row: hashlib.sha256(row[0].encode("utf-8", "surrogatepass")).digest())[:SAMPLE]
    kept = ledger.read_traces([row[0] for row in rows])
    rows = [row for row in rows if row[0] in kept]
    numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2)
    return _Side([kept[row[0]].trace for row in rows], numbers[:, 0], numbers[:, 1])
