from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import invoke


def test_init_writes_what_runs_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    result = invoke("init", folder)
    assert result.exit_code == 0
    assert f"rageval-spec run {folder / 'spec.yaml'}" in result.stdout
    assert invoke("validate", folder / "spec.yaml").exit_code == 0
    assert invoke("run", folder / "spec.yaml", "-o", tmp_path / "out").exit_code == 0
    assert json.loads((folder / "spec.schema.json").read_text())["$schema"].startswith(
        "http://json-schema.org/draft-07"
    )


def test_init_overwrites_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    result = invoke("init", tmp_path)
    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert (tmp_path / "spec.yaml").read_text() == "mine"
    assert not (tmp_path / "data").exists()
    assert invoke("init", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "spec.yaml").read_text() != "mine"
