from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import invoke
from tests.tiny import write_spec


def test_plan_in_both_formats(tmp_path: Path) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    assert "1 retrieval to compute" in invoke("plan", path).stdout
    assert invoke("run", path).exit_code == 0
    assert "in the store" in invoke("plan", path).stdout
    steps = json.loads(invoke("plan", path, "--format", "json").stdout)["steps"]
    assert [step["state"] for step in steps if step["kind"] == "retrieve"] == ["in the store"]
