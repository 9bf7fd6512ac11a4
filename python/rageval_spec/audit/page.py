"""Writes an audit as one HTML page, which opens without a server. It has no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rageval_spec.audit.finding import SEVERITIES, Audit, Check, DatasetAudit, Finding, group_alike
from rageval_spec.audit.summary import NOUNS, NUMERIC, describe_dataset, describe_results, summarize
from rageval_spec.reports.shared.page.shell import read_asset
from rageval_spec.wording import count_noun, make_visible

MOST_SHOWN = 300
"""The most findings of a check that the page lists; JSON has all."""
_ASSETS = Path(__file__).parent / "assets"
_SIGNS = {"found": "!", "clean": "✓", "skipped": "–"}


def render_page(audit: Audit) -> bytes:
    """The page in UTF-8. It makes no request, runs no script, and shows texts as texts."""
    import jinja2

    style = "\n" + read_asset("page.css") + (_ASSETS / "audit.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string((_ASSETS / "audit.html.jinja").read_text(encoding="utf-8"))
    page = template.render(
        title=make_visible(audit.name),
        policy=policy,
        style=style,
        summary=summarize(audit),
        verdict="fail" if audit.count("error") else "warn" if audit.count("warning") else "pass",
        results=make_visible(describe_results(audit)),
        counts=[(NOUNS[severity], audit.count(severity)) for severity in SEVERITIES],
        datasets=[_describe(number, dataset) for number, dataset in enumerate(audit.datasets)],
    )
    return page.encode("utf-8", "replace")


def _describe(number: int, dataset: DatasetAudit) -> dict[str, Any]:
    checks = [_describe_check(f"check-{number}-{place}", check) for place, check in enumerate(dataset.checks)]
    return {
        "id": f"dataset-{number}",
        "name": make_visible(dataset.name),
        "facts": make_visible(describe_dataset(dataset)),
        "checks": checks,
        "skipped": [check for check in checks if check["skipped"] and not check["has_block"]],
    }


def _describe_check(anchor: str, check: Check) -> dict[str, Any]:
    shown = check.findings[:MOST_SHOWN]
    worst = next((severity for severity in SEVERITIES if any(one.severity == severity for one in check.findings)), None)
    rest = len(check.findings) - len(shown)
    return {
        "id": anchor,
        "title": make_visible(check.title),
        "state": check.state,
        "has_block": bool(check.findings or check.tables or check.remark),
        "sign": _SIGNS[check.state],
        "worst": worst,
        "count": len(check.findings),
        "skipped": make_visible(check.skipped or ""),
        "remark": make_visible(check.remark),
        "findings": _describe_findings(shown),
        "more": f"{count_noun(rest, 'more finding')} in the JSON: --format json" if rest > 0 else "",
        "tables": [
            {
                "header": [(make_visible(name), name in NUMERIC) for name in table.header],
                "rows": [
                    [(make_visible(cell), name in NUMERIC) for name, cell in zip(table.header, row, strict=True)]
                    for row in table.rows
                ],
            }
            for table in check.tables
        ],
    }


def _describe_findings(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings, those that say the same as one, and advice only where the last finding has another."""
    described = [_describe_alike(group) for group in group_alike(findings)]
    advised = ["", *(one["advice"] for one in described)]
    return [one | {"repeats": one["advice"] == last} for one, last in zip(described, advised, strict=False)]


def _describe_alike(group: Sequence[Finding]) -> dict[str, Any]:
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
