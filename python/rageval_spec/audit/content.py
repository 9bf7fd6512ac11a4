"""An audit as JSON. Its schema is `schemas/audit.schema.json`; within a `format_version`, keys are only added."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from rageval_spec.audit.finding import Audit, Check, CheckState, DatasetAudit, Finding, Severity, Table
from rageval_spec.diagnostics import dump_visible

FORMAT_VERSION = 1


@dataclass(frozen=True)
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
    state: CheckState
    findings: tuple[Finding, ...]
    skipped: str | None
    remark: str
    tables: tuple[Table, ...]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class AuditContent:
    """The findings of rageval-spec about the test sets of a spec.

    Attributes:
        format_version: of this shape; keys are added without raising it.
        name: the name of the spec.
        results: the results whose values were used.
        counts: how many findings there are of each severity.
    """

    format_version: int
    name: str
    results: tuple[str, ...]
    counts: dict[Severity, int]
    datasets: tuple[DatasetContent, ...]


def dump_audit(audit: Audit) -> str:
    """The audit as JSON text. Every finding is in it, however many there are."""
    return dump_visible(asdict(_build(audit)))


def _build(audit: Audit) -> AuditContent:
    counts: dict[Severity, int] = {"error": 0, "warning": 0, "info": 0}
    for _, _, finding in audit.iterate():
        counts[finding.severity] += 1
    return AuditContent(FORMAT_VERSION, audit.name, audit.results, counts, tuple(map(_build_dataset, audit.datasets)))


def _build_dataset(one: DatasetAudit) -> DatasetContent:
    checks = tuple(map(_build_check, one.checks))
    counts = (one.questions, one.with_reference, one.with_relevant)
    return DatasetContent(one.name, *counts, one.origin, checks)


def _build_check(check: Check) -> CheckContent:
    return CheckContent(
        check.name, check.title, check.state, check.findings, check.skipped, check.remark, check.tables
    )  # fmt: skip


def build_schema() -> dict[str, Any]:
    """The JSON Schema of an audit; every key is required."""
    schema = TypeAdapter(AuditContent).json_schema(mode="serialization")
    for shape in (schema, *schema["$defs"].values()):
        shape["required"] = sorted(shape["properties"])
        for key in shape["properties"].values():
            key.pop("title", None)
            key.pop("default", None)
    schema["properties"]["format_version"] = {"const": FORMAT_VERSION}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An audit of rageval-spec"}
    return schema | head


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2))
