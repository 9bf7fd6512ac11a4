"""What an audit finds: findings about rows of a test set, and what each check came to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

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


def group_alike(findings: Iterable[AuditFinding]) -> Iterator[tuple[AuditFinding, ...]]:
    """Neighbours that say the same of one row each; every other finding is alone."""

    def identify(pair: tuple[int, AuditFinding]) -> tuple[object, ...]:
        place, one = pair
        return one.severity, one.code, one.message, one.advice, one.removes, "" if len(one.rows) == 1 else place

    for _, group in groupby(enumerate(findings), identify):
        yield tuple(one for _, one in group)


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers that belong to a check.

    Attributes:
        rows: the cells as text, rounded.
        values: the same cells for programs: numbers are not rounded, and shares are from 0 to 1.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[str | int | float | None, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """What one check of a dataset came to.

    Attributes:
        name: the name of the check, for programs: `duplicates`.
        title: what it looks for.
        skipped: why it could not be made, and what to do; None if it was made.
        remark: a sentence that holds with or without findings; "" for none.
        tables: the numbers behind it.
    """

    name: str
    title: str
    findings: tuple[AuditFinding, ...] = ()
    skipped: str | None = None
    remark: str = ""
    tables: tuple[Table, ...] = ()

    @property
    def state(self) -> CheckState:
        if self.findings:
            return "found"
        return "clean" if self.skipped is None else "skipped"


@dataclass(frozen=True, slots=True)
class DatasetAudit:
    """The checks of one dataset.

    Attributes:
        questions: how many questions are evaluated.
        with_reference, with_relevant: how many of them have a gold answer, and a relevant document.
        origin: where it comes from: its version, how it was made, who reviewed it; "" if it does not say.
    """

    name: str
    questions: int
    with_reference: int
    with_relevant: int
    checks: tuple[AuditCheck, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        name: the name of the spec.
        datasets: its datasets.
        results: the names of the results whose values were used; none if the evaluation has not run.
    """

    name: str
    datasets: tuple[DatasetAudit, ...]
    results: tuple[str, ...] = ()

    def iterate(self) -> Iterator[tuple[DatasetAudit, AuditCheck, AuditFinding]]:
        for dataset in self.datasets:
            for check in dataset.checks:
                for finding in check.findings:
                    yield dataset, check, finding

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for _, _, finding in self.iterate())
