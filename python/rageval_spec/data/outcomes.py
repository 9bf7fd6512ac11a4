"""The results of an evaluation in parts: cells, intervals, notes, gate outcomes, corrections, causes and overlaps.

A cell is the place of a number: one metric of one system on one dataset, or on a slice of it.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later, pl

CELL = ("dataset", "system", "metric")
"""The columns of the values table that name a cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one system on one dataset, or on one of its slices."""

    dataset: str
    system: str
    metric: str
    slice: str | None = None


def list_cells(values: pl.DataFrame) -> list[Cell]:
    """The cells of a values table, in the order in which they first occur."""
    return [*dict.fromkeys(cell for cell, _ in _list_blocks(values))]


def split_cells(values: pl.DataFrame) -> Iterator[tuple[Cell, pl.DataFrame]]:
    """Split a values table by cell. Cells and rows keep the order that they have in the table.

    Where the rows of each cell follow one another, as in every table that an evaluation makes, no row is copied.
    """
    blocks = _list_blocks(values)
    if len({cell for cell, _ in blocks}) == len(blocks):
        starts = [*(start for _, start in blocks), values.height]
        for number, (cell, start) in enumerate(blocks):
            yield cell, values.slice(start, starts[number + 1] - start)
        return
    for key, frame in values.partition_by(*CELL, as_dict=True, maintain_order=True).items():
        yield Cell(*map(str, key)), frame


def _list_blocks(values: pl.DataFrame) -> list[tuple[Cell, int]]:
    """The cell of each block of consecutive rows of one cell, and its first row.

    Finding distinct rows would need several times the memory of the columns.
    """
    begins = values.select(pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in CELL))
    starts = begins.to_series().arg_true()
    keys = values.select(pl.col(*CELL).gather(starts))
    return [(Cell(*map(str, key)), start) for key, start in zip(keys.iter_rows(), starts, strict=True)]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean or a percentile, with `low <= high`.

    `method` names what computed it: a bootstrap, or "betting" for a confidence sequence, which also holds if the number
    of questions was not fixed beforehand.
    """

    low: float
    high: float
    confidence: float = 0.95
    method: str = "bootstrap-bca"


NoteLevel = Literal["note", "warning"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the numbers must know, for example that missing queries score 0.

    Attributes:
        code: the kind of note, for programs.
        dataset, system: the subject of the note; None if it concerns all of them, or none.
        count: the number that the message mentions, if there is one.
        table: figures that the message sums up, a header and rows.
        level: "warning" if the numbers could mislead a reader who misses the note.
    """

    code: str
    message: str
    dataset: str | None = None
    system: str | None = None
    count: int | None = None
    level: NoteLevel = "note"
    table: tuple[tuple[str, ...], ...] = ()


Fact: TypeAlias = "bool | int | float | str | tuple[Fact, ...] | None"
Writer: TypeAlias = Callable[..., Iterable[Note]]
"""Takes the facts, a sequence, and then the settings. The order of the facts must not matter."""

_WRITERS: dict[str, Writer] = {}


@dataclass(frozen=True, slots=True)
class Remark:
    """Facts from which notes are written once those of all parts of a step are together.

    A step can be computed in parts, on several machines or a few questions at a time. A note such as "3 of 40 replies
    came without probabilities" can only be written when all parts are together. Facts are of JSON's types, with tuples
    for lists, so that parts can be files.

    Attributes:
        writer: the name of the function that writes the notes, as `writes_notes` registered it.
        facts: what it counts, for example one fact for each sample.
        settings: its other arguments, which are the same for all parts: the name of a judge, for instance.
        is_same: whether every part has the same facts, because they are not about its questions. One part's then stand
            for all.
        topic: what the facts are about, if a metric asked a judge about several things.
        topics: how many things these are. A note that is the same for all of them is written once; any other begins
            with its topic.
    """

    writer: str
    facts: tuple[Fact, ...]
    settings: tuple[Fact, ...] = ()
    is_same: bool = False
    topic: str = ""
    topics: int = 0

    def write(self) -> Iterator[Note]:
        """The notes on these facts. Raises `DataError` if this version has no such writer."""
        if self.writer not in _WRITERS:
            raise DataError(f"no part of this version writes notes as {self.writer!r}")
        yield from _WRITERS[self.writer](self.facts, *self.settings)


AnyNote: TypeAlias = Note | Remark


W = TypeVar("W", bound=Writer)


def writes_notes(function: W) -> W:
    """Register a function as a writer of notes. It can then be used in `remark`, also after facts were stored."""
    _WRITERS[_name_writer(function)] = function
    return function


def remark(writer: Writer, facts: Iterable[Fact], *settings: Fact) -> Remark:
    """A remark whose notes a registered function will write."""
    return Remark(_name_writer(writer), tuple(facts), settings)


def _name_writer(function: Writer) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def add_counts(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The sums of two counts that each part of a step has as a fact."""
    first, second = zip((0, 0), *counts, strict=True)
    return sum(first), sum(second)


def join_notes(parts: Sequence[Sequence[AnyNote]]) -> tuple[AnyNote, ...]:
    """The notes and remarks of all parts of a step. Equal notes are one; facts of the same kind are put together.

    If a part has several remarks of a kind, the first one belongs to the first of every other part, and so on.
    """
    found: dict[tuple[object, int], AnyNote] = {}
    facts: dict[tuple[object, int], list[Fact]] = {}
    for part in parts:
        seen: dict[object, int] = {}
        for one in part:
            kind = one if isinstance(one, Note) else replace(one, facts=())
            place = seen[kind] = seen.get(kind, -1) + 1
            key = (kind, 0 if isinstance(one, Note) else place)
            found.setdefault(key, one)
            if isinstance(one, Remark) and not (one.is_same and facts.get(key)):
                facts.setdefault(key, []).extend(one.facts)
    return tuple(one if isinstance(one, Note) else replace(one, facts=tuple(facts[key])) for key, one in found.items())


def write_notes(remarks: Sequence[AnyNote]) -> tuple[Note, ...]:
    """All notes, with those of remarks written, in the order given; equal notes are one."""
    written = [(one, note) for one in remarks for note in ([one] if isinstance(one, Note) else one.write())]
    topics: dict[Note, set[str]] = {}
    for one, note in written:
        if isinstance(one, Remark) and one.topics:
            topics.setdefault(note, set()).add(one.topic)
    notes = []
    for one, note in written:
        if isinstance(one, Remark) and one.topics and len(topics[note]) < one.topics:
            note = replace(note, message=f"{one.topic}: {note.message}")
        notes.append(note)
    return tuple(dict.fromkeys(notes))


def name_topics(parts: Sequence[tuple[str, Sequence[AnyNote]]]) -> tuple[AnyNote, ...]:
    """The notes on several topics, given with them. A note that not all of them have names its topic."""
    notes = [[one for one in of_topic if isinstance(one, Note)] for _, of_topic in parts]
    shared = set(notes[0]).intersection(*notes[1:]) if notes else set()
    named: list[AnyNote] = []
    for topic, of_topic in parts:
        for one in of_topic:
            if isinstance(one, Remark):
                named.append(replace(one, topic=topic, topics=len(parts)))
            elif (note := one if one in shared else replace(one, message=f"{topic}: {one.message}")) not in named:
                named.append(note)
    return tuple(named)


_DIGEST_BYTES = 8


def digest_texts(texts: Iterable[str]) -> str:
    """A fact that tells which texts there were, in 10 characters for each, without the texts."""
    digests = {
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest() for text in texts
    }
    return base64.b85encode(b"".join(sorted(digests))).decode()


def count_texts(facts: Iterable[str]) -> int:
    """How many different texts some facts of `digest_texts` stand for. Raises `DataError` if one is no such fact."""
    try:
        wholes = [base64.b85decode(fact) for fact in facts]
    except ValueError as error:
        raise DataError("digests of texts are damaged") from error
    return len(
        {whole[start : start + _DIGEST_BYTES] for whole in wholes for start in range(0, len(whole), _DIGEST_BYTES)}
    )


DropSeverity: TypeAlias = Literal["low", "medium", "high"]
SEVERITIES: tuple[DropSeverity, ...] = ("low", "medium", "high")
"""How bad a drop is, from the least to the worst."""
_SHARE = compile_later(r"(\d{1,9}(?:\.\d+)?) ?%")


class Drop(NamedTuple):
    """The most that a number may fall; a rise where low values are better.

    `number` is the amount or, for a share of the baseline's number, a fraction: 0.05 for `5%`.
    """

    number: float
    is_share: bool = False

    def resolve(self, base: float) -> float:
        """The amount, for a baseline of which the number is `base`."""
        return abs(base) * self.number if self.is_share else self.number

    def __str__(self) -> str:
        """As it is written in a spec: `0.02` or `5%`."""
        return f"{100 * self.number:.9g}%" if self.is_share else repr(self.number)


def read_drop(written: float | str) -> Drop:
    """The drop that a spec writes as a number or as a percentage: `0.02`, `5%`.

    Raises:
        ValueError: it is neither, or it is negative.
    """
    if isinstance(written, str):
        found = _SHARE.fullmatch(written)
        if found is None:
            raise ValueError(f"'{written}' is not a share such as 5%")
        return Drop(float(found[1]) / 100, is_share=True)
    if not 0 <= written < float("inf"):
        raise ValueError(f"{written} is not a finite number of 0 or more")
    return Drop(float(written))


Verdict = Literal["pass", "warn", "fail", "inconclusive"]
"""The outcome of a gate."""
Counted = Literal["pass", "warn", "fail"]
"""What the outcome of a gate contributes to the outcome of the evaluation."""
_RANKS: dict[tuple[Verdict, Counted], int] = {
    ("fail", "fail"): 0,
    ("inconclusive", "fail"): 1,
    ("inconclusive", "warn"): 2,
    ("warn", "warn"): 3,
    ("inconclusive", "pass"): 4,
    ("pass", "pass"): 5,
}


def rank_outcome(outcome: Verdict, counts_as: Counted | None) -> int:
    """The place of a gate's outcome in the order from worst (0) to best."""
    return _RANKS[outcome, _count(outcome, counts_as)]


def _count(outcome: Verdict, counts_as: Counted | None) -> Counted:
    return (counts_as or "warn") if outcome == "inconclusive" else outcome


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The outcome of a gate on one dataset and system.

    `bound` is what the gate requires, `observed` the number it looked at (None if there was none), and `reason` the
    sentence that explains the outcome. `counts_as` is what an inconclusive outcome counts as for the evaluation.
    `max_drop` is the amount that the number may fall below the `baseline` before the gate fails, and `severity` how bad
    the fall is, if the gate says what that means. With `repeat:`, `flips` is how many repeats alone would give another
    outcome; None for gates with a baseline or on a slice.
    """

    gate: int
    dataset: str
    system: str
    metric: str
    outcome: Verdict
    bound: str
    observed: float | None
    reason: str
    slice: str | None = None
    counts_as: Counted | None = None
    baseline: str | None = None
    max_drop: float | None = None
    severity: DropSeverity | None = None
    flips: int | None = None

    @property
    def cell(self) -> Cell:
        """The cell that the gate looked at."""
        return Cell(self.dataset, self.system, self.metric, self.slice)

    @property
    def counted(self) -> Counted:
        """What the outcome counts as for the evaluation; an inconclusive outcome warns unless `counts_as` differs."""
        return _count(self.outcome, self.counts_as)

    @property
    def rank(self) -> int:
        """The place of the outcome in the order from worst (0) to best."""
        return rank_outcome(self.outcome, self.counts_as)


CorrectionMethod: TypeAlias = Literal["ppi", "rogan_gladen"]
"""How a judge's mean is corrected: prediction-powered inference, or by the judge's rates of wrong decisions."""
UsedCorrection: TypeAlias = Literal["ppi", "rogan_gladen", "imputation"]
"""How a mean was corrected; measures of rankings are by grades that are drawn as people give them."""

LABEL, LABEL_WEIGHT = "label", "label_weight"
"""The columns that a table of values has if a metric has labels: what people say on the metric's scale, and one over
the probability with which the answer was chosen for labelling; null for an answer without labels."""
UNNAMED = "unnamed_answers"
"""The code of the note that some labels do not name their answers' digests."""
FEWEST_LABELS = 10
"""Fewer labels than this give no corrected number: an interval from them would be too unreliable to act on."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Where a corrected number comes from: the judge's own number, and that of the labels.

    Of a comparison, all numbers are differences of the two systems.

    Attributes:
        judged, labelled: what the judge says, and what labels alone say; None without any.
        labels: how many answers have labels; of a paired comparison, how many questions have labels for both answers;
            of a ranking measure, how many pairs of a query and a document.
        worth: how many labels without the judge would give an interval as narrow; None if it is not known.
        source: the name of the labels in the spec.
        is_clipped: whether the number, or an end of its interval, lay outside what the metric can be, and was moved to
            its bound.
        is_paired: whether a comparison is corrected question by question. If few questions have labels for both
            answers, it is the difference of the two corrected means. True for a mean.
        reason: why there is no corrected number; None if there is one.
    """

    method: UsedCorrection
    judged: float | None
    judged_interval: Interval | None
    labelled: float | None
    labelled_interval: Interval | None
    labels: int
    worth: float | None
    source: str
    is_clipped: bool = False
    is_paired: bool = True
    reason: str | None = None


def has_unnamed(notes: Iterable[Note], metric: str) -> bool:
    """Whether labels of a metric do not name their answers' digests, as the notes of an evaluation say."""
    return any(note.code == UNNAMED and note.message.startswith(f"{metric}: ") for note in notes)


Ending = Literal["decided", "all", "interrupted"]
"""Why no more questions of a dataset were asked: every gate was decided; all were asked; or a limit was reached."""


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """How many questions of a dataset were asked.

    Attributes:
        asked: if a limit was reached, some of these may have no answer.
        reason: the ending as the end of a sentence, such as `every gate was decided`.
    """

    dataset: str
    asked: int
    total: int
    ending: Ending
    reason: str

    @property
    def is_part(self) -> bool:
        """Whether some questions were not asked."""
        return self.asked < self.total


@dataclass(frozen=True, slots=True)
class Stopping:
    """What became of the spec's `stopping:`.

    Attributes:
        confidence: the probability that all gates have the outcome that all questions would have given them.
        first, batch: how many questions were asked at first, and then at a time.
        seed: the seed of the order in which questions were asked.
    """

    confidence: float
    first: int
    batch: int
    seed: int
    datasets: tuple[AskedQuestions, ...]

    def find(self, dataset: str) -> AskedQuestions | None:
        """What is known of a dataset; None if it has no questions to ask."""
        return next((one for one in self.datasets if one.dataset == dataset), None)


AnswerSource = Literal["unfinished", "last", "always", "recorded"]
"""Where answers come from that were not asked now: an unfinished evaluation that was continued, the last one
(`--retry-failed`), any earlier one (`reuse: always`), or a file or a tool that recorded them."""


UNKNOWN = "unknown"
"""Stands for the version of answers whose version nobody knows."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The answers of a system on a dataset that this evaluation did not ask for itself.

    Attributes:
        answers, questions: how many answers were taken over, of how many different questions.
        sources: where they come from, each source once.
        first, last: when the first and the last of them were asked, in UTC, as ISO 8601 with seconds; None if unknown.
        undated: how many of them have no time.
        version: the `version` of the system's block, if it has one.
        commits: how many of all answers behind the numbers, also of those asked now, were asked at each state of the
            code that git told, or at each version that a recording names; an answer without one counts as "unknown".
            Empty if no answer has one.
        place: the file or tool that recorded them; "" if they were asked.
    """

    dataset: str
    system: str
    answers: int
    questions: int
    sources: tuple[AnswerSource, ...]
    first: str | None = None
    last: str | None = None
    undated: int = 0
    version: str | None = None
    commits: dict[str, int] = field(default_factory=dict)
    place: str = ""

    @classmethod
    def of_recording(
        cls, system: str, place: str, questions: int, asked: Sequence[tuple[str | None, str | None]]
    ) -> TakenOver:
        """Answers that a file or a tool recorded, each with its time (ISO 8601) and the version of the application.

        Either is None if it is unknown.
        """
        known = sorted(datetime.fromisoformat(time).astimezone(UTC) for time, _ in asked if time is not None)
        names = [version or UNKNOWN for _, version in asked]
        commits = {name: names.count(name) for name in dict.fromkeys(names)}
        first, last = (one.isoformat(timespec="seconds") for one in (known[0], known[-1])) if known else (None, None)
        told = {} if set(commits) <= {UNKNOWN} else commits
        undated = len(asked) - len(known)
        return cls("", system, len(asked), questions, ("recorded",), first, last, undated, commits=told, place=place)

    @property
    def versions(self) -> tuple[str, ...]:
        """The states of the code that the answers mix; empty if they do not mix any."""
        return tuple(self.commits) if len(self.commits) > 1 else ()


Cause = Literal["retrieval", "generation", "both", "lucky", "fine", "undecided"]
"""Where a question's answer went wrong.

| cause | contexts have what was needed | answer |
|---|---|---|
| retrieval | no | wrong, and no worse than its contexts |
| generation | yes | wrong or unfaithful |
| both | no | wrong, and unfaithful to its contexts |
| lucky | no | right: it came from elsewhere |
| fine | yes | right |
| undecided | a part was not measured, or lies between the thresholds | |
"""


JUDGED_DOCUMENTS = "judged documents"
"""What decided about retrieval if no metric did: whether any relevant document is among the contexts."""
NOT_MEASURED = "not measured"
"""What `Diagnosis.retrieval` says where nothing measures retrieval."""


@dataclass(frozen=True, slots=True)
class RankCounts:
    """At which ranks the first relevant documents of the queries stand, counted for one metric of one system.

    Attributes:
        queries: those of which the metric knows a rank, or that none was found.
        ranks: the number of queries by rank: "1", "2-3", "4-10" and "11-"; "none" where no relevant document was found
            at a rank that the metric looks at.
    """

    dataset: str
    system: str
    metric: str
    queries: int
    ranks: dict[str, int]

    @classmethod
    def of(cls, cell: Cell, ranks: pl.Series) -> RankCounts:
        """The counts of ranks from 1; 0 stands for "none"."""
        found = {name: int(ranks.is_between(low, high).sum()) for name, (low, high) in _RANKS_COUNTED.items()}
        return cls(cell.dataset, cell.system, cell.metric, len(ranks), found)


_RANKS_COUNTED: dict[str, tuple[int, float]] = {
    "1": (1, 1),
    "2-3": (2, 3),
    "4-10": (4, 10),
    "11-": (11, math.inf),
    "none": (0, 0),
}


@dataclass(frozen=True, slots=True)
class CauseCount:
    """The questions of one system on one dataset (or on a slice of it) with one cause.

    `share` is `count / total`, of all questions. With weights, it is the weighted share.
    """

    dataset: str
    system: str
    cause: Cause
    count: int
    total: int
    share: float
    interval: Interval | None
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try first on one system, in a sentence, with the numbers that say so."""

    dataset: str
    system: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The causes of all questions, counted.

    Attributes:
        retrieval: the metric that decided whether the contexts have what was needed, or `JUDGED_DOCUMENTS`, or
            `NOT_MEASURED`: then a wrong answer that is faithful had a wrong context, and one that is not is invented.
        correctness: the metric that decided whether the answer is right. For `token_f1`, the words of short gold
            answers that the answer has, and the numbers and names of longer ones, decide as well.
        faithfulness: the metric that decided whether it is faithful to its contexts; None if the spec has none.
        wrong_below, right_from: the thresholds between which nothing is decided.
        counts: one for each cause that occurs, of each dataset and system, then of each slice.
    """

    retrieval: str
    correctness: str
    faithfulness: str | None
    wrong_below: float
    right_from: float
    counts: tuple[CauseCount, ...] = ()
    advice: tuple[Advice, ...] = ()


def explain_cause(diagnosis: Diagnosis, cause: Cause, values: Mapping[str, float | None]) -> str:
    """The numbers that decided about one question, in a sentence; `values` has its values by metric."""
    needed = "no" if cause in ("retrieval", "both", "lucky") else "a"
    judged = "" if cause == "undecided" else f"{needed} relevant document is among the contexts"
    names = [name for name in (diagnosis.correctness, diagnosis.faithfulness) if name is not None]
    parts = [_quote(diagnosis.retrieval, values, judged), *(_quote(name, values, "") for name in names)]
    return "; ".join(part for part in parts if part)


def _quote(name: str, values: Mapping[str, float | None], judged: str) -> str:
    if name in (JUDGED_DOCUMENTS, NOT_MEASURED):
        return judged if name == JUDGED_DOCUMENTS else ""
    value = values.get(name)
    return f"{name} has no value" if value is None else f"{name} is {value:.2f}"


BASE_VALUES = ("baseline", *CELL, "query_id", "value")
"""The columns: the name of the earlier evaluation as gates write it, and the value of this cell and query there."""


def empty_base_values() -> pl.DataFrame:
    """A table of base values without rows."""
    return pl.DataFrame(schema={name: pl.Float64() if name == "value" else pl.String() for name in BASE_VALUES})


BASE_ANSWERS = ("baseline", "dataset", "system", "query_id", "answer")
"""The columns: the name of the earlier evaluation as gates write it, and the answer of this system to this query."""


def empty_base_answers() -> pl.DataFrame:
    """A table of earlier answers without rows."""
    return pl.DataFrame(schema=dict.fromkeys(BASE_ANSWERS, pl.String()))


def collect_base_values(values: pl.DataFrame, earlier: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """What the values of an evaluation were in `earlier` ones, by the names that gates use: columns `BASE_VALUES`.

    There is a row for each scored value of an earlier evaluation that the later one has too, in the order of `values`.
    """
    on = [*CELL, "query_id"]
    wanted = values.select(on)
    found = []
    for name, table in earlier.items():
        scored = table.filter(pl.col("status") == "scored").select(*on, "value")
        rows = wanted.join(scored, on=on, how="inner", maintain_order="left")
        found.append(rows.select(pl.lit(name).alias("baseline"), *on, "value"))
    return pl.concat([empty_base_values(), *found])


ChangedPart: TypeAlias = Literal["references", "qrels", "judge", "prompt", "model", "metric"]
"""What gives a metric's numbers their meaning. Where it changed, two numbers are not of the same kind."""


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """A part that changed since a baseline, so that a metric's numbers are not comparable with it.

    `part` is the word that `accept_changes` in a gate takes, `told` a clause: `the references of 3 queries changed`.
    """

    part: ChangedPart
    told: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many queries of a dataset can be compared with a baseline.

    Attributes:
        same: the queries that are in both with the same question; only they are compared. A question of which one of
            the two recorded no digest counts as the same.
        changed: the queries that are in both with another question.
        added, removed: the queries that are only in this evaluation, or only in the baseline.
    """

    dataset: str
    baseline: str
    same: int
    changed: int = 0
    added: int = 0
    removed: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether both have the same queries."""
        return not (self.changed or self.added or self.removed)

    @property
    def total(self) -> int:
        """The number of this evaluation's queries."""
        return self.same + self.changed + self.added
