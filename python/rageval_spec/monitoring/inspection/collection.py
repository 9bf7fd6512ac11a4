"""From production to a test set: which answers people should look at, as rows that a file of earlier ones grows by.

A trace is collected because a value of it is worse than a bound of a gate or an alert (`failing`), judges disagree with
one another or with what users said (`disagreed`), a user disliked it (`disliked`), a person judged it (`labelled`), or
its question is of a kind that earlier questions do not have (`new_kind`). The reasons take turns, so none crowds the
others out, each with its worst answers first.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.monitoring.inspection.redaction import Redaction
from rageval_spec.monitoring.ledger import Ledger, unpack
from rageval_spec.monitoring.traces.sampling import is_disliked
from rageval_spec.monitoring.traces.trace_judging import FEEDBACK, Series
from rageval_spec.plugin import AnswerMetric, EmbeddingModel
from rageval_spec.reading.formats.json_files import json_objects
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.statistics.traffic_drift import find_new_kinds, find_new_words
from rageval_spec.store.disk import write_or_explain
from rageval_spec.wording import format_number, list_names

VERSION, WHY, DETAILS = "dataset_version", "why", "why_in_detail"
"""The keys of a row that say with which version it came, and why."""
APART = 0.5
"""Two judges disagree if their values, from 0 to 1, are at least so far apart."""
_MOST = 10_000
"""How many answers of one reason are considered, besides as many as the file has."""
_QUESTIONS = 2_000
"""How many questions of each side are compared to find new kinds."""
_FEWEST = 20
"""How many earlier questions show which words are usual."""
_PAGE = 500


class Reason(NamedTuple):
    """Why a trace should be collected, in one word and in full."""

    trace_id: str
    word: str
    told: str


@dataclass(frozen=True)
class TestSet:
    """The rows of a file that grows. `content` is the file as it is, `version` the newest one in it; 0 for no file."""

    content: bytes = b""
    rows: int = 0
    version: int = 0
    ids: Collection[str] = ()
    questions: Collection[str] = ()

    @classmethod
    def read(cls, path: Path) -> TestSet:
        """Read the file; an empty set if there is none. Raises `DataError` if it does not hold rows with questions."""
        if not path.exists() or not (content := path.read_bytes()).strip():
            return cls()
        rows = [row for _, row in json_objects(path)]
        for number, row in enumerate(rows, 1):
            if not isinstance(row.get("question"), str):
                raise DataError(f"{path}: row {number} has no 'question'; name a file of questions, or a new one")
        version = max((row[VERSION] for row in rows if isinstance(row.get(VERSION), int)), default=0)
        content += b"" if content.endswith(b"\n") else b"\n"
        return cls(content, len(rows), version, {str(row.get("id")) for row in rows}, set(map(_identify, rows)))


def _identify(row: Mapping[str, Any]) -> str:
    """What two rows have in common that ask the same: the question, and the conversation before it."""
    folded = " ".join(row["question"].split()).casefold()
    return json.dumps([folded, row.get("messages")], sort_keys=True)


@dataclass
class Collected:
    """What was collected.

    Attributes:
        found: how many traces each reason concerns.
        repeated: how many of those that were considered ask what the file or an earlier row asks.
        removed: how many have no text any more.
        remarks: what could not be looked for, in sentences.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    removed: int = 0
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Collector:
    """Chooses traces of a monitor.

    Attributes:
        labelled: who judged answers, by the ids of the traces.
        embedding: reads the meaning of questions; None if the spec has no such model.
    """

    spec: Spec
    ledger: Ledger
    metrics: Mapping[str, AnswerMetric[Any]]
    labelled: Mapping[str, str] = field(default_factory=dict)
    embedding: EmbeddingModel[Any] | None = None

    def collect(self, known: TestSet, since: float, most: int) -> Collected:
        """At most so many rows that `known` lacks, of traces that began since a time."""
        made = Collected()
        reasons = [*self._list_reasons(since, known, made)]
        by_trace: dict[str, list[Reason]] = {}
        for reason in (one for some in reasons for one in some):
            by_trace.setdefault(reason.trace_id, []).append(reason)
        for why in by_trace.values():
            made.found.update({one.word for one in why})
        asked, redaction = set(known.questions), Redaction(self.spec.redact)
        if lost := sorted({"answer", "contexts", "reference"}.intersection(self.spec.redact)):
            made.remarks.append(f"the rows have no {list_names(lost)}, because 'redact:' leaves that out")
        for trace_id in dict.fromkeys(one.trace_id for turn in zip_longest(*reasons) for one in turn if one):
            if len(made.rows) >= most:
                break
            if trace_id in known.ids:
                made.repeated += 1
            elif trace_id not in (kept := self.ledger.read_traces([trace_id])):
                made.removed += 1
            elif (question := _identify(kept[trace_id].trace.to_row())) in asked:
                made.repeated += 1
            else:
                asked.add(question)
                why = by_trace[trace_id]
                words, told = dict.fromkeys(one.word for one in why), [one.told for one in why]
                new = {VERSION: known.version + 1, WHY: " + ".join(words), DETAILS: told}
                made.rows.append(redaction.make_row(leave_out_user(kept[trace_id].trace)) | new)
        return made

    def _list_reasons(self, since: float, known: TestSet, made: Collected) -> Iterator[list[Reason]]:
        """The traces of each reason, the worst first."""
        ids = self.ledger.current_series()
        most = _MOST + known.rows
        percentiles = [name for name in ids if Series(0, name, self.metrics.get(name)).percent is not None]
        if shown := [name for name in percentiles if list_bounds(self.spec, name, self.metrics.get(name))]:
            told = "its bounds are of a percentile, so no single answer fails them"
            made.remarks.append(f"{list_names(shown)}: no answer was collected as failing: {told}")
        yield [
            one for name in ids if name not in percentiles for one in self._find_failing(name, ids[name], since, most)
        ]
        yield [one for pair in self._list_pairs(ids, since) for one in self._find_apart(pair, ids, since, most)]
        liked, labelled, questions = self._read_texts(since)
        yield from (liked, labelled)
        yield [*self._find_new_kinds(questions, since, known, made)]

    def _find_failing(self, name: str, series: int, since: float, most: int) -> Iterator[Reason]:
        for side, bound in list_bounds(self.spec, name, self.metrics.get(name)).items():
            sign, order = ("<", "ASC") if side == "below" else (">", "DESC")
            rows = self._query(
                f"{_VALUES} AND value {sign} ? ORDER BY value {order}, trace_id LIMIT ?", series, since, bound, most
            )
            for trace_id, value in rows:
                told = f"{name} is {format_number(value)}, {side} {format_number(bound)}"
                yield Reason(trace_id, "failing", told)

    def _list_pairs(self, ids: Mapping[str, int], since: float) -> Iterator[tuple[str, str]]:
        """Judged metrics of one kind, and those of answers with what users say on a scale such as that of thumbs."""
        judged = [name for name, one in self.metrics.items() if name in ids and one.judges() and one.bounds == (0, 1)]
        yield from ((a, b) for a, b in combinations(judged, 2) if self.metrics[a].node.use == self.metrics[b].node.use)
        for name in ids:
            ends = f"SELECT MIN(value), MAX(value) FROM ({_VALUES}) AS found"
            if name.startswith(FEEDBACK):
                ((low, high),) = self._query(ends, ids[name], since)
                of_answers = [one for one in judged if "answer" in self.metrics[one].needs]
                yield from ((one, name) for one in of_answers if low is not None and low >= -1 and high <= 1)

    def _find_apart(self, pair: tuple[str, str], ids: Mapping[str, int], since: float, most: int) -> Iterator[Reason]:
        first, second = pair
        other = "CASE WHEN b.value < 0 THEN 0 ELSE b.value END"  # thumbs can be -1 and 1
        rows = self._query(
            "SELECT a.trace_id, a.value, b.value FROM rageval_judgements a JOIN rageval_judgements b "
            "ON b.trace_id = a.trace_id WHERE a.series = ? AND b.series = ? AND a.state = 'judged' "
            f"AND b.state = 'judged' AND a.started >= ? AND ABS(a.value - {other}) >= ? "
            f"ORDER BY ABS(a.value - {other}) DESC, a.trace_id LIMIT ?",
            ids[first], ids[second], since, APART, most,
        )  # fmt: skip
        for trace_id, *values in rows:
            said = " and ".join(f"{name} is {format_number(value)}" for name, value in zip(pair, values, strict=True))
            yield Reason(trace_id, "disagreed", said)

    def _read_texts(self, since: float) -> tuple[list[Reason], list[Reason], list[tuple[str, str]]]:
        """The traces that users disliked and that people judged, and the questions of the newest; newest first."""
        disliked, labelled, questions = list[Reason](), list[Reason](), list[tuple[str, str]]()
        for trace in self._iterate("started >= ?", since):
            if is_disliked(trace):
                disliked.append(Reason(trace.id, "disliked", "a user disliked the answer"))
            people = {one.author or "an annotator" for one in trace.feedback if one.source == "annotator"}
            if names := sorted(people | ({self.labelled[trace.id]} if trace.id in self.labelled else set())):
                labelled.append(Reason(trace.id, "labelled", f"judged by {list_names(names)}"))
            if len(questions) < _QUESTIONS:
                questions.append((trace.id, trace.question))
        return disliked, labelled, questions

    def _find_new_kinds(
        self, questions: Sequence[tuple[str, str]], since: float, known: TestSet, made: Collected
    ) -> Iterator[Reason]:
        earlier = [json.loads(one)[0] for one in sorted(known.questions)]
        room = max(0, _QUESTIONS - len(earlier))
        earlier += [trace.question for trace in islice(self._iterate("started < ?", since), room)]
        texts = [text for _, text in questions]
        if self.embedding is None:
            made.remarks.append(
                "the spec has no embedding model, so new kinds of question were looked for by their words"
            )
            for place in find_new_words(earlier, texts) if len(earlier) >= _FEWEST else ():
                yield Reason(questions[place][0], "new_kind", "it has words that earlier questions do not have")
            return
        try:
            sides = [self.embedding.embed(one).vectors for one in (earlier, texts) if one]
        except RagevalError as error:
            made.remarks.append(f"new kinds of question were not looked for: {error}")
            return
        kinds = find_new_kinds(*sides) if len(sides) == 2 else None
        if kinds is None:
            made.remarks.append("new kinds of question were not looked for: there are no earlier questions")
        for place in () if kinds is None else kinds.places:
            yield Reason(questions[place][0], "new_kind", "no earlier question is like it")

    def _iterate(self, condition: str, moment: float) -> Iterator[Trace]:
        """The traces whose texts are kept, newest first."""
        last: tuple[Any, ...] = (math.inf, "")
        while rows := self._query(
            "SELECT started, trace_id, content FROM rageval_traces WHERE monitor = ? AND content IS NOT NULL AND "
            f"state = 'judged' AND {condition} AND (started, trace_id) < (?, ?) "
            "ORDER BY started DESC, trace_id DESC LIMIT ?",
            self.ledger.monitor, moment, *last, _PAGE,
        ):  # fmt: skip
            yield from (unpack(content) for *_, content in rows)
            last = rows[-1][:2]

    def _query(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return self.ledger.connection.execute(statement, parameters)


def leave_out_user(trace: Trace) -> Trace:
    """The trace without who asked, because `monitor prune --user` does not reach copies of it in files."""
    metadata = {name: value for name, value in trace.metadata.items() if trace.user is None or str(value) != trace.user}
    said = tuple(replace(one, author=None) if one.author == trace.user else one for one in trace.feedback)
    return replace(trace, user=None, metadata=metadata, feedback=said)


_VALUES = "SELECT trace_id, value FROM rageval_judgements WHERE series = ? AND state = 'judged' AND started >= ?"


def list_bounds(spec: Spec, name: str, metric: AnswerMetric[Any] | None) -> dict[str, float]:
    """The bounds that gates and alerts set for a metric, and on which side of them values fail: the stricter ones."""
    is_low = metric is not None and metric.higher_is_better is False
    found: dict[str, list[float]] = {"below": [], "above": []}
    for gate in (one for one in spec.gates if one.metric == name):
        for bound in gate.list_bounds(lower_is_better=is_low, scale=spec.bands.get(name)):
            if bound.miss == "fail":
                found["below" if bound.passes_above else "above"].append(bound.bound)
    for alert in () if spec.monitor is None else spec.monitor.alerts:
        if not isinstance(alert, str) and alert.metric == name:
            found["above" if is_low else "below"] += alert.bounds.values()
    strictest: Mapping[str, Callable[[Iterable[float]], float]] = {"below": max, "above": min}
    return {side: strictest[side](bounds) for side, bounds in found.items() if bounds}


def collect_into(path: Path, collector: Collector, since: float, most: int, now: float) -> tuple[TestSet, Collected]:
    """Add what is new to a file, in one step: a reader, or a kill, finds the old file or the new one.

    Nothing that the file holds is changed or removed. Raises `UsageError` while another process does the same.
    """
    if "question" in collector.spec.redact:
        raise UsageError(f"{collector.spec.path}: a test set needs questions; remove 'question' from 'redact:'")
    if not collector.ledger.lead("collect", now, _LEASE):
        raise UsageError(
            "another process is collecting at the moment; try again when it is done, or in 10 minutes if it was killed"
        )
    try:
        known = TestSet.read(path)
        made = collector.collect(known, since, most)
        if made.rows:
            lines = (json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in made.rows)
            write_or_explain(path, known.content + b"".join(lines), f"{path}: cannot be written")
        return known, made
    finally:
        collector.ledger.release()


_LEASE = 600.0
"""Seconds after which another process may collect although one that was killed did not say that it is done."""
