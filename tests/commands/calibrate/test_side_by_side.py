"""Several judges side by side."""

from __future__ import annotations

from rageval_spec.calibration.comparing import JudgeComparison, JudgeDifference, JudgeRow
from rageval_spec.calibration.measures import Measure
from rageval_spec.calibration.spending import Spending
from rageval_spec.commands.calibrate.side_by_side import conclude, draw_comparison
from rageval_spec.data.interval import Interval
from rageval_spec.reports.shared.console import render_text


def interval(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "bootstrap-bca")


def row(metric: str, judge: str | None, spending: Spending) -> JudgeRow:
    measures = (Measure("auroc", 0.9, interval(0.85, 0.95)), Measure("mae", 0.2, None), Measure("bias", 0.1, None))
    return JudgeRow(metric, judge, measures, spending)


def differ(first: str, second: str, difference: float, p_value: float = 0.002) -> JudgeDifference:
    return JudgeDifference(
        first, second, "auroc", difference, interval(difference - 0.05, difference + 0.05), p_value, p_value
    )


def show(*differences: JudgeDifference, details: bool = False, judge: str | None = "fast") -> str:
    rows = (
        row("a", judge, Spending(0.0012, 2.0, 0.31)),
        row("b", judge, Spending(0.0, 0.0)),
        row("c", None, Spending()),
    )
    return render_text(lambda _: draw_comparison(JudgeComparison(80, rows, differences), details=details)).decode()


def test_a_row_for_each_judge_with_what_it_costs() -> None:
    text = show()
    assert text.startswith("3 judges on the same 80 labelled items\n")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "metric judge AUROC 95% interval kappa 95% interval bias $/sample s/sample" in lines
    assert "a fast 0.900 [0.850, 0.950] +0.100 0.0012 0.310" in lines
    assert "b fast 0.900 [0.850, 0.950] +0.100 0" in lines
    assert "c 0.900 [0.850, 0.950] +0.100" in lines


def test_what_no_judge_spent_has_no_column() -> None:
    rows = (row("a", "fast", Spending(0.0)), row("b", "slow", Spending(0.1)))
    text = render_text(lambda _: draw_comparison(JudgeComparison(80, rows, ()), details=False)).decode()
    assert "$/sample" in text
    assert "s/sample" not in text.replace("$/sample", "")


def test_judges_that_are_not_known_have_no_column() -> None:
    assert "judge  " not in show(judge=None)


def test_the_better_judge_is_named_first() -> None:
    found = JudgeComparison(80, (), (differ("a", "b", -0.1), differ("b", "c", 0.2), differ("a", "c", 0.01, 0.8)))
    assert [*conclude(found)] == [
        "b tells good answers from bad ones better than a: AUROC +0.100 [0.050, 0.150], Holm-adjusted p = 0.0020.",
        "b tells good answers from bad ones better than c: AUROC +0.200 [0.150, 0.250], Holm-adjusted p = 0.0020.",
    ]


def test_nothing_certain_is_said_so() -> None:
    assert "These labels do not show that one judge is better than another." in show(differ("a", "b", 0.01, 0.8))


def test_many_differences_are_counted() -> None:
    found = JudgeComparison(80, (), tuple(differ("a", f"b{number}", 0.1) for number in range(8)))
    assert [*conclude(found)][-1] == "2 more differences of this kind: see --details."


def test_details_have_every_pair() -> None:
    assert "a less b" not in show(differ("a", "b", 0.01, 0.8))
    text = show(differ("a", "b", 0.01, 0.8), details=True)
    assert "a less b  AUROC        +0.010  [-0.040, 0.060]      0.8000" in text
    assert "mean absolute error" in text
