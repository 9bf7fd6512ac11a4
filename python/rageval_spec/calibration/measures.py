"""The numbers of a calibration with their intervals, and how many labels to buy for a wanted width.

One of these numbers is the mean of what people would say, from joined labels and values.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rageval_spec.calibration.labelled_items import Joined
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import DataError
from rageval_spec.libraries import np
from rageval_spec.statistics.intervals import RESAMPLES, bootstrap_interval
from rageval_spec.statistics.raters.corrected_means import CorrectedMean, correct_mean, respect_bounds
from rageval_spec.statistics.raters.discrimination import Decision, Discrimination
from rageval_spec.statistics.raters.label_counts import Spread, estimate_spread
from rageval_spec.statistics.raters.rank_correlation import RankCorrelation
from rageval_spec.statistics.raters.reliability_curves import Loss
from rageval_spec.statistics.regression import Association

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import Statistic

Name = Association | Discrimination | Decision | Loss | RankCorrelation | Literal["tau_b@10"]
BETWEEN = 0.5
"""Labels above it are a yes, labels below it a no."""


@dataclass(frozen=True, slots=True)
class CalibrationMeasure:
    """One number of a calibration. `reason` says why `value` is None, or why only `interval` is."""

    name: Name
    value: float | None
    interval: Interval | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Measuring:
    """How numbers get their intervals.

    Attributes:
        questions: what each row belongs to; whole questions are drawn, because answers to one are not independent.
        resamples: the number of bootstrap resamples.
        seed: equal seeds give equal intervals.
    """

    questions: Sequence[Hashable]
    resamples: int = RESAMPLES
    seed: int = 42

    def measure(self, name: Name, statistic: Statistic) -> CalibrationMeasure:
        """The number that a function of weights gives, with its interval.

        A perfect value has no interval: the resamples all have it, which does not make it certain. Nor has a bias that
        is the same for every item.
        """
        rows = len(self.questions)
        value = float(statistic(np.ones((1, rows)))[0])
        if not np.isfinite(value):
            return CalibrationMeasure(name, None, None, "the values, or the labels, are all the same")
        interval = bootstrap_interval(
            statistic, rows, clusters=self.questions, resamples=self.resamples, seed=self.seed
        )
        if interval is not None and interval.low == interval.high:
            return CalibrationMeasure(name, value, None, "not known: without a mistake, no resample has one")
        return CalibrationMeasure(name, value, interval)


def correct_judge(joined: Joined) -> CorrectedMean:
    """The corrected mean of all labels, with intervals that respect the bounds 0 and 1 (see `respect_bounds`)."""
    if not joined.counts(range(len(joined.items))):
        raise DataError(
            f"by the spec's weights, none of the questions with labels of {joined.metric} counts; label others"
        )
    mean = correct_with(joined, range(len(joined.items)))
    counting = [place for place in range(len(joined.items)) if joined.counts([place])]
    mean = respect_bounds(mean, np.array(joined.labelled)[counting], (0.0, 1.0), 0.95)
    return replace(
        mean,
        value=min(max(mean.value, 0.0), 1.0),
        interval=_clip(mean.interval),
        labelled_interval=_clip(mean.labelled_interval),
    )


def correct_with(joined: Joined, kept: Sequence[int]) -> CorrectedMean:
    """The corrected mean if only some of the items, by their places, had labels. It may lie outside 0 and 1.

    Questions count as the spec's weights say. Items that do not count at all are left out; one of those with labels
    must count.
    """
    counting = {item for item, share in joined.shares.items() if share > 0} or {*joined.items, *joined.others}
    with_labels = {*kept}
    kept = [place for place in kept if joined.items[place] in counting]
    dropped = [place for place, item in enumerate(joined.items) if place not in with_labels and item in counting]
    items = [joined.items[place] for place in kept]
    others = [item for item in joined.others if item in counting]
    rest = [*others, *(joined.items[place] for place in dropped)]
    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    shares = np.array([joined.shares[item] for item in (*items, *rest)]) if joined.shares else None
    return correct_mean(
        judged[kept],
        labelled[kept],
        np.array([*(joined.others[item] for item in others), *judged[dropped]], dtype=float),
        weights=None if joined.weights is None else np.array(joined.weights)[kept],
        clusters=[joined.cluster_of(item) for item in items],
        other_clusters=[joined.cluster_of(item) for item in rest],
        shares=shares if shares is None else shares / shares.sum(),
    )


def _clip(interval: Interval | None) -> Interval | None:
    """The part within 0 and 1, which loses nothing: no mean lies outside them."""
    if interval is None:
        return None
    low, high = (min(max(end, 0.0), 1.0) for end in (interval.low, interval.high))
    return replace(interval, low=low, high=high)


Quantity = Literal["corrected_mean", "labels_alone", "auroc", "kappa"]
WIDTH = 0.1
"""The wanted width of intervals, if none is named: plus or minus 0.05."""
_PARTS = (4, 2)
_TIMES = (1, 2, 4, 8)
_DRAWS = 30
_MEASURED: tuple[Quantity, ...] = ("auroc", "kappa")


@dataclass(frozen=True, slots=True)
class Need:
    """The labels that an interval of a wanted width needs.

    Attributes:
        quantity: what the interval is of. `corrected_mean` needs this judge, `labels_alone` none.
        labels: how many; None if not even labels of all answers would do.
            For measures other than means, at least as many as there are.
        now: how wide the interval is now; None if there is none.
        labels_interval: the interval of the number of labels; None if it is not known.
    """

    quantity: Quantity
    labels: int | None
    now: float | None
    labels_interval: Interval | None = None

    def is_met(self, width: float) -> bool:
        return self.now is not None and self.now <= width


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """How wide intervals are with a number of labels.

    Attributes:
        labels: the number of labelled items.
        widths: the width of each interval. Those of means are measured, on random parts of the labels that there are.
            The others, and all for more labels than there are, are expected.
        is_measured: whether these labels are there.
    """

    labels: int
    widths: Mapping[Quantity, float]
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Learning:
    """What more labels would bring, of `rows` judged answers: what a wanted width needs, and how widths shrink."""

    width: float
    rows: int
    needs: tuple[Need, ...]
    curve: tuple[LearningPoint, ...]

    def find(self, quantity: Quantity) -> Need | None:
        return next((need for need in self.needs if need.quantity == quantity), None)


def plan_labels(
    joined: Joined, mean: CorrectedMean, measures: Sequence[CalibrationMeasure], width: float = WIDTH, seed: int = 42
) -> Learning | None:
    """How many labels intervals of a wanted width need; None if there is no interval to start from.

    The width of the corrected mean's interval follows from how well the judge's values go with the labels. Those of
    other measures, AUROC and kappa, shrink with the square root of the number of labels.
    """
    spread = estimate_spread(mean, len(set(joined.clusters)))
    if spread is None or spread.variance <= 0:
        return None
    widths: dict[str, float | None] = {one.name: _measure_width(one.interval) for one in measures}
    questions = len(set(joined.clusters))
    needs = [
        _find_need(spread, "corrected_mean", mean.interval, width, questions),
        _find_need(spread, "labels_alone", mean.labelled_interval, width, questions),
    ]
    needs += [
        Need(name, max(len(joined.items), math.ceil(len(joined.items) * (now / width) ** 2)), now)
        for name in _MEASURED
        if (now := widths.get(name)) is not None
    ]
    now = len(joined.items)
    fewer = [now // part for part in _PARTS if now // part >= 10]
    more = [now * times for times in _TIMES if now * times <= max(spread.rows, now)]
    curve = tuple(
        LearningPoint(labels, _find_widths(joined, spread, needs, labels, seed), labels <= now)
        for labels in (*fewer, *more)
    )
    return Learning(width, mean.rows, tuple(needs), curve)


def _find_need(spread: Spread, quantity: Quantity, interval: Interval | None, width: float, questions: int) -> Need:
    """The need of a mean with the interval of that number."""
    judged = quantity == "corrected_mean"
    labels = spread.count_labels(width, judged=judged)
    bounds = None if labels is None else spread.bound_labels(width, questions, judged=judged)
    return Need(quantity, labels, _measure_width(interval), bounds)


def _measure_width(interval: Interval | None) -> float | None:
    """How wide an interval is; None if there is none, or if it is a point, which says nothing about other labels."""
    return None if interval is None or interval.high <= interval.low else interval.high - interval.low


def _find_widths(
    joined: Joined, spread: Spread, needs: Sequence[Need], labels: int, seed: int
) -> dict[Quantity, float]:
    now = len(joined.items)
    known = {need.quantity: need.now for need in needs if need.now is not None}
    widths: dict[Quantity, float] = {
        "corrected_mean": spread.expect_width(labels),
        "labels_alone": spread.expect_width(labels, judged=False),
        **{name: known[name] * math.sqrt(now / labels) for name in _MEASURED if name in known},
    }
    if labels < now:
        widths |= measure_part(joined, labels, seed)
    elif labels == now:
        widths |= known
    return {name: width for name, width in widths.items() if math.isfinite(width)}


def measure_part(joined: Joined, labels: int, seed: int) -> dict[Quantity, float]:
    """The mean widths of the intervals of means with random parts of the labels; the other answers lose theirs."""
    random = np.random.Generator(np.random.PCG64(seed))
    found: dict[Quantity, list[float]] = {"corrected_mean": [], "labels_alone": []}
    for _ in range(_DRAWS):
        kept = random.permutation(len(joined.items))[:labels].tolist()
        if joined.counts(kept):
            mean = correct_with(joined, kept)
            for widths, interval in zip(found.values(), (mean.interval, mean.labelled_interval), strict=True):
                width = _measure_width(interval)
                widths += [] if width is None else [width]
    return {name: sum(widths) / len(widths) if widths else math.inf for name, widths in found.items()}
