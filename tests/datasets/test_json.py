"""Golden sets in one JSON document, with a version or in columns: four lines of YAML run each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.datasets.question_rows import write_rows

SPEC = """\
version: 1
datasets: {golden: {use: json, path: NAME}}
systems: {bot: {use: file, path: NAME, columns: {answer: ground_truth}}}
metrics: [exact_match]
"""


@pytest.mark.parametrize("form", ["json", "columns.json"])
def test_four_lines_run_a_golden_set(tmp_path: Path, form: str) -> None:
    path = write_rows(tmp_path, form)
    (tmp_path / "spec.yaml").write_text(SPEC.replace("NAME", path.name))
    result = invoke("run", tmp_path / "spec.yaml", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "exact_match  1.000 [0.158, 1.000]     2/2" in result.stdout


def test_columns_of_different_lengths_are_a_diagnostic(tmp_path: Path) -> None:
    (tmp_path / "golden.json").write_text('{"question": ["a?", "b?"], "ground_truth": ["x"]}')
    (tmp_path / "spec.yaml").write_text(SPEC.replace("NAME", "golden.json"))
    result = invoke("validate", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    assert "the column 'question' has 2 values, but 'ground_truth' has 1" in " ".join(result.stderr.split())
