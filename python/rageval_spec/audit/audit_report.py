"""Describes an audit for people, and writes it as JSON.

The JSON has the schema `schemas/audit.schema.json`; within a `format_version`, keys are only added.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rageval_spec.audit import audit_findings
from rageval_spec.data.json_documents import FORMAT_VERSION, build_document_schema
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.diagnostics import dump_visible
from rageval_spec.drawing.view import (
    Block,
    Details,
    Entry,
    Heading,
    Items,
    Line,
    Span,
    name,
    tabulate,
    write_markdown,
    write_page,
    write_text,
)
from rageval_spec.wording import count_noun, list_names


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
    counts: dict[audit_findings.Severity, int]
    datasets: tuple[audit_findings.DatasetContent, ...]


def dump_audit(audit: audit_findings.Audit) -> str:
    """The audit as JSON text. Every finding is in it, however many there are."""
    counts = {severity: audit.count(severity) for severity in audit_findings.SEVERITIES}
    return dump_visible(asdict(AuditContent(FORMAT_VERSION, audit.name, audit.results, counts, audit.datasets)))


def build_schema() -> dict[str, Any]:
    """The JSON Schema of an audit; every key is required."""
    return build_document_schema(AuditContent, "An audit of rageval-spec", ())


MOST = {"text": 10, "markdown": 20, "html": 300}
"""The most findings of a check that each form lists; JSON has all."""
NOUNS: dict[audit_findings.Severity, str] = {"error": "error", "warning": "warning", "info": "remark"}
"""What a finding of each severity is called."""
_SIGNS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("•", ""), "clean": ("✓", "green")}
_FEW = 10
"""So many remarks of a check are not folded."""


def render(audit: audit_findings.Audit, form: str) -> bytes:
    """The audit as `text`, `markdown`, `html` or `json`."""
    if form == "json":
        return dump_audit(audit).encode("utf-8", "backslashreplace")
    view = [*describe_audit(audit, MOST[form])]
    if form == "html":
        return write_page(f"{audit.name}: audit", view)
    if form == "markdown":
        return write_markdown(view).encode("utf-8", "backslashreplace")
    return write_text([*view, Line(Span(summarize(audit), "bold"))])


def describe_audit(audit: audit_findings.Audit, most: int) -> Iterator[Block]:
    """What was found, with at most so many findings of a check: the outcome of each check, then what it found."""
    yield Heading(f"Audit of {audit.name}: {summarize(audit)}", 1)
    yield Line(Span(describe_results(audit), "dim"))
    for dataset in audit.datasets:
        yield Heading(dataset.name, 2)
        yield Line(describe_dataset(dataset))
        yield Items([*_list_outcomes(dataset.checks)])
        for check in dataset.checks:
            blocks = [*_describe_check(check, most)]
            if len(check.findings) > _FEW and _find_worst(check) == "info":
                yield Details(_title(check), blocks)
            elif blocks:
                yield Heading(_title(check), 3)
                yield from blocks


def _list_outcomes(checks: Sequence[audit_findings.CheckContent]) -> Iterator[tuple[str, str, str]]:
    """A row for each check; neighbours that were skipped for the same reason share one."""
    for skipped, group in groupby(checks, lambda check: check.skipped):
        if skipped is None:
            yield from ((sign, _title(check), style) for check in group for sign, style in [_SIGNS[_find_worst(check)]])
        else:
            yield "–", f"{', '.join(check.title for check in group)}: {skipped}", "dim"


def _find_worst(check: audit_findings.CheckContent) -> str:
    found = {one.severity for one in check.findings}
    return next((severity for severity in audit_findings.SEVERITIES if severity in found), "clean")


def _title(check: audit_findings.CheckContent) -> str:
    return check.title + (f" ({len(check.findings):,})" if check.findings else "")


def _describe_check(check: audit_findings.CheckContent, most: int) -> Iterator[Block]:
    if check.remark:
        yield Line(Span(check.remark, "dim"))
    advised = ""
    for group in audit_findings.group_alike(check.findings[:most]):
        yield _describe_alike(group, advised)
        advised = group[0].advice
    if (rest := len(check.findings) - most) > 0:
        yield Line(Span(f"... and {rest:,} more; --format json lists all.", "dim"))
    yield from (tabulate(table.header, table.rows, table.numbers, ()) for table in check.tables)


def _describe_alike(group: Sequence[audit_findings.AuditFinding], advised: str) -> Entry:
    """A finding as linters write it, its questions, and what to do unless the last finding said the same.

    Several that say the same are one, with a line for each row.
    """
    finding, is_one = group[0], len(group) == 1
    severity = Span(f"{NOUNS[finding.severity]}: ", f"bold {_SIGNS[finding.severity][1]}")
    place = _place(finding.rows[0]) if finding.rows and is_one else ()
    rows = [row for one in group for row in one.rows if row.question or not is_one]
    lines = [Line([*(() if is_one else _place(row)), Span(row.question, "italic")]) for row in rows]
    told = ("" if finding.advice == advised else f"→ {finding.advice}", "(--fix removes it)" if finding.removes else "")
    if any(told):
        lines.append(Line(Span(" ".join(filter(None, told)), "cyan")))
    return Entry([*place, severity, f"{finding.message} ", Span(f"[{finding.code}]", "dim")], lines)


def _place(row: audit_findings.AuditedRow) -> tuple[Span, str]:
    return name(str(row)), ": "


def describe_dataset(dataset: audit_findings.DatasetContent) -> str:
    parts = [count_noun(dataset.questions, "question")]
    parts += [f"{dataset.with_reference:,} with a reference", f"{dataset.with_relevant:,} with relevant documents"]
    return ", ".join(parts) + (f"; {dataset.origin}" if dataset.origin else "")


def describe_results(audit: audit_findings.Audit) -> str:
    """Which results the audit used: `With the values of res.`"""
    return (
        f"With the values of {list_names(audit.results)}." if audit.results else "Without the values of an evaluation."
    )


def summarize(audit: audit_findings.Audit) -> str:
    """How many findings there are: `2 errors and 5 warnings`."""
    told = [count_noun(count, noun) for severity, noun in NOUNS.items() if (count := audit.count(severity))]
    return list_names(told) if told else "nothing found"


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2))
