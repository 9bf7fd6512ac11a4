"""The mean of what people would say: weighted as the spec says, and never known too well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.calibration.joining import Item, Joined, join_labels
from rageval_spec.calibration.means import correct_judge, correct_with
from rageval_spec.data.design import Design, DesignSummary
from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from tests.answered_evaluation import answered, sample, value

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
