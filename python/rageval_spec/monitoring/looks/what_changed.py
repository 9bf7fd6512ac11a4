"""What moved when a change alert begins: the app, the judge, the traffic or the model.

The judge is asked again about frozen answers. Questions, models, versions and answers of the time since the change are
compared with those before. What could not be checked is said, so that nobody takes silence for an all-clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from rageval_spec.data.alerts import Moved
from rageval_spec.data.traces import Trace
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError
from rageval_spec.judging.language import find_language
from rageval_spec.libraries import Floats, np
from rageval_spec.monitoring.ledger import Ledger, unpack
from rageval_spec.monitoring.looks.windows import Span
from rageval_spec.monitoring.tables import PANE, space_minutes
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
_CHECKED = {
    "anchors": "the judge",
    "traffic": "the questions",
    "lengths": "the lengths of answers",
    "model_version": "the model",
    "app_version": "the version of the app",
}
"""What people call each piece of evidence."""
_LOOKED_AT = 25
"""How many times as many judged traces are looked at as the sample has."""
_SURE = 0.01
_EXAMPLES = 3
_LONGEST = 80
_FEWEST = 20


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
        sides = [_Side.of(_read_sample(self.ledger, series.id, span)) for span in (before, now)]
        look = _Look(sides[0], sides[1], self.embedding)
        reasons: dict[Moved, str] = {}
        unknown: list[str] = []
        if min(len(side.traces) for side in sides) < _FEWEST:
            unknown.append("questions, models and answers, because too few texts are kept")
            seen = Evidence()
        else:
            seen = look.collect(reasons, unknown)
        seen = seen._replace(anchors=self._ask(series, reasons, unknown))
        moved = attribute_change(seen)
        same = [part for name, part in _CHECKED.items() if getattr(seen, name) is False]
        if series.metric is None or not series.metric.judges():
            same = [part for part in same if part != _CHECKED["anchors"]]
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


@dataclass(frozen=True)
class _Side:
    """Some traces of one time, with their values and weights."""

    traces: Sequence[Trace]
    values: Floats
    weights: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[Trace, float, float]]) -> _Side:
        numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2)
        return cls([row[0] for row in rows], numbers[:, 0], numbers[:, 1])

    @property
    def questions(self) -> list[str]:
        return [one.question for one in self.traces]

    def keep(self, places: Sequence[int]) -> _Side:
        return _Side([self.traces[place] for place in places], self.values[places], self.weights[places])


@dataclass(frozen=True)
class _Look:
    """The comparison of two times."""

    before: _Side
    now: _Side
    embedding: EmbeddingModel[Any] | None
    new: list[int] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def collect(self, reasons: dict[Moved, str], unknown: list[str]) -> Evidence:
        traffic = self._compare_traffic(reasons, unknown)
        models = self._compare_named("model", "model", reasons, unknown)
        versions = self._compare_named("version", "app", reasons, unknown)
        lengths = _is_sure(compare_lengths(*(_measure_answers(one) for one in (self.before, self.now))))
        return Evidence(None, traffic, self._compare_comparable(), lengths, models, versions)

    @cached_property
    def _vectors(self) -> Sequence[Any]:
        """The questions of both sides by their meaning, or else by their words; `unread` then says why."""
        sides = self.before.questions, self.now.questions
        if self.embedding is None:
            why = "the spec has no embedding model"
        else:
            try:
                self.embedding.prepare()
                return [self.embedding.embed(one).vectors for one in sides]
            except RagevalError as error:
                why = f"the embedding model failed: {error}"
        self.unread.append(f"the meaning of questions (their words were compared instead), because {why}")
        return embed_words(*sides)

    def _compare_traffic(self, reasons: dict[Moved, str], unknown: list[str]) -> bool:
        """Whether questions have another distribution."""
        tests = list(self._test_traffic())
        unknown.extend(self.unread)
        found = [(name, one) for name, one in tests if one is not None and one.p_value < _SURE / len(tests)]
        if self.unread:
            self.new.extend(find_new_words(self.before.questions, self.now.questions))
        else:
            kinds = find_new_kinds(*self._vectors)
            self.new.extend(() if kinds is None else kinds.places)
        if not found and not self.new:
            return False
        told = [f"{name} of questions changed ({format_p_value(one.p_value)})" for name, one in found]
        if self.new:
            some = "; ".join(make_visible(self.now.traces[place].question[:_LONGEST]) for place in self.new[:_EXAMPLES])
            count = count_noun(len(self.new), "question")
            told.append(
                f"{count} of {len(self.now.traces)} {'have new words' if self.unread else 'are of a new kind'}: {some}"
            )
        reasons["traffic"] = "; ".join(told)
        return True

    def _test_traffic(self) -> Iterator[tuple[str, Shift | None]]:
        sides = self.before.questions, self.now.questions
        meaning = compare_embeddings(*self._vectors)
        yield "the words" if self.unread else "the meaning", meaning
        yield "the languages", compare_categories(*([find_language(text) for text in side] for side in sides))
        yield "the lengths", compare_lengths(*([len(text.split()) for text in side] for side in sides))

    def _compare_named(self, column: str, part: Moved, reasons: dict[Moved, str], unknown: list[str]) -> bool | None:
        """Whether traces name another model or version; None if hardly any names one."""
        named = [[getattr(one, column) for one in side.traces] for side in (self.before, self.now)]
        if any(not any(side) for side in named):
            unknown.append(f"the {'model' if part == 'model' else 'version of the app'}, which the traces do not name")
            return None
        shift = compare_categories(*([one or "" for one in side] for side in named))
        if shift is None or shift.p_value >= _SURE:
            return False
        told = [
            f"{make_visible(str(name)[:_LONGEST]) or 'traces without one'} {format_percent(abs(change))} "
            f"{'more' if change > 0 else 'fewer'}"
            for name, change in shift.moved[:_EXAMPLES]
        ]
        reasons[part] = f"traces name another {column}: {', '.join(told)}"
        return True

    def _compare_comparable(self) -> bool | None:
        """Whether scores changed on questions of kinds that were there before; None if that is not known."""
        kept = self.now.keep([place for place in range(len(self.now.traces)) if place not in set(self.new)])
        found = compare_means(
            self.before.values, kept.values, self.before.weights, kept.weights, settings=Resampling(permutations=999)
        )
        return None if found is None or found.p_value is None else found.p_value < _SURE


def _measure_answers(side: _Side) -> list[float]:
    return [float(len(one.answer)) for one in side.traces if one.answer is not None]


def _is_sure(shift: Shift | None) -> bool | None:
    return None if shift is None else shift.p_value < _SURE


def _read_sample(ledger: Ledger, series: int, span: Span) -> list[tuple[Trace, float, float]]:
    """Some judged traces of a stretch of time whose texts are kept, with values and weights; always the same.

    Of very many traces, those of every so many minutes are looked at.
    """
    ((count,),) = ledger.connection.execute(
        "SELECT SUM(judged) FROM rageval_panes WHERE series = ? AND pane > ? AND pane < ?",
        (series, span.start - PANE, span.end),
    )
    part = space_minutes(count or 0, _LOOKED_AT * SAMPLE)
    rows = ledger.connection.execute(
        "SELECT t.content, j.value, j.weight FROM rageval_judgements j JOIN rageval_traces t "
        "ON t.trace_id = j.trace_id AND t.monitor = ? WHERE j.series = ? AND j.state = 'judged' "
        "AND j.started >= ? AND j.started < ? AND t.content IS NOT NULL "
        f"AND CAST(j.started / {PANE} AS BIGINT) / {part} * {part} = CAST(j.started / {PANE} AS BIGINT) "
        "ORDER BY t.digest, j.trace_id LIMIT ?",
        (ledger.monitor, series, *span, SAMPLE),
    )
    return [(unpack(content), value, weight) for content, value, weight in rows]
