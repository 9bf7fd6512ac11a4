"""Spans that real applications sent (tests/exchange/apps) become the questions and answers that were there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke
from tests.exchange.golden_app import FOLDER, import_app, load_expected

APPS = sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("app", APPS)
def test_an_application_is_read_as_it_was(app: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load_expected(app)["rows"]
    rows = import_app(app, tmp_path, monkeypatch.setenv)
    assert [_keep(row, wanted) for row, wanted in zip(rows, expected, strict=False)] == expected
    assert len(rows) == len(expected)


def test_an_import_ends_with_a_table(tmp_path: Path) -> None:
    done = invoke("import", "otel", FOLDER / "langgraph_agent.spans.json.gz", "-o", tmp_path / "rows.jsonl")
    names = [line.strip().rpartition("  ")[0].strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert done.exit_code == 0 and names[0] == "rows" and "contexts twice" in names and len(names) == 8


def _keep(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in wanted}
    return kept if kept.get("cost") is None else {**kept, "cost": pytest.approx(kept["cost"])}
