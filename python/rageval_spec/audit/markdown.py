"""Writes an audit as Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rageval_spec.audit.finding import Audit, Check, Finding, group_alike
from rageval_spec.audit.summary import NOUNS, describe_dataset, describe_results, summarize
from rageval_spec.reports.shared.markup import escape, format_table, quote, quote_cell
from rageval_spec.wording import make_visible

MOST_SHOWN = 20
"""The most findings of a check that are listed; JSON has all."""


def render_markdown(audit: Audit) -> bytes:
    """The audit in UTF-8. Texts have no effect as Markdown or HTML."""
    return ("\n\n".join(_write(audit)) + "\n").encode("utf-8", "backslashreplace")


def _write(audit: Audit) -> Iterator[str]:
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


def _describe_state(check: Check) -> str:
    if check.findings:
        return f"{len(check.findings):,} found"
    return "✓" if check.skipped is None else f"not checked: {check.skipped}"


def _write_check(check: Check) -> Iterator[str]:
    yield f"### {escape(check.title)}"
    if check.remark:
        yield escape(check.remark)
    for table in check.tables:
        rows = [tuple(map(quote_cell, row)) for row in ([cell or " " for cell in row] for row in table.rows)]
        yield format_table(tuple(map(escape, table.header)), rows)
    if check.findings:
        yield "\n".join(map(_write_alike, group_alike(check.findings[:MOST_SHOWN])))
    if (rest := len(check.findings) - MOST_SHOWN) > 0:
        yield f"... and {rest:,} more; `--format json` lists all."


def _write_alike(group: Sequence[Finding]) -> str:
    """A finding, or several that say the same with a line for each row."""
    finding, is_one = group[0], len(group) == 1
    place = f"{quote(str(finding.rows[0]))}: " if finding.rows and is_one else ""
    head = f"- **{NOUNS[finding.severity]}** {place}{escape(finding.message)}"
    if is_one:
        rows = [f"  > {escape(make_visible(row.question))}" for row in finding.rows if row.question]
    else:
        rows = [f"  - {quote(str(row))} {escape(make_visible(row.question))}" for one in group for row in one.rows]
    return "\n".join([head, *rows, "", f"  {escape(finding.advice)}"])
