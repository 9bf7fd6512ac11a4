"""What the terminal shows beside the tables; `tests/reports/test_terminal.py` has the tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.data.bands import make_scale
from rageval_spec.data.evaluation import Comparison, Evaluation, Interval
from rageval_spec.plugin import Context
from rageval_spec.reports.terminal import TerminalNode, TerminalReport
from tests.sample_evaluation import make_evaluation


def show(evaluation: Evaluation, width: int = 200) -> str:
    node = TerminalNode(use="terminal", width=width)
    return TerminalReport(node, Context("terminal")).render(evaluation).decode()


def compare(metric: str, difference: float, baseline: str = "main") -> Comparison:
    interval = Interval(difference - 0.01, difference + 0.01)
    return Comparison("golden", metric, "bm25", baseline, difference, interval, 0.001, 0.002, 40, 30, 10)


def test_the_verdict_is_the_first_line() -> None:
    assert show(make_evaluation()).startswith("✗ Not ready: 1 of 3 gates failed, 1 warned. ndcg@10 of bm25 is 0.412")


def test_a_baseline_has_a_column_with_the_differences() -> None:
    text = show(replace(make_evaluation(), baselines=(compare("map", -0.05),)))
    assert "bm25 vs main" in text
    assert "-0.050 [-0.060, -0.040] ▼" in text


def test_a_baseline_that_is_in_the_table_has_no_column_if_there_is_no_room() -> None:
    evaluation = replace(make_evaluation(), baselines=(compare("map", -0.05, "hybrid"),))
    assert "bm25 vs hybrid" in show(evaluation, 200)
    assert "bm25 vs hybrid" not in show(evaluation, 80)


def test_words_of_a_scale_stand_beside_the_means() -> None:
    bands = {"map": make_scale({"good": 0.4, "fair": 0.35})}
    text = show(replace(make_evaluation(), bands=bands))
    assert "[0.300, 0.367] below" in text
    assert "[0.378, 0.462] good" in text
    assert "map: good ≥ 0.4, fair ≥ 0.35, else below" in text


@pytest.mark.parametrize(("lower", "colour"), [((), "31"), (("map",), "32")])
def test_marks_are_green_for_better_and_red_for_worse(
    monkeypatch: pytest.MonkeyPatch, lower: tuple[str, ...], colour: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    evaluation = replace(make_evaluation(), baselines=(compare("map", -0.05),), lower_is_better=lower)
    assert f"\x1b[{colour}m▼" in show(evaluation)
