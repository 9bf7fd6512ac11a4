"""`review preferences`: what a user reads."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from rageval_spec.cli import cli


def write(folder: Path, *, both: bool = False) -> str:
    path = folder / "pairs.csv"
    lines = ["query_id,first,second,verdict"]
    for number in range(60):
        lines.append(f"q{number},{'w ' * (number % 7 + 1)},{'v ' * (number % 3)},{'second' if number % 5 else 'first'}")
        if both:
            lines.append(f"q{number},{'v ' * (number % 3)},{'w ' * (number % 7 + 1)},second")
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def test_a_place_that_wins_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["review", "preferences", write(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "Preferences: 60 verdicts" in result.output
    assert "! The answer that is shown first wins 20% [10.8%, 32.3%] of the verdicts (adjusted p" in result.output
    assert "No pair was judged in both orders" in result.output


def test_both_orders_are_compared(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["review", "preferences", write(tmp_path, both=True)])
    said = " ".join(result.output.split())
    assert "Of 60 pairs in both orders, 20% [10.8%, 32.3%] have the same verdict." in said
    assert "The answer shown first won both times in 0, the one shown second in 48 (p < 0.0001)." in said


def test_json_has_all_numbers(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["review", "preferences", write(tmp_path), "--format", "json"])
    (found,) = json.loads(result.output)
    assert found["first"]["value"] == 0.2
    assert found["swaps"] is None


def test_a_broken_file_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("query_id,first,second,verdict\nq,x,y,perhaps\n")
    result = CliRunner().invoke(cli, ["review", "preferences", str(path)])
    assert result.exit_code != 0
    assert "pairs.csv:2: the verdict is 'perhaps'" in str(result.output) + str(result.exception)


def test_few_questions_are_said(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("query_id,first,second,verdict\nq,x,y,first\n")
    result = CliRunner().invoke(cli, ["review", "preferences", str(path)])
    assert "Only 1 question: 50 or more show whether order and length matter." in result.output
    assert "✓" not in result.output
