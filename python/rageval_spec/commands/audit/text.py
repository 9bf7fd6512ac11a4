"""An audit as text: findings under their checks, and what each check came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rageval_spec.audit.finding import Audit, Check, Finding, Row, group_alike
from rageval_spec.audit.summary import NOUNS, NUMERIC, describe_dataset, describe_results, summarize
from rageval_spec.reports.shared.console import render_text, tabulate
from rageval_spec.wording import make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_SHOWN = 10
"""The most findings of a check that the text lists; JSON has all."""
_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
_SIGNS = {"found": "!", "clean": "✓", "skipped": "–"}


def render_audit(audit: Audit) -> bytes:
    """The audit as text for a terminal."""
    return render_text(lambda _: _draw(audit))


def _draw(audit: Audit) -> Iterator[RenderableType]:
    from rich.text import Text

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


def _tell_why_skipped(check: Check) -> str | None:
    """Why a check was skipped, if that is all there is to say of it. Neighbours with the same reason share a line."""
    return None if check.findings or check.remark or check.tables else check.skipped


def _draw_check(check: Check) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    style = {"found": "bold", "clean": "green", "skipped": "dim"}[check.state]
    count = f" ({len(check.findings):,})" if check.findings else ""
    reason = f": {check.skipped}" if check.skipped is not None and not check.findings else ""
    yield Text(make_visible(f"{_SIGNS[check.state]} {check.title}{count}{reason}"), style)
    if check.remark:
        yield Padding(Text(make_visible(check.remark), "dim"), (0, 0, 0, 2))
    advised = ""
    for group in group_alike(check.findings[:MOST_SHOWN]):
        yield from _draw_alike(group, advised)
        advised = group[0].advice
    if (rest := len(check.findings) - MOST_SHOWN) > 0:
        yield Padding(Text(f"... and {rest:,} more; --format json lists all.", "dim"), (0, 0, 0, 2))
    for table in check.tables:
        numbers = {place for place, name in enumerate(table.header) if name in NUMERIC}
        yield Padding(tabulate(table.header, table.rows, numbers), (0, 0, 0, 2))
    if check.findings or check.tables:
        yield ""


def _draw_alike(group: Sequence[Finding], advised: str) -> Iterator[RenderableType]:
    """A finding as linters write it, its question, and what to do unless the last finding said the same.

    Several that say the same are one, with a line for each row.
    """
    from rich.padding import Padding
    from rich.text import Text

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


def _quote(row: Row) -> tuple[str, str]:
    return make_visible(row.question), "italic"
