from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import invoke


def test_init_writes_a_spec_that_runs_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    result = invoke("init", folder)
    assert result.exit_code == 0
    assert f"rageval-spec run {folder / 'spec.yaml'}" in result.stdout
    assert invoke("validate", folder / "spec.yaml").exit_code == 0
    assert invoke("run", folder / "spec.yaml", "-o", tmp_path / "out").exit_code == 0
    assert json.loads((folder / "spec.schema.json").read_text())["$schema"].startswith(
        "http://json-schema.org/draft-07"
    )


def test_init_writes_a_second_spec_for_answers_that_needs_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    assert "answers.yaml" in invoke("init", folder).stdout
    assert invoke("validate", folder / "answers.yaml").stderr == ""
    result = invoke("run", folder / "answers.yaml", "-o", tmp_path / "out")
    assert result.exit_code == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    means = {row["metric"]: row["mean"] for row in results["aggregates"]}
    assert 0.8 < means["faithfulness"] < 1  # one answer says what no text supports, to show what that looks like
    assert len(results["gates"]) == 3
    assert "kept for ten years" in (folder / "data" / "answers.jsonl").read_text()


def test_init_overwrites_files_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    result = invoke("init", tmp_path)
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert (tmp_path / "spec.yaml").read_text() == "mine"
    assert not (tmp_path / "data").exists()
    assert invoke("init", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "spec.yaml").read_text() != "mine"
