"""Windows against bounds and against their baselines."""

from pathlib import Path

import numpy as np
import pytest

from rageval_spec.metrics.error_rate import ErrorRate
from rageval_spec.metrics.latency import Latency, LatencyNode
from rageval_spec.monitoring.ledger import Judgement, SampledTrace
from rageval_spec.monitoring.looks import windows
from rageval_spec.monitoring.looks.detectors import FixedBaseline
from rageval_spec.monitoring.looks.levels import compare_window, is_surely_beyond
from rageval_spec.monitoring.looks.windows import Span, WindowReader, WindowValues
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.plugin import Context, MetricNode
from rageval_spec.spec.blocks.monitor import WindowNode
from rageval_spec.statistics.intervals import Resampling
from rageval_spec.statistics.window_summaries import WindowSummary
from tests.monitoring.seen_traces import BEGAN, fill, open_ledger, seen

ERRORS = Series(1, "error_rate", ErrorRate(MetricNode(use="error_rate"), Context("error_rate")))
P95 = Series(1, "latency@p95", Latency(LatencyNode(use="latency", percentile=95), Context("latency@p95")))
MEAN = Series(1, "latency", Latency(LatencyNode(use="latency"), Context("latency")))
RANDOM = np.random.default_rng(3)
HOUR = WindowNode(name="hour", length="1h")
START = BEGAN // 3600 * 3600


def hold(values: object, weight: float = 1.0) -> WindowValues:
    numbers = np.asarray(values, dtype=np.float64)
    return WindowValues((), numbers, np.full(len(numbers), weight), np.arange(len(numbers), dtype=np.float64))


def is_above(series: Series, values: object, bound: float, alpha: float = 0.0002) -> bool:
    return is_surely_beyond(series, hold(values), bound, above=True, alpha=alpha, largest=1.0)


def test_a_share_is_beyond_its_bound_only_when_that_is_sure() -> None:
    assert not is_above(ERRORS, [0.0, 0.0, 0.0, 1.0] * 4, 0.05)
    assert is_above(ERRORS, [1.0, 0.0, 0.0] * 40, 0.05)
    assert not is_above(ERRORS, [], 0.05)


def test_a_window_of_a_quarter_of_an_hour_is_enough_for_a_percentile() -> None:
    slow = [1.0] * 30 + [20.0] * 15
    assert is_above(P95, slow, 10.0)
    assert not is_above(P95, [1.0] * 44 + [20.0], 10.0)


def test_a_mean_without_a_highest_value_has_an_interval() -> None:
    assert is_above(MEAN, RANDOM.uniform(2, 3, 200), 1.5)
    assert not is_above(MEAN, [*RANDOM.uniform(1, 1.4, 200), 100.0], 1.5)


def test_levels_hold_at_their_alpha_in_quiet_windows() -> None:
    alarms = sum(is_above(ERRORS, RANDOM.random(60) < 0.1, 0.1, alpha=0.05) for _ in range(400))
    assert alarms <= 400 * 0.05


def test_a_window_is_compared_with_the_days_before(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = Series(ledger.find_series("feedback.thumbs", "", {}, BEGAN), "feedback.thumbs")
    reader = WindowReader(ledger, 60, Resampling(permutations=999))
    fill(ledger, series.id, [1.0, 1.0, 1.0, 0.0] * 60, began=START - 30_000, prefix="b")
    fill(ledger, series.id, [1.0, 0.0, 0.0, 0.0] * 15, began=START, prefix="n")
    found = compare_window(reader, series, *reader.find(series, HOUR, START + 3900), 7.0)
    assert found.difference is not None and found.difference.interval is not None
    assert found.baseline == "the 7 days before"
    assert found.difference.difference == pytest.approx(-0.5)
    assert found.difference.interval.high < -0.3
    assert found.difference.p_value == pytest.approx(0.001)


def test_no_data_is_not_zero(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = Series(ledger.find_series("feedback.thumbs", "", {}, BEGAN), "feedback.thumbs")
    reader = WindowReader(ledger, 60, Resampling())
    found = compare_window(
        reader, series, *reader.find(series, HOUR, START), FixedBaseline("main", np.ones(40), np.ones(40))
    )
    assert (found.difference, found.reason) == (None, "the window has no judged trace")


def test_short_windows_are_compared_with_the_same_hours(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = Series(ledger.find_series("feedback.thumbs", "", {}, BEGAN), "feedback.thumbs")
    reader = WindowReader(ledger, 60, Resampling(permutations=999))
    times = START - 14 * 86_400 + np.arange(0, 14 * 86_400, 1800)
    of_day = ((times - START) % (7 * 86_400)) < 3600  # the same hour of the week as the window
    fill(ledger, series.id, np.where(of_day, 0.2, 0.9).tolist(), began=times[0], step=1800, prefix="b")
    fill(ledger, series.id, [0.2] * 12, began=START, step=300, prefix="n")
    found = compare_window(reader, series, *reader.find(series, HOUR, START + 3900), 15.0)
    assert found.difference is not None
    assert found.difference.before == pytest.approx(0.2)


def test_a_window_of_very_many_values_comes_from_sums_that_are_nearly_the_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(tmp_path)
    name = P95.name
    series = Series(ledger.find_series(name, "", {}, BEGAN), name, P95.metric)
    reader = WindowReader(ledger, 60, Resampling())
    values = RANDOM.gamma(2.0, 1.0, 2000)
    fill(ledger, series.id, values.tolist(), began=START, step=1.5, prefix="n")
    exact = reader.read(series, HOUR, START + 3900)
    ledger.see([seen("n0", START, START, answer="Another.")], "live", None)
    (claimed,) = ledger.claim(START + 4000, 10, 300)
    again = Judgement(series.id, "n0", "judged", float(values[0]), 3.0)
    ledger.settle([SampledTrace(claimed, 3.0)], [again], START + 4000)
    monkeypatch.setattr(windows, "MANY", 1000)
    summary = reader.find(series, HOUR, START + 3900)[1]
    assert isinstance(summary, WindowSummary)
    assert summary.count == 2000
    assert summary.sums["weight"] == 2002
    summed = reader.read(series, HOUR, START + 3900)
    assert summed.value == pytest.approx(exact.value, rel=0.02)
    assert summed.percentiles == pytest.approx(exact.percentiles, rel=0.02)
    assert reader.read_summary(series, Span(START, START + 3600)).mean == pytest.approx(values.mean(), rel=0.01)
    assert is_surely_beyond(series, summary, 3.0, above=True, alpha=0.01, largest=1.0)
