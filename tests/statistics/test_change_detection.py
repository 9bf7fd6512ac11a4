"""E-detectors, against sums worked by hand, a slow reference, and simulated streams."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.statistics.change_detection import (
    Baseline,
    Detector,
    State,
    fit_baseline,
    replay,
    share_false_alarms,
)

STEPS = {"low": 0.05, "medium": 0.10, "high": 0.15}
UNITS = st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]) | st.floats(0, 1), min_size=1, max_size=30)


def fix_baseline(bound: float, deviation: float, *, weight: float = 1.0, largest: float = 1.0) -> Baseline:
    """The baseline of a stream that is compared with a bound; `deviation` is the standard deviation to expect.

    The deviation only sets how much is wagered. Too large or small a one delays alarms; it adds no false ones.
    """
    return Baseline(bound, 0.0, (weight / largest) * deviation**2, weight / largest, largest)


def test_two_values_worked_by_hand() -> None:
    # The bound is 0.5, the deviation 0.5 and the step 0.1, so that 0.1 / 0.25 = 0.4 is wagered on each unit.
    detector = Detector(fix_baseline(0.5, 0.5), {"drop": 0.1}, alpha=0.01)
    state, changes = detector.update(detector.begin(), [0.0, 1.0])
    # After 0, the first bettor has 1.2; after 1, that one and the second have 0.8 of what they had.
    assert state.capital[0][0][0] == pytest.approx((1.2 + 1) * 0.8)
    assert changes == [] and state.changed == [False]


def slow_sums(values: list[float], baseline: Baseline, steps: list[float], alpha: float) -> list[int]:
    """The places of alarms of a fall, from every bettor by itself; ends at the first one."""
    margins = [0, 1, 1.5, 2, 2.5, 3, 3.5, 4]
    wagers = [min(step / baseline.spread, 0.9 / (1 - baseline.mean + 4 * baseline.error)) for step in steps]
    for time in range(1, len(values) + 1):
        products = []
        for place, margin in enumerate(margins):
            mean = baseline.mean - margin * baseline.error
            total = 0.0
            for begin in range(time):
                for wager in wagers:
                    total += math.prod(1 + wager * (mean - value) for value in values[begin:time]) / len(wagers)
            nearer = margins[place - 1]
            bets = [0.25 * math.exp(at * nearer - at * at / 2) for at in (1.5, 3.0)]
            products.append(total * (0.5 + sum(bets) if place else 0.5))
        if min(products) >= 1 / alpha:
            return [time - 1]
    return []


@settings(max_examples=30, deadline=None)
@given(UNITS, st.floats(0.02, 0.5))
def test_the_first_alarm_is_that_of_the_slow_reference(values: list[float], alpha: float) -> None:
    baseline = Baseline(0.7, 0.02, 0.08)
    detector = Detector(baseline, {"a": 0.1, "b": 0.3}, alpha)
    _, changes = detector.update(detector.begin(), values)
    assert [one.place for one in changes if not one.is_over][:1] == slow_sums(values, baseline, [0.1, 0.3], alpha)


@settings(max_examples=30, deadline=None)
@given(UNITS, st.integers(1, 7), st.booleans())
def test_any_batching_gives_the_same_state_also_after_a_restart(values: list[float], size: int, both: bool) -> None:
    base = np.random.default_rng(1).beta(3, 1, 400)
    hours = np.arange(400) * 2
    detector = Detector(
        fit_baseline(base, np.resize([1.0, 5.0], 400), hours),
        STEPS,
        0.2,
        ("fall", "rise") if both else ("rise",),
        per_week=100.0,
    )
    weights, times = np.resize([5.0, 1.0, 2.0], len(values)), np.arange(len(values)) * 7
    whole, changes = detector.update(detector.begin(), values, weights, times)
    state, found = detector.begin(), []
    for start in range(0, len(values), size):
        part = slice(start, start + size)
        state, some = detector.update(State(*json.loads(json.dumps(state))), values[part], weights[part], times[part])
        found += [one._replace(place=one.place + start) for one in some]
    assert json.dumps(state) == json.dumps(whole)
    assert found == changes


def test_replay_alarms_where_updates_do() -> None:
    random = np.random.default_rng(3)
    bases, streams = random.beta(3, 1, (3, 300)), random.beta(3, 1, (3, 700))
    streams[:, 350:] *= 0.8
    detectors = [Detector(fit_baseline(own), STEPS, 1e-3) for own in bases]
    alarms = replay(detectors, streams)
    for row, detector in enumerate(detectors):
        _, changes = detector.update(detector.begin(), streams[row])
        assert np.flatnonzero(alarms[row]).tolist() == [one.place for one in changes if not one.is_over]
    assert alarms.any()


def test_a_fall_is_found_sized_and_over_when_the_mean_is_back() -> None:
    random = np.random.default_rng(5)
    detector = Detector(fit_baseline(random.beta(4, 1, 4000)), STEPS, 1 / 18_000)
    state, quiet = detector.update(detector.begin(), random.beta(4, 1, 1000))
    state, fallen = detector.update(state, random.beta(4, 1.9, 400))
    assert quiet == [] and len(fallen) == 1
    assert fallen[0].severity in ("medium", "high") and not fallen[0].is_over and fallen[0].side == "fall"
    (now,) = detector.describe(state)
    assert now.size == pytest.approx(4 / 5 - 4 / 5.9, abs=0.03) and now.severity == "medium"
    assert 380 <= now.values <= 440
    state, back = detector.update(state, random.beta(4, 1, 400))
    assert [one.is_over for one in back] == [True]
    assert detector.describe(state) == []


def test_the_number_of_false_alarms_is_at_most_alpha_for_each_value() -> None:
    random = np.random.default_rng(7)
    detector = Detector(fix_baseline(0.8, 0.4), STEPS, 0.01, ("fall", "rise"))
    streams = (random.random((200, 1000)) < 0.8).astype(float)
    counts = replay([detector] * 200, streams).sum(axis=1)
    assert 0.5 < counts.mean() < 0.01 * 1000


def test_the_number_of_false_alarms_is_bounded_for_estimated_and_seasonal_baselines() -> None:
    random = np.random.default_rng(11)
    hours = np.sort(random.integers(0, 168, (150, 1000)), axis=1)
    level = 0.7 + 0.1 * np.cos(np.arange(168) / 24 * 2 * np.pi)
    base, later = (random.random((150, 1000)) < level[hours] for _ in range(2))
    detectors = [
        Detector(fit_baseline(row.astype(float), hours=at), STEPS, 0.005, per_week=1000)
        for row, at in zip(base, hours, strict=True)
    ]
    counts = replay(detectors, later.astype(float), hours=hours + 168).sum(axis=1)
    assert counts.mean() + 1.645 * counts.std() / math.sqrt(150) < 0.005 * 1000
    few = (random.random((150, 50)) < 0.7).astype(float)
    plain = [Detector(fit_baseline(row), STEPS, 0.005) for row in few]
    counts = replay(plain, (random.random((150, 500)) < 0.7).astype(float)).sum(axis=1)
    assert counts.mean() < 0.005 * 500


def test_weighted_values_are_compared_with_the_mean_of_all_traffic() -> None:
    # Bad answers are always kept, good ones once in four: without weights the mean would seem to have fallen.
    random = np.random.default_rng(9)
    traffic = (random.random((100, 8000)) < 0.8).astype(float)
    kept = [row[(row == 0) | (random.random(8000) < 0.25)][:2500] for row in traffic]
    values = np.array(kept)
    weights = np.where(values == 0, 1.0, 4.0)
    detector = Detector(fix_baseline(0.8, 0.4, weight=2.5, largest=4.0), STEPS, 1e-3)
    assert replay([detector] * 100, values, weights).sum() < 0.001 * 2500 * 100
    assert replay([detector] * 100, values).sum(axis=1).min() >= 1


def test_a_baseline_has_scipys_mean_and_error() -> None:
    values = np.random.default_rng(2).random(500)
    found = fit_baseline(values)
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(stats.sem(values), rel=0.01)
    weights = np.resize([1.0, 3.0], 500)
    assert fit_baseline(values, weights).mean == pytest.approx(np.average(values, weights=weights))
    assert fit_baseline([1.0] * 50).spread == pytest.approx(0.25 / 51)


def test_offsets_follow_the_hours_of_the_week_and_are_shrunk() -> None:
    random = np.random.default_rng(4)
    hours = random.integers(0, 168 * 4, 8000)
    noise = random.normal(0, 0.1, 8000)
    flat = fit_baseline(0.5 + noise, hours=hours)
    assert np.abs(flat.offsets).max() < 0.03 and flat.wobble < 1e-5
    night = np.where(hours % 24 < 6, -0.1, 0.0)
    daily = fit_baseline(0.6 + night + noise, hours=hours)
    assert np.mean(daily.offsets[0:6]) == pytest.approx(-0.075, abs=0.01)
    assert np.mean(daily.offsets[8:20]) == pytest.approx(0.025, abs=0.01)


def test_false_alarms_are_shared_by_alerts_and_looks() -> None:
    alphas = share_false_alarms(1, 90, [200, 50])
    assert alphas == pytest.approx([1 / (2 * 90 * 200), 1 / (2 * 90 * 50)])
    assert 90 * (200 * alphas[0] + 50 * alphas[1]) == pytest.approx(1)
    with pytest.raises(ValueError, match="above 0"):
        share_false_alarms(0, 90, [200])


def test_what_cannot_be_is_an_error() -> None:
    detector = Detector(fix_baseline(0.5, 0.3), STEPS, 0.01)
    with pytest.raises(ValueError, match="between 0 and 1"):
        detector.update(detector.begin(), [1.2])
    with pytest.raises(ValueError, match="weight"):
        detector.update(detector.begin(), [0.2], [2.0])
    with pytest.raises(ValueError, match="finite"):
        detector.update(detector.begin(), [math.nan])
    with pytest.raises(ValueError, match="two values"):
        fit_baseline([0.5])
    with pytest.raises(ValueError, match="hour"):
        seasonal = Detector(fit_baseline([0.1, 0.9, 0.5], hours=[0, 1, 2]), STEPS, 0.1, per_week=10)
        seasonal.update(seasonal.begin(), [0.5])
    with pytest.raises(ValueError, match="in a week"):
        Detector(fit_baseline([0.1, 0.9, 0.5], hours=[0, 1, 2]), STEPS, 0.1)
    with pytest.raises(ValueError, match="steps above 0"):
        Detector(fix_baseline(0.5, 0.3), {}, 0.01)
