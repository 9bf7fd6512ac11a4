"""What an audit finds: findings about rows of a test set, and what each check came to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, Literal, ParamSpec

from rageval_spec.dataclass import dataclass, field

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the worst to the least. An error makes values wrong, a warning makes them doubtful."""
CheckState = Literal["found", "clean", "skipped"]


@dataclass(frozen=True, slots=True)
class AuditedRow:
    """A question of a test set.

    Attributes:
        query_id: its id.
        place: where it is written: `golden.jsonl:12`; "" if the dataset does not say.
        question: its text.
    """

    query_id: str
    place: str = ""
    question: str = ""

    def __str__(self) -> str:
        return self.place or f"query {self.query_id}"


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is wrong.

    Attributes:
        code: the kind of finding, for programs: `duplicate`.
        message: what is wrong, as a sentence without its full stop.
        advice: what to do about it.
        rows: the questions that it is about, first the one to look at; none if it is about the dataset.
        system, metric: the system and the metric that it is about, if any.
        removes: whether `--fix` leaves the first row out.
        details: what the finding rests on, in JSON types.
    """

    code: str
    severity: Severity
    message: str
    advice: str
    rows: tuple[AuditedRow, ...] = ()
    system: str | None = None
    metric: str | None = None
    removes: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


_KNOWN = "remove it from the test set, or from the training data; a system may know the answer by heart"
_ADVICE: Mapping[str, tuple[Severity, str]] = {
    "empty_question": ("error", "write the question, or remove the row"),
    "unknown_query": ("error", "add the question, or remove its judgements; it counts as failed until then"),
    "no_reference": ("warning", "write the gold answer; if the documents have none, set 'answerable' to false"),
    "placeholder": ("error", "write the gold answer; every answer is compared with the placeholder now"),
    "refusal": ("warning", "set 'answerable' to false, or write the gold answer"),
    "mojibake": ("warning", "write the file anew from its source, as UTF-8"),
    "two_questions": ("info", "make two questions of it: an answer to one of them is neither right nor wrong"),
    "unfounded": ("warning", "correct the reference, or the documents that are named for it"),
    "absent_document": ("warning", "no system can find them; judge the documents that the corpus has, or add these"),
    "absent_passage": ("warning", "no system can find it; add its document to the corpus, or correct the passage"),
    "cut_passage": ("warning", "a system must find several chunks for it; cut the documents with an overlap"),
    "changed_quote": ("info", "compare the quote with the document, and correct it if it says something else"),
    "repeated_quote": ("info", "its first place counts; name another one with 'start' and 'end'"),
    "document_gone": ("warning", "remove the question, or name the document that answers it now"),
    "outdated": (
        "warning",
        "read the document again, correct the reference if it no longer holds, and date the question anew",
    ),
    "context_gone": ("warning", "read the document again, and correct the reference and its context"),
    "contradiction": (
        "warning",
        "correct one; if both are right, put both into one row as alternatives, and remove the other row",
    ),
    "train_overlap": ("error", _KNOWN),
    "train_near_overlap": ("warning", _KNOWN),
    "leak": ("warning", "ask so that the answer must be found; a system that repeats the question is right as it is"),
    "every_system_solves": ("info", "keep some to notice when they break; add harder ones to tell systems apart"),
    "negative_discrimination": ("warning", "read its label: a wrong one punishes the systems that are right"),
    "language": ("info", "check that it belongs to this set; report languages apart with 'slices: [language]'"),
    "reference_language": ("info", "translate one of them; metrics that compare words see two different texts"),
    "order_depends_on_judging": ("warning", "judge more of both systems' documents before you choose between them"),
    "judge_next": ("info", "judge these documents first: they change most values"),
}
"""How bad each kind of finding usually is, and what to do about it; of the others, each finding says it itself."""


def make_finding(
    code: str,
    message: str,
    *rows: AuditedRow,
    severity: Severity | None = None,
    advice: str = "",
    system: str | None = None,
    metric: str | None = None,
    removes: bool = False,
    **details: Any,
) -> AuditFinding:
    """A finding as its kind usually is, unless the arguments say otherwise."""
    usual, to_do = _ADVICE.get(code, ("warning", advice))
    return AuditFinding(code, severity or usual, message, advice or to_do, rows, system, metric, removes, details)


def group_alike(findings: Iterable[AuditFinding]) -> Iterator[tuple[AuditFinding, ...]]:
    """Neighbours that say the same of one row each; every other finding is alone."""

    def identify(pair: tuple[int, AuditFinding]) -> tuple[object, ...]:
        place, one = pair
        return one.severity, one.code, one.message, one.advice, one.removes, "" if len(one.rows) == 1 else place

    for _, group in groupby(enumerate(findings), identify):
        yield tuple(one for _, one in group)


Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers that belong to a check.

    Attributes:
        rows: the cells as text, rounded.
        values: the same cells for programs: numbers are not rounded, and shares are from 0 to 1.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[Cell, ...], ...] = ()

    @property
    def numbers(self) -> set[int]:
        """The places of the columns that have numbers."""
        return {at for row in self.values for at, cell in enumerate(row) if isinstance(cell, int | float)}


Shown = Mapping[str, Callable[[Any], str]]
"""What shows the values of each column of a table."""


def make_table(columns: Shown, values: Iterable[Sequence[Cell]], unknown: str = "") -> Table:
    """A table of these values; `unknown` stands where there is none."""
    kept, shows = tuple(map(tuple, values)), columns.values()
    rows = [[unknown if cell is None else show(cell) for show, cell in zip(shows, row, strict=True)] for row in kept]
    return Table(tuple(columns), tuple(map(tuple, rows)), kept)


@dataclass(frozen=True, slots=True)
class CheckContent:
    """One check of a dataset.

    Attributes:
        name: which check it is, such as `duplicates`.
        state: found, if there are findings; clean, if there are none; skipped, if it could not be made.
        skipped: why it could not be made, and what to do; null if it was made.
        findings: what it found.
        tables: the numbers behind it.
    """

    name: str
    title: str
    state: CheckState = field(init=False, default="clean")
    findings: tuple[AuditFinding, ...] = ()
    skipped: str | None = None
    remark: str = ""
    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        if self.findings or self.skipped is not None:
            object.__setattr__(self, "state", "found" if self.findings else "skipped")


class NotCheckedError(Exception):
    """Why a check cannot be made, and what to do."""


Found = Iterator[AuditFinding | Table | str]
"""What a check yields: findings, tables and remarks. It raises a NotCheckedError if it cannot be made."""
Checked = ParamSpec("Checked")


@dataclass(frozen=True)
class Check(Generic[Checked]):
    name: str
    title: str
    find: Callable[Checked, Found]

    def __call__(self, *args: Checked.args, **kwargs: Checked.kwargs) -> CheckContent:
        found: list[AuditFinding | Table | str] = []
        skipped = None
        try:
            found.extend(self.find(*args, **kwargs))
        except NotCheckedError as error:
            skipped = str(error)
        findings = tuple(one for one in found if isinstance(one, AuditFinding))
        remark = " ".join(one for one in found if isinstance(one, str))
        tables = tuple(one for one in found if isinstance(one, Table))
        return CheckContent(self.name, self.title, findings, None if findings else skipped, remark, tables)

    def skip(self, why: str) -> CheckContent:
        return CheckContent(self.name, self.title, skipped=why)


def check(name: str, title: str) -> Callable[[Callable[Checked, Found]], Check[Checked]]:
    """Make a check of the function that yields what it finds."""
    return lambda find: Check(name, title, find)


@dataclass(frozen=True, slots=True)
class DatasetContent:
    """The checks of one dataset.

    Attributes:
        questions: how many questions are evaluated.
        with_reference, with_relevant: how many of them have a gold answer, and a relevant document.
        origin: where it comes from: its version, how it was made, who reviewed it; empty if it does not say.
    """

    name: str
    questions: int
    with_reference: int
    with_relevant: int
    origin: str
    checks: tuple[CheckContent, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of a spec found. `results` are those whose values were used; none if it was not evaluated."""

    name: str
    datasets: tuple[DatasetContent, ...]
    results: tuple[str, ...] = ()

    def iterate(self) -> Iterator[tuple[DatasetContent, CheckContent, AuditFinding]]:
        for dataset in self.datasets:
            for check in dataset.checks:
                for finding in check.findings:
                    yield dataset, check, finding

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for _, _, finding in self.iterate())
