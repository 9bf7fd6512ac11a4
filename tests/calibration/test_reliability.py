"""Whether values mean what they say.

A map is chosen only if it is really better than none, judged on questions that had no part in fitting it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from rageval_spec.calibration.labelled_items import Item, Joined
from rageval_spec.calibration.measures import Measuring
from rageval_spec.calibration.reliability import MapChoice, Reliability, choose_map, rate_reliability


def simulate(off: float) -> Reliability | None:
    random = np.random.default_rng(2)
    shares = random.uniform(0, 1 - off, 300)
    return rate_reliability(
        shares + off, (random.random(300) < shares).astype(np.float64), Measuring(range(300), resamples=200)
    )


def test_a_generous_judge_is_off() -> None:
    found = simulate(0.2)
    assert found is not None and found.is_off
    assert found.error.value == pytest.approx(0.2, abs=0.06)
    assert found.error_by_mass.value == pytest.approx(found.error.value, abs=0.05)
    assert sum(one.count for one in found.bins) == 300
    brier = next(one for one in found.losses if one.name == "brier")
    parts = found.brier_parts
    assert brier.value == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty)
    assert brier.value is not None and brier.interval is not None
    assert brier.interval.low < brier.value < brier.interval.high


def test_a_judge_that_means_what_it_says_is_not_off() -> None:
    found = simulate(0.0)
    assert found is not None and not found.is_off


@pytest.mark.parametrize("value", [-0.1, 1.01])
def test_values_outside_0_and_1_are_no_probabilities(value: float) -> None:
    assert rate_reliability(np.array([0.5, value]), np.array([0.0, 1.0]), Measuring("ab")) is None


def test_one_answer_shows_nothing() -> None:
    found = rate_reliability(np.array([0.5]), np.array([1.0]), Measuring("a"))
    assert found is not None and not found.is_off


Floats = NDArray[np.float64]


def choose(values: Floats, labels: Floats, answers: int = 1) -> MapChoice:
    items: list[Item] = [("golden", "v1", f"q{row // answers}", None) for row in range(len(values))]
    joined = Joined("faithfulness", tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    return choose_map(joined, resamples=400)


def simulate_scores(rows: int, share: Callable[[Floats], Floats], seed: int = 1) -> tuple[Floats, Floats]:
    """A judge and how often its values are right."""
    random = np.random.default_rng(seed)
    values = random.random(rows)
    return values, (random.random(rows) < share(values)).astype(np.float64)


def test_values_that_mean_what_they_say_are_left_alone() -> None:
    chosen = [choose(*simulate_scores(150, lambda values: values, seed)).chosen for seed in range(40)]
    assert sum(one is not None for one in chosen) <= 3


def test_a_generous_judge_gets_platts_curve() -> None:
    found = choose(*simulate_scores(200, lambda values: 1 / (1 + np.exp(-(12 * values - 9)))))
    assert found.chosen is not None and found.chosen.kind == "platt"
    none, platt, isotonic = found.trials
    assert (none.kind, platt.kind, isotonic.kind) == ("none", "platt", "isotonic")
    assert none.error.value > 0.2 > 0.08 > platt.error.value
    assert platt.brier < none.brier and platt.log_loss < none.log_loss
    assert platt.is_better and none.gain is None
    assert found.reason is None


def test_steps_that_no_curve_follows_get_the_isotonic_map() -> None:
    steps = np.array([0.05, 0.5, 0.5, 0.95])
    found = choose(
        *simulate_scores(3000, lambda values: np.where(values > 0.97, 0.98, steps[(values * 2).astype(int)]))
    )
    assert found.chosen is not None and found.chosen.kind == "isotonic"
    assert [*map(found.chosen.apply, [0.2, 0.3, 0.7])] == pytest.approx([0.05, 0.05, 0.5], abs=0.06)


def test_what_a_map_learns_by_heart_does_not_count() -> None:
    # Both answers to a question have the same value and the same label, and values do not go with labels otherwise.
    random = np.random.default_rng(3)
    values, labels = np.repeat(random.random(60), 2), np.repeat((random.random(60) < 0.5) * 1.0, 2)
    found = choose(values, labels, answers=2)
    isotonic = [trial for trial in found.trials if trial.kind == "isotonic"]
    assert not isotonic or isotonic[0].brier > 0.2


@pytest.mark.parametrize(
    ("values", "labels", "reason"),
    [
        ([0.7] * 30, [1.0, 0.0] * 15, "the judge's values do not rise with the labels"),
        ([0.9, 0.1] * 15, [0.0, 1.0] * 15, "the judge's values do not rise with the labels"),
        ([0.9, 0.1] * 15, [1.0] * 30, "the judge's values do not rise with the labels"),
        ([0.9, 0.1], [1.0, 0.0], "there are too few questions to hold some out"),
        ([3.0, 1.0] * 15, [1.0, 0.0] * 15, "the judge's values are not all between 0 and 1"),
        ([1.0, 0.0] * 15, [1.0, 0.0] * 15, "no map is certain to bring the values closer to the labels"),
    ],
)
def test_labels_that_allow_no_map_say_why(values: list[float], labels: list[float], reason: str) -> None:
    found = choose(np.array(values), np.array(labels))
    assert (found.chosen, found.reason) == (None, reason)
