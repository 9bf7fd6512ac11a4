"""Labels to buy, in words."""

from __future__ import annotations

import pytest

from rageval_spec.calibration.learning import Learning, LearningPoint, Need
from rageval_spec.commands.calibrate.labels_to_buy import draw_curve, say_needs
from rageval_spec.data.interval import Interval
from rageval_spec.reports.shared.console import render_text

ALONE = Need("labels_alone", 390, 0.3)
BOUNDS = Interval(170.4, 240.2, 0.95, "bootstrap-bca")


@pytest.mark.parametrize(
    ("need", "sentence"),
    [
        (
            Need("corrected_mean", 210, 0.2, BOUNDS),
            "The mean to ±0.05 takes 210 labels [170, 241] with this judge: 90 more. Without the judge, it takes 390.",
        ),
        (
            Need("corrected_mean", 80, 0.09, None),
            "The corrected mean is known to ±0.045, so that ±0.05 needs no more labels. "
            "Without the judge, it takes 390.",
        ),
        (
            Need("corrected_mean", None, 0.2, None),
            "Labels of all 500 answers would not show the mean to ±0.05: have the judge score more answers. Without "
            "the judge, it takes 390.",
        ),
    ],
)
def test_the_labels_of_a_mean(need: Need, sentence: str) -> None:
    assert [*say_needs(Learning(0.1, 500, (need, ALONE), ()), 120)] == [sentence]


def test_the_labels_of_other_measures() -> None:
    needs = (Need("auroc", 300, 0.12), Need("kappa", 900, 0.25))
    assert [*say_needs(Learning(0.1, 500, needs, ()), 120)] == [
        "AUROC to ±0.05 takes about 300 labels; kappa to ±0.05 takes about 900 labels."
    ]
    assert [*say_needs(Learning(0.5, 500, needs, ()), 120)] == []


def test_large_numbers_of_labels_are_grouped() -> None:
    needs = (
        Need("corrected_mean", 1618, 0.2, Interval(1170.4, 2240.2, 0.95, "bootstrap-bca")),
        Need("labels_alone", 3900, 0.3),
    )
    told = "takes 1,618 labels [1,170, 2,241] with this judge: 1,498 more. Without the judge, it takes 3,900."
    assert [*say_needs(Learning(0.1, 5000, needs, ()), 120)] == [f"The mean to ±0.05 {told}"]


def test_the_curve_says_what_is_expected() -> None:
    points = (LearningPoint(60, {"corrected_mean": 0.2}, True), LearningPoint(120, {"corrected_mean": 0.14}, False))
    text = render_text(lambda _: [draw_curve(Learning(0.1, 500, (), points))]).decode()
    assert "    60          ±0.100\n" in text
    assert "   120          ±0.070  expected" in text
