"""Whether a window is surely worse than a bound, and how it differs from a baseline.

A window is looked at again and again while its last traces come. So the certainty comes from a confidence sequence,
which holds at all looks together: of the mean, or for a percentile, of the share of values beyond the bound. A p95 is
above 5 s exactly if more than 5 % of the values are. With many values, or without bounds of the values, an interval of
the same certainty stands in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import np
from rageval_spec.monitoring.looks.detectors import SEASONAL_DAYS, FixedBaseline, hour_of_week
from rageval_spec.monitoring.looks.windows import Found, Span, WindowReader, WindowValues, summarize
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.statistics.intervals import Resampling, ResamplingSettings
from rageval_spec.statistics.level_sequences import estimate_mean, judge_level
from rageval_spec.statistics.mean_intervals import compute_range, list_bounds
from rageval_spec.statistics.two_windows import WindowDifference, compare_means, compare_percentiles, compare_summaries
from rageval_spec.statistics.window_summaries import WindowSummary, summarize_values

_HOUR, _DAY = 3600.0, 86_400.0
_MOST_SEQUENTIAL = 5_000
"""With more values than this, an interval says nearly the same as a confidence sequence, at once."""
_FEW_RESAMPLES = 4_000
_PERMUTATIONS = 999


class WindowComparison(NamedTuple):
    """A window against its baseline.

    Attributes:
        baseline: what it is compared with: `the 7 days before`, or the name of a record.
        difference: None if the two cannot be compared; then `reason` says why.
    """

    baseline: str
    difference: WindowDifference | None
    reason: str | None = None


def is_surely_beyond(
    series: Series, found: Found, bound: float, *, above: bool, alpha: float, largest: float, seed: int = 0
) -> bool:
    """Whether the mean or the percentile is above a bound, or below it, but for a probability of alpha.

    `largest` is the largest weight that the sample gives.
    """
    settings = Resampling(resamples=_FEW_RESAMPLES, confidence=1 - 2 * alpha, seed=seed)
    if isinstance(found, WindowSummary):
        value, interval = summarize(series, found, settings)
        if series.percent is None:
            return is_beyond(interval, bound, above=above)
        return value is not None and (value > bound if above else value < bound)
    if not found.count:
        return False
    values, level, limits = found.values, bound, list_bounds(series.metric)
    if series.percent is not None:
        values = (values > bound if above else values < bound).astype(np.float64)
        level, limits, above = (1 - series.percent / 100 if above else series.percent / 100), (0.0, 1.0), True
    known = compute_range(limits, "mean", values.tolist())
    if known is None or known[1] is None or math.isinf(known[0]) or len(values) > _MOST_SEQUENTIAL:
        estimate = estimate_mean(values, found.weights, value_range=known, settings=settings)
        return estimate is not None and is_beyond(estimate.interval, level, above=above)
    most = max(largest, float(found.weights.max()))
    seen = judge_level(values, level, found.weights, largest=most, bounds=(known[0], known[1]), confidence=1 - alpha)
    return (seen.above if above else seen.below) >= 1 - alpha


def is_beyond(interval: Interval | None, bound: float, *, above: bool) -> bool:
    """Whether all of an interval is above a bound, or below it."""
    return interval is not None and (interval.low > bound if above else interval.high < bound)


def compare_window(
    reader: WindowReader, series: Series, span: Span, found: Found, baseline: float | FixedBaseline
) -> WindowComparison:
    """A window of a series against its baseline: values of an earlier evaluation, or so many days before.

    The traces are others, so nothing is paired. From two weeks of baseline on, a window shorter than a day is compared
    with the same hours of the week.
    """
    before: Found
    if isinstance(baseline, FixedBaseline):
        name = baseline.name
        before = WindowValues((), baseline.values, baseline.weights, np.zeros(len(baseline.values)))
    else:
        name = f"the {baseline:g} days before"
        before = reader.read_or_sum(series, Span(span.start - baseline * _DAY, span.start))
        before = _keep_hours(before, span) if isinstance(before, WindowValues) else before
    if not found.count or not before.count:
        missing = name if found.count else "the window"
        return WindowComparison(name, None, f"{missing} has no judged trace")
    return WindowComparison(name, _compare(series, before, found, reader.statistics))


def _keep_hours(found: WindowValues, span: Span) -> WindowValues:
    """The values of the hours of the week that a short window has, if there are two weeks of them."""
    days = float(np.ptp(found.started)) / _DAY if len(found.started) else 0.0
    if days < SEASONAL_DAYS or span.end - span.start >= _DAY:
        return found
    hours = hour_of_week(np.arange(span.start, span.end, _HOUR / 4))
    kept = np.flatnonzero(np.isin(hour_of_week(found.started), hours))
    return WindowValues((), found.values[kept], found.weights[kept], found.started[kept])


def _compare(series: Series, before: Found, now: Found, of: ResamplingSettings) -> WindowDifference | None:
    if isinstance(before, WindowSummary) or isinstance(now, WindowSummary):
        if series.percent is None:
            return compare_summaries(_summarize(before), _summarize(now), of.confidence)
        first, second = before.find_percentile(series.percent), now.find_percentile(series.percent)
        assert first is not None and second is not None, "both have values"
        return WindowDifference(first, second, second - first, None, None)
    of = Resampling(of.confidence, of.resamples, min(of.permutations, _PERMUTATIONS), of.seed)
    values, weights = (before.values, now.values), (before.weights, now.weights)
    if series.percent is not None:
        return compare_percentiles(values[0], values[1], series.percent, weights[0], weights[1], settings=of)
    bounds = compute_range(list_bounds(series.metric), "mean", *(one.tolist() for one in values))
    return compare_means(values[0], values[1], weights[0], weights[1], value_range=bounds, settings=of)


def _summarize(found: Found) -> WindowSummary:
    return found if isinstance(found, WindowSummary) else summarize_values(found.values, found.weights)
