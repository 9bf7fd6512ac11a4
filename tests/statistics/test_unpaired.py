"""Differences of systems whose labels are of different questions: by a plain search, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from rageval_spec.statistics.corrected import correct_mean
from rageval_spec.statistics.unpaired import Side, correct_difference

Floats = NDArray[np.float64]


def draw(seed: int, count: int, own: slice, other: slice, *, likes: float = 0.1) -> tuple[Side, Side]:
    """Two systems of which people would like 0.7 and 0.6 of the answers; the judge likes the first better."""
    random = np.random.default_rng(seed)
    hardness = random.random(count)
    sides = []
    for share, taken, more in ((0.7, own, likes), (0.6, other, 0.0)):
        truth = (np.where(random.random(count) < 0.5, hardness, random.random(count)) < share).astype(float)
        judged = np.clip(0.6 * truth + 0.2 + more + 0.2 * random.standard_normal(count), 0, 1)
        labels = np.full(count, math.nan)
        labels[taken] = truth[taken]
        sides.append(Side(judged, labels, np.ones(count)))
    return sides[0], sides[1]


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_difference_with_the_least_variance(weighted: bool) -> None:
    """A plain reference: the two weights are searched for, question by question."""
    own, other = draw(1, 90, slice(0, 40), slice(30, 75))
    shares = np.arange(1.0, 91) / np.arange(1.0, 91).sum() if weighted else np.full(90, 1 / 90)
    found = correct_difference(own, other, shares=shares if weighted else None)

    def measure(side: Side, weight: float) -> tuple[float, Floats]:
        counts = np.where(np.isnan(side.labels), 0, shares)
        counts /= counts.sum()
        value, parts = 0.0, np.zeros(90)
        for at in range(90):
            label = 0.0 if math.isnan(side.labels[at]) else side.labels[at]
            value += counts[at] * (label - weight * side.judged[at]) + weight * shares[at] * side.judged[at]
        labelled = sum(count * label for count, label in zip(counts, np.nan_to_num(side.labels), strict=True))
        for at in range(90):
            parts[at] += counts[at] * (np.nan_to_num(side.labels)[at] - labelled)
            parts[at] += weight * shares[at] * (side.judged[at] - shares @ side.judged)
            parts[at] -= weight * counts[at] * (side.judged[at] - counts @ side.judged)
        return value, parts

    def spread(weights: Floats) -> float:
        return float(((measure(own, weights[0])[1] - measure(other, weights[1])[1]) ** 2).sum())

    best = optimize.minimize(spread, np.zeros(2), tol=1e-12).x
    value = measure(own, best[0])[0] - measure(other, best[1])[0]
    assert found.value == pytest.approx(value, abs=1e-5)
    effective = (
        40
        if not weighted
        else min(
            round(float(shares[taken].sum() ** 2 / (shares[taken] ** 2).sum()))
            for taken in (slice(0, 40), slice(30, 75))
        )
    )
    assert found.degrees == effective - 1
    assert found.error == pytest.approx(math.sqrt(spread(best) * effective / (effective - 1)), rel=1e-4)
    half = (found.interval.high - found.interval.low) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, found.degrees) * found.error, rel=1e-4)
    assert (found.labels, found.worth is not None and found.worth > 85) == (85, True)


def test_with_labels_of_the_same_questions_it_is_about_the_paired_difference() -> None:
    own, other = draw(2, 200, slice(0, 80), slice(0, 80))
    found = correct_difference(own, other)
    judged, labels = own.judged - other.judged, own.labels - other.labels
    paired = correct_mean(judged[:80], labels[:80], judged[80:])
    assert found.labelled == pytest.approx(paired.labelled, rel=1e-12)
    assert found.value == pytest.approx(paired.value, abs=0.02)
    assert paired.interval is not None
    width, of_paired = found.interval.high - found.interval.low, paired.interval.high - paired.interval.low
    assert width == pytest.approx(of_paired, rel=0.05)


@pytest.mark.parametrize(("own", "other"), [((0, 50), (50, 100)), ((0, 50), (40, 90)), ((0, 20), (20, 90))])
def test_the_interval_covers_what_people_would_say(own: tuple[int, int], other: tuple[int, int]) -> None:
    found = [correct_difference(*draw(seed, 300, slice(*own), slice(*other))).interval for seed in range(600)]
    covered = sum(interval.low <= 0.1 <= interval.high for interval in found)
    assert 552 <= covered <= 588  # 92% to 98%


def test_the_judges_favour_is_taken_out() -> None:
    own, other = draw(3, 2000, slice(0, 400), slice(400, 800), likes=0.3)
    assert own.judged.mean() - other.judged.mean() > 0.25
    assert correct_difference(own, other).value == pytest.approx(0.1, abs=0.06)


def test_questions_of_a_cluster_are_not_independent() -> None:
    own, other = draw(4, 60, slice(0, 20), slice(20, 40))
    thrice = [Side(*(np.repeat(numbers, 3) for numbers in side)) for side in (own, other)]
    once, apart = correct_difference(own, other), correct_difference(*thrice)
    together = correct_difference(*thrice, clusters=[at // 3 for at in range(180)])
    assert together.value == pytest.approx(once.value, rel=1e-9)
    assert together.error == pytest.approx(once.error, rel=1e-9)
    assert apart.error < 0.65 * once.error


def test_rarely_chosen_answers_count_more() -> None:
    own, other = draw(5, 100, slice(0, 30), slice(40, 80))
    weights = np.where(np.arange(100) % 2 == 0, 3.0, 1.0)
    found = correct_difference(own._replace(weights=weights), other)
    expected = np.average(own.labels[:30], weights=weights[:30]) - other.labels[40:80].mean()
    assert found.labelled == pytest.approx(expected, rel=1e-12)


def test_a_judge_that_tells_nothing_leaves_the_labels() -> None:
    own, other = (side._replace(judged=np.full(60, 0.8)) for side in draw(6, 60, slice(0, 25), slice(25, 50)))
    found = correct_difference(own, other)
    assert found.value == pytest.approx(found.labelled, rel=1e-12)
    assert found.worth == pytest.approx(50)
