"""Writes an audit as text, JSON, Markdown and HTML.

The JSON has the schema `schemas/audit.schema.json`; within a `format_version`, keys are only added. The Markdown is
for pull requests and wikis. The HTML is one page without a script, which opens without a server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from rageval_spec.audit import audit_findings
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing.escaping import escape, format_table, quote, quote_cell
from rageval_spec.drawing.html_shell import fill_page, join_styles
from rageval_spec.drawing.terminal import render_text, tabulate
from rageval_spec.libraries import Padding, Text
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMAT_VERSION = 1


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
    schema = TypeAdapter(AuditContent).json_schema(mode="serialization")
    for shape in (schema, *schema["$defs"].values()):
        shape["required"] = sorted(shape["properties"])
        for key in shape["properties"].values():
            key.pop("title", None)
            key.pop("default", None)
    schema["properties"]["format_version"] = {"const": FORMAT_VERSION}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An audit of rageval-spec"}
    return schema | head


MOST_IN_MARKDOWN = 20
"""The most findings of a check that are listed; JSON has all."""


def render_markdown(audit: audit_findings.Audit) -> bytes:
    return ("\n\n".join(_write(audit)) + "\n").encode("utf-8", "backslashreplace")


def _write(audit: audit_findings.Audit) -> Iterator[str]:
    yield f"# Audit of {escape(audit.name)}: {summarize(audit)}"
    yield escape(describe_results(audit))
    for dataset in audit.datasets:
        yield f"## {escape(dataset.name)}"
        yield escape(describe_dataset(dataset))
        rows = [(check.title, _describe_state(check)) for check in dataset.checks]
        yield format_table(("check", "outcome"), [(escape(title), escape(state)) for title, state in rows])
        for check in dataset.checks:
            if check.findings or check.tables:
                yield from _write_check(check)


def _describe_state(check: audit_findings.CheckContent) -> str:
    if check.findings:
        return f"{len(check.findings):,} found"
    return "✓" if check.skipped is None else f"not checked: {check.skipped}"


def _write_check(check: audit_findings.CheckContent) -> Iterator[str]:
    yield f"### {escape(check.title)}"
    if check.remark:
        yield escape(check.remark)
    for table in check.tables:
        rows = [tuple(map(quote_cell, row)) for row in ([cell or " " for cell in row] for row in table.rows)]
        yield format_table(tuple(map(escape, table.header)), rows)
    if check.findings:
        yield "\n".join(map(_write_alike, audit_findings.group_alike(check.findings[:MOST_IN_MARKDOWN])))
    if (rest := len(check.findings) - MOST_IN_MARKDOWN) > 0:
        yield f"... and {rest:,} more; `--format json` lists all."


def _write_alike(group: Sequence[audit_findings.AuditFinding]) -> str:
    """A finding, or several that say the same with a line for each row."""
    finding, is_one = group[0], len(group) == 1
    place = f"{quote(str(finding.rows[0]))}: " if finding.rows and is_one else ""
    head = f"- **{NOUNS[finding.severity]}** {place}{escape(finding.message)}"
    if is_one:
        rows = [f"  > {escape(make_visible(row.question))}" for row in finding.rows if row.question]
    else:
        rows = [f"  - {quote(str(row))} {escape(make_visible(row.question))}" for one in group for row in one.rows]
    return "\n".join([head, *rows, "", f"  {escape(finding.advice)}"])


MOST_ON_PAGE = 300
"""The most findings of a check that the page lists; JSON has all."""
_ASSETS = Path(__file__).parent / "assets"
_SIGNS = {"found": "!", "clean": "✓", "skipped": "–"}


def render_page(audit: audit_findings.Audit) -> bytes:
    """The page in UTF-8. It makes no request, runs no script, and shows texts as texts."""
    return fill_page(
        (_ASSETS / "audit.html.jinja").read_text(encoding="utf-8"),
        join_styles(("page.css",)) + (_ASSETS / "audit.css").read_text(encoding="utf-8"),
        title=make_visible(audit.name),
        summary=summarize(audit),
        verdict="fail" if audit.count("error") else "warn" if audit.count("warning") else "pass",
        results=make_visible(describe_results(audit)),
        counts=[(noun, audit.count(severity)) for severity, noun in NOUNS.items()],
        datasets=[_describe(number, dataset) for number, dataset in enumerate(audit.datasets)],
    )


def _describe(number: int, dataset: audit_findings.DatasetContent) -> dict[str, Any]:
    checks = [_describe_check(f"check-{number}-{place}", check) for place, check in enumerate(dataset.checks)]
    return {
        "id": f"dataset-{number}",
        "name": make_visible(dataset.name),
        "facts": make_visible(describe_dataset(dataset)),
        "checks": checks,
        "skipped": [check for check in checks if check["skipped"] and not check["has_block"]],
    }


def _describe_check(anchor: str, check: audit_findings.CheckContent) -> dict[str, Any]:
    shown = check.findings[:MOST_ON_PAGE]
    found = {one.severity for one in check.findings}
    rest = len(check.findings) - len(shown)
    described = [_describe_alike(group) for group in audit_findings.group_alike(shown)]
    advised = ["", *(one["advice"] for one in described)]
    return {
        "id": anchor,
        "title": make_visible(check.title),
        "state": check.state,
        "has_block": bool(check.findings or check.tables or check.remark),
        "sign": _SIGNS[check.state],
        "worst": next((severity for severity in audit_findings.SEVERITIES if severity in found), None),
        "count": len(check.findings),
        "skipped": make_visible(check.skipped or ""),
        "remark": make_visible(check.remark),
        "findings": [one | {"repeats": one["advice"] == last} for one, last in zip(described, advised, strict=False)],
        "more": f"{count_noun(rest, 'more finding')} in the JSON: --format json" if rest > 0 else "",
        "tables": [
            {
                "header": [(make_visible(name), at in table.numbers) for at, name in enumerate(table.header)],
                "rows": [
                    [(make_visible(cell), at in table.numbers) for at, cell in enumerate(row)] for row in table.rows
                ],
            }
            for table in check.tables
        ],
    }


def _describe_alike(group: Sequence[audit_findings.AuditFinding]) -> dict[str, Any]:
    finding = group[0]
    return {
        "severity": finding.severity,
        "noun": NOUNS[finding.severity],
        "code": finding.code,
        "message": make_visible(finding.message),
        "advice": make_visible(finding.advice),
        "removes": finding.removes,
        "place": make_visible(str(finding.rows[0])) if finding.rows and len(group) == 1 else "",
        "rows": [
            {"place": make_visible(str(row)), "id": make_visible(row.query_id), "question": make_visible(row.question)}
            for one in group
            for row in one.rows
        ],
    }


NOUNS: dict[audit_findings.Severity, str] = {"error": "error", "warning": "warning", "info": "remark"}
"""What a finding of each severity is called."""


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


MOST_IN_TEXT = 10
"""The most findings of a check that the text lists; JSON has all."""
_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}


def render_audit(audit: audit_findings.Audit) -> bytes:
    return render_text(lambda _: _draw(audit))


def _draw(audit: audit_findings.Audit) -> Iterator[RenderableType]:
    for dataset in audit.datasets:
        yield Text(make_visible(f"{audit.name} / {dataset.name}: {describe_dataset(dataset)}"), "bold")
        if audit.results:
            yield Text(make_visible(describe_results(audit)), "dim")
        yield ""
        for skipped, group in groupby(dataset.checks, _tell_why_skipped):
            checks = list(group)
            if skipped is None:
                for check in checks:
                    yield from _draw_check(check)
            else:
                titles = ", ".join(check.title for check in checks)
                yield Text(make_visible(f"{_SIGNS['skipped']} {titles}: {skipped}"), "dim")
    yield Text(make_visible(summarize(audit)), "bold")


def _tell_why_skipped(check: audit_findings.CheckContent) -> str | None:
    """Why a check was skipped, if that is all there is to say of it. Neighbours with the same reason share a line."""
    return None if check.findings or check.remark or check.tables else check.skipped


def _draw_check(check: audit_findings.CheckContent) -> Iterator[RenderableType]:
    style = {"found": "bold", "clean": "green", "skipped": "dim"}[check.state]
    count = f" ({len(check.findings):,})" if check.findings else ""
    reason = f": {check.skipped}" if check.skipped is not None and not check.findings else ""
    yield Text(make_visible(f"{_SIGNS[check.state]} {check.title}{count}{reason}"), style)
    if check.remark:
        yield Padding(Text(make_visible(check.remark), "dim"), (0, 0, 0, 2))
    advised = ""
    for group in audit_findings.group_alike(check.findings[:MOST_IN_TEXT]):
        yield from _draw_alike(group, advised)
        advised = group[0].advice
    if (rest := len(check.findings) - MOST_IN_TEXT) > 0:
        yield Padding(Text(f"... and {rest:,} more; --format json lists all.", "dim"), (0, 0, 0, 2))
    for table in check.tables:
        yield Padding(tabulate(table.header, table.rows, table.numbers), (0, 0, 0, 2))
    if check.findings or check.tables:
        yield ""


def _draw_alike(group: Sequence[audit_findings.AuditFinding], advised: str) -> Iterator[RenderableType]:
    """A finding as linters write it, its question, and what to do unless the last finding said the same.

    Several that say the same are one, with a line for each row.
    """
    finding, line = group[0], Text()
    if finding.rows and len(group) == 1:
        line.append(make_visible(f"{finding.rows[0]}: "))
    line.append(f"{NOUNS[finding.severity]}: ", _STYLES[finding.severity])
    line.append(make_visible(finding.message))
    line.append(f" [{finding.code}]", "dim")
    yield Padding(line, (0, 0, 0, 2))
    if len(group) > 1:
        for one in group:
            yield Padding(Text.assemble(make_visible(f"{one.rows[0]}: "), _quote(one.rows[0])), (0, 0, 0, 6))
    else:
        yield from (Padding(Text.assemble(_quote(row)), (0, 0, 0, 6)) for row in finding.rows[:2] if row.question)
    if finding.advice != advised:
        yield Padding(Text(make_visible(f"→ {finding.advice}"), "cyan"), (0, 0, 0, 6))


def _quote(row: audit_findings.AuditedRow) -> tuple[str, str]:
    return make_visible(row.question), "italic"


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2))
