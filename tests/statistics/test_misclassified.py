"""Rogan and Gladen's correction: by hand, against a slow search, and its coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rageval_spec.statistics.misclassified import UncorrectableError, correct_share

Floats = NDArray[np.float64]
Z = 1.959963984540054


def rows(right_yes: int, yes: int, right_no: int, no: int) -> tuple[Floats, Floats]:
    """Decisions and labels of a judge that is right on some of the answers that people call good, and of the others."""
    judged = [1.0] * right_yes + [0.0] * (yes - right_yes) + [0.0] * right_no + [1.0] * (no - right_no)
    return np.array(judged), np.array([1.0] * yes + [0.0] * no)


def test_by_hand() -> None:
    # With half a right and half a wrong decision added: sensitivity (18 + 0.5) / (20 + 1), specificity
    # (8 + 0.5) / (12 + 1). The judge says yes on 22 of the 32 labelled answers and on 48 of 68 others: 70 of 100.
    judged, labelled = rows(18, 20, 8, 12)
    others = np.array([1.0] * 48 + [0.0] * 20)
    found = correct_share(judged, labelled, others)
    sensitivity, specificity = 18.5 / 21, 8.5 / 13
    assert (found.sensitivity, found.specificity) == pytest.approx((sensitivity, specificity), rel=1e-14)
    assert found.value == pytest.approx((0.7 + specificity - 1) / (sensitivity + specificity - 1), rel=1e-14)
    assert found.interval.low < found.value < found.interval.high
    assert float(found.parts @ found.parts) + found.added == pytest.approx(found.error**2, rel=1e-12)


@given(
    right_yes=st.integers(0, 30), wrong_yes=st.integers(0, 15), right_no=st.integers(0, 30),
    wrong_no=st.integers(0, 15), yes=st.integers(0, 60), no=st.integers(0, 60),
)  # fmt: skip
def test_the_interval_has_the_shares_that_are_not_ruled_out(
    right_yes: int, wrong_yes: int, right_no: int, wrong_no: int, yes: int, no: int
) -> None:
    """A slow reference: test each share on its own, with the variance that each row contributes to it."""
    assume(right_yes + wrong_yes and right_no + wrong_no)
    judged, labelled = rows(right_yes, right_yes + wrong_yes, right_no, right_no + wrong_no)
    others = np.array([1.0] * yes + [0.0] * no)
    try:
        found = correct_share(judged, labelled, others)
    except UncorrectableError:
        return
    total, said = len(judged) + len(others), float(judged.sum() + others.sum())
    sizes = right_yes + wrong_yes + 1, right_no + wrong_no + 1
    rates = (right_yes + 0.5) / sizes[0], (right_no + 0.5) / sizes[1]

    def deviates(share: float) -> float:
        """How far the data lie from what they would be with this share, in standard errors."""
        variance = 0.0
        for place in range(total):
            decision = judged[place] if place < len(judged) else others[place - len(judged)]
            part = (decision - said / total) / total
            if place < len(judged) and labelled[place]:
                part -= share * (decision - rates[0]) / sizes[0]
            elif place < len(judged):
                part += (1 - share) * (1 - decision - rates[1]) / sizes[1]
            variance += part**2
        variance += share**2 * 0.5 * (rates[0] ** 2 + (1 - rates[0]) ** 2) / sizes[0] ** 2
        variance += (1 - share) ** 2 * 0.5 * (rates[1] ** 2 + (1 - rates[1]) ** 2) / sizes[1] ** 2
        return abs(said / total + rates[1] - 1 - share * (sum(rates) - 1)) / math.sqrt(variance)

    assert deviates(found.value) == pytest.approx(0, abs=1e-6)
    for end in (found.interval.low, found.interval.high):
        assert deviates(end) == pytest.approx(Z, rel=1e-6)


@pytest.mark.parametrize(
    ("share", "sensitivity", "specificity", "labels", "others"),
    [(0.7, 0.8, 0.7, 100, 400), (0.8, 0.97, 0.9, 100, 400), (0.9, 0.9, 0.8, 150, 1000), (0.7, 0.9, 0.9, 60, 1000)],
)
def test_the_interval_covers_the_share(
    share: float, sensitivity: float, specificity: float, labels: int, others: int
) -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(1000):
        truth = (random.random(labels + others) < share).astype(float)
        says_yes = random.random(labels + others) < np.where(truth == 1, sensitivity, 1 - specificity)
        judged = says_yes.astype(float)
        try:
            interval = correct_share(judged[:labels], truth[:labels], judged[labels:]).interval
        except UncorrectableError:
            covered += 1  # nothing is promised
            continue
        covered += interval.low <= share <= interval.high
    assert 935 <= covered <= 985


def test_more_rows_of_a_cluster_tell_no_more() -> None:
    judged, labelled = rows(36, 40, 16, 24)
    alone = correct_share(judged, labelled, judged)
    twice = correct_share(np.tile(judged, 2), np.tile(labelled, 2), np.tile(judged, 2))
    together = correct_share(
        np.tile(judged, 2),
        np.tile(labelled, 2),
        np.tile(judged, 2),
        clusters=[*range(64), *range(64), *range(64, 128), *range(64, 128)],
    )
    assert twice.error < 0.75 * alone.error
    assert together.error == pytest.approx(alone.error, rel=0.05)


def test_rows_that_were_chosen_more_often_count_less() -> None:
    judged, labelled = rows(18, 20, 8, 12)
    weights = np.where(judged == 1, 0.5, 1.0)  # answers that the judge likes were twice as likely to be labelled
    found = correct_share(judged, labelled, np.zeros(100), weights=weights)
    scale = 1 / weights.mean()
    expected = (18 * 0.5 * scale + 0.5) / ((18 * 0.5 + 2) * scale + 1)
    assert found.sensitivity == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((10, 12, 0, 0), "all 12 labels are yes, so they do not show how often the judge errs on the others"),
        ((0, 0, 5, 12), "all 12 labels are no"),
        ((5, 10, 5, 10), "the labels do not show that the judge says yes more often where people do"),
        ((6, 10, 6, 10), "the labels do not show that"),
    ],
)
def test_labels_that_do_not_tell_are_refused(counts: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(UncorrectableError, match=message):
        correct_share(*rows(*counts), np.ones(20))


def test_a_number_that_is_no_decision_is_refused() -> None:
    with pytest.raises(ValueError, match="every decision and every label must be 0 or 1"):
        correct_share(np.array([0.5, 1.0]), np.array([0.0, 1.0]), np.ones(2))
