"""The commands of `review`, as a user runs them."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import invoke
from tests.commands.label_files import write_labels


def test_files_and_options_are_passed_on(tmp_path: Path) -> None:
    columns = ("--column", "query_id=nr", "--column", "annotator=who")
    result = invoke("review", "agreement", write_labels(tmp_path), "--metric", "faithfulness", *columns)
    assert result.exit_code == 0
    assert "Agreement on faithfulness: 4 items, 4 with two or more labels, 2 annotators" in result.output


def test_mistakes_are_explained(tmp_path: Path) -> None:
    result = invoke("review", "agreement", write_labels(tmp_path))
    assert result.exit_code == 3
    assert "Name it: --column query_id=nr" in result.output
    assert invoke("review", "agreement").exit_code == 2
    assert "no such file" in invoke("review", "agreement", str(tmp_path / "absent.csv")).output.lower()
