"""One number with its interval, or why there is none.

The mean of what people would say: weighted as the spec says, and never known too well.

What more labels would bring.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rageval_spec.calibration.judge_quality import measure_judge
from rageval_spec.calibration.labelled_items import Item, Joined, join_labels
from rageval_spec.calibration.measures import Learning, Measuring, correct_judge, correct_with, measure_part
from rageval_spec.data.datasets import Design, DesignSummary
from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from tests.answered_evaluation import answered, sample, value

Floats = NDArray[np.float64]


def test_questions_are_drawn_as_wholes() -> None:
    numbers = np.repeat([0.0, 1.0] * 20, 10)

    def mean(weights: Floats) -> Floats:
        found: Floats = weights @ numbers / weights.sum(axis=1)
        return found

    together = Measuring([row // 10 for row in range(400)]).measure("mae", mean)
    apart = Measuring(range(400)).measure("mae", mean)
    assert together.value == apart.value == 0.5
    assert together.interval is not None and apart.interval is not None
    assert together.interval.high - together.interval.low > 2.5 * (apart.interval.high - apart.interval.low)


def test_a_number_that_is_not_defined_says_why() -> None:
    found = Measuring("ab").measure("pearson", lambda weights: np.full(len(weights), np.nan))
    assert (found.value, found.interval, found.reason) == (None, None, "the values, or the labels, are all the same")


METRIC = "faithfulness"


def join(labelled: list[float], judged: list[float] | None = None) -> Joined:
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(len(labelled))]
    others: dict[Item, float] = {("golden", "v1", f"other{row}", None): row / 40 for row in range(40)}
    return Joined(METRIC, tuple(items), tuple(judged or [0.7] * len(items)), tuple(labelled), (), others)


def test_labels_that_are_all_the_same_do_not_show_a_mean_exactly() -> None:
    mean = correct_judge(join([1.0] * 30, [row / 30 for row in range(30)]))
    assert mean.interval is not None
    assert [mean.value, mean.interval.high] == pytest.approx([1.0, 1.0])
    assert mean.interval.low == pytest.approx(0.025 ** (1 / 30))  # as in the reports of a spec
    assert mean.labelled_interval == mean.interval


def test_no_mean_lies_outside_what_people_can_say() -> None:
    joined = join([1.0] * 11 + [0.3])
    mean, raw = correct_judge(joined).interval, correct_with(joined, range(12)).interval
    assert mean is not None and raw is not None
    assert mean.high == 1.0 < raw.high


def weigh(weights: dict[str, float]) -> Joined:
    """Four questions, of which two are labelled, with the weights of the spec."""
    names = ["q1", "q2", "q3", "q4"]
    table = answered([value(name, METRIC, 0.5) for name in names], [sample(name) for name in names])
    design = Design(weights=weights, summary=DesignSummary(4))
    table = replace(table, load_question_designs=lambda: {"golden": design})
    labels = [Label("q1", METRIC, 1.0, "ann"), Label("q2", METRIC, 0.0, "ann")]
    return join_labels(table, labels, METRIC)


def test_questions_count_as_the_weights_of_the_spec_say() -> None:
    joined = weigh({"q1": 3.0, "q2": 1.0, "q3": 2.0, "q4": 2.0})
    assert [joined.shares[item] for item in joined.items] == pytest.approx([1.5, 0.5])
    mean = correct_judge(joined)
    assert mean.labelled == pytest.approx(0.75)
    assert mean.value == pytest.approx(0.75)


def test_questions_that_do_not_count_are_left_out() -> None:
    joined = weigh({"q1": 3.0, "q2": 1.0, "q3": 2.0})
    assert correct_judge(joined).rows == 3
    with pytest.raises(DataError, match="none of the questions with labels of faithfulness counts; label others"):
        correct_judge(weigh({"q3": 2.0, "q4": 1.0}))


def join_made_up(labels: int, rows: int, skill: float = 0.7, constant: float | None = None) -> Joined:
    random = np.random.default_rng(1)
    truth = (random.random(rows) < 0.6).astype(np.float64) if constant is None else np.full(rows, constant)
    judged = np.where(random.random(rows) < skill, 0.1 + 0.8 * truth, random.random(rows))
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(rows)]
    others = dict(zip(items[labels:], judged[labels:].tolist(), strict=True))
    return Joined(
        "faithfulness",
        tuple(items[:labels]),
        tuple(judged[:labels].tolist()),
        tuple(truth[:labels].tolist()),
        (),
        others,
    )


def plan(joined: Joined, width: float = 0.1) -> Learning:
    found = measure_judge(joined, width=width, resamples=300).learning
    assert found is not None
    return found


def test_a_judge_saves_labels() -> None:
    found = plan(join_made_up(120, 1000))
    with_judge, without = found.find("corrected_mean"), found.find("labels_alone")
    assert with_judge is not None and without is not None
    assert with_judge.labels is not None and without.labels is not None
    assert with_judge.labels < 0.8 * without.labels
    assert with_judge.labels_interval is not None
    assert with_judge.labels_interval.low < with_judge.labels < with_judge.labels_interval.high


def test_the_curve_falls_and_goes_on_as_far_as_there_are_answers() -> None:
    found = plan(join_made_up(120, 600))
    assert [(point.labels, point.is_measured) for point in found.curve] == [
        (30, True), (60, True), (120, True), (240, False), (480, False),
    ]  # fmt: skip
    for name in ("corrected_mean", "labels_alone", "auroc", "kappa"):
        widths = [point.widths[name] for point in found.curve]
        assert widths == sorted(widths, reverse=True)


def test_parts_of_the_labels_have_the_expected_widths() -> None:
    joined = join_made_up(400, 400)
    found, part = plan(joined), measure_part(joined, 100, 42)
    expected = next(point for point in found.curve if point.labels == 100)
    assert part["labels_alone"] == expected.widths["labels_alone"]
    assert part["labels_alone"] == pytest.approx(2 * found.curve[-1].widths["labels_alone"], rel=0.05)


def test_an_interval_that_is_narrow_enough_needs_no_more() -> None:
    found = plan(join_made_up(300, 1000), width=0.5)
    assert all(need.is_met(0.5) for need in found.needs)
    auroc = found.find("auroc")
    assert auroc is not None and auroc.labels == 300


def test_a_width_that_labels_of_all_answers_would_not_reach() -> None:
    need = plan(join_made_up(100, 200), width=0.01).find("corrected_mean")
    assert need is not None and need.labels is None and need.labels_interval is None


@pytest.mark.parametrize(
    "joined", [join_made_up(1, 10), join_made_up(40, 60, constant=1.0)], ids=["one label", "all yes"]
)
def test_without_a_spread_there_is_no_plan(joined: Joined) -> None:
    assert measure_judge(joined, resamples=50).learning is None
