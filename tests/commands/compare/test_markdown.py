"""A comparison as Markdown."""

from __future__ import annotations

from pathlib import Path

from tests.answered_evaluation import save
from tests.command_line import invoke
from tests.commands.compare.results import AFTER, BEFORE, evaluation


def test_numbers_are_a_table_and_changed_words_are_struck_or_bold(tmp_path: Path) -> None:
    before, after = save(evaluation(BEFORE), tmp_path / "before"), save(evaluation(AFTER), tmp_path / "after")
    told = invoke("compare", before, after, "--format", "markdown").stdout
    assert "| `golden` | `v1` | `token_f1` | 0.660 | 0.600 | −0.060 |" in told
    assert "Unchanged: latency of v1." in told
    assert "5 questions in both: 1 broken, 1 fixed, 1 worse, 1 with another answer, 1 as before." in told
    heading, question, answer = told[told.index("### ✗") :].split("\n\n")[:3]
    assert heading == "### ✗ broken: `q1` token\\_f1 0.900 → 0.100"
    assert (question, answer) == ("**Question:** Question q1?", "**Answer:** It is ~~red~~ **blue**.")
