"""How intervals narrow with more labels, and how many labels to buy for a wanted width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rageval_spec.calibration.joining import Joined
from rageval_spec.calibration.means import correct_with
from rageval_spec.calibration.measures import Measure
from rageval_spec.data.interval import Interval
from rageval_spec.statistics.corrected import CorrectedMean
from rageval_spec.statistics.label_counts import Spread, find_spread
from rageval_spec.statistics.resampling import find_interval

Quantity = Literal["corrected_mean", "labels_alone", "auroc", "kappa"]
WIDTH = 0.1
"""The wanted width of intervals, if none is named: plus or minus 0.05."""
_PARTS = (4, 2)
_TIMES = (1, 2, 4, 8)
_DRAWS = 30
_RESAMPLES = 1000
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
        """Whether the interval is as narrow already."""
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
    """What more labels would bring.

    Attributes:
        width: the wanted width.
        rows: the number of judged answers, which is the most that can be labelled.
        needs: the labels that each interval needs.
        curve: how widths shrink with labels.
    """

    width: float
    rows: int
    needs: tuple[Need, ...]
    curve: tuple[LearningPoint, ...]

    def find(self, quantity: Quantity) -> Need | None:
        """The need of one interval; None if it is not known."""
        return next((need for need in self.needs if need.quantity == quantity), None)


def plan_labels(
    joined: Joined, mean: CorrectedMean, measures: Sequence[Measure], width: float = WIDTH, seed: int = 42
) -> Learning | None:
    """How many labels intervals of a wanted width need.

    The width of the corrected mean's interval follows from how well the judge's values go with the labels. Those of
    other measures shrink with the square root of the number of labels.

    Args:
        joined: the judge's values and the labels.
        mean: the corrected mean of these.
        measures: the judge's AUROC and kappa, with their intervals.
        width: the wanted width of the intervals, from end to end.
        seed: the seed of the parts of the labels that are drawn.

    Returns:
        The plan; None if there is no interval to start from.
    """
    spread = find_spread(mean, len(set(joined.clusters)))
    if spread is None or spread.variance <= 0:
        return None
    widths: dict[str, float | None] = {one.name: _measure_width(one.interval) for one in measures}
    needs = [
        _find_need(joined, spread, "corrected_mean", mean.interval, width, seed),
        _find_need(joined, spread, "labels_alone", mean.labelled_interval, width, seed),
    ]
    needs += [
        Need(name, max(len(joined.items), math.ceil(len(joined.items) * (now / width) ** 2)), now)
        for name in _MEASURED
        if (now := widths.get(name)) is not None
    ]
    return Learning(width, mean.rows, tuple(needs), _trace(joined, spread, needs, seed))


def _find_need(
    joined: Joined, spread: Spread, quantity: Quantity, interval: Interval | None, width: float, seed: int
) -> Need:
    """The need of a mean with the interval of that number."""
    import numpy as np

    judged = quantity == "corrected_mean"
    rate = spread.rate_need(np.array(joined.judged), np.array(joined.labelled), width, with_judge=judged)
    bounds = find_interval(rate, len(joined.items), clusters=joined.clusters, resamples=_RESAMPLES, seed=seed)
    return Need(quantity, spread.count_labels(width, judged=judged), _measure_width(interval), bounds)


def _measure_width(interval: Interval | None) -> float | None:
    """How wide an interval is; None if there is none, or if it is a point, which says nothing about other labels."""
    return None if interval is None or interval.high <= interval.low else interval.high - interval.low


def _trace(joined: Joined, spread: Spread, needs: Sequence[Need], seed: int) -> tuple[LearningPoint, ...]:
    """The curve from a quarter of the labels to eight times as many, as far as there are answers to label."""
    now = len(joined.items)
    fewer = [now // part for part in _PARTS if now // part >= 10]
    more = [now * times for times in _TIMES if now * times <= max(spread.rows, now)]
    return tuple(
        LearningPoint(labels, _find_widths(joined, spread, needs, labels, seed), labels <= now)
        for labels in (*fewer, *more)
    )


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
    import numpy as np

    random = np.random.Generator(np.random.PCG64(seed))
    found: list[tuple[Interval | None, Interval | None]] = []
    for _ in range(_DRAWS):
        kept = random.permutation(len(joined.items))[:labels].tolist()
        if joined.counts(kept):
            mean = correct_with(joined, kept)
            found.append((mean.interval, mean.labelled_interval))
    corrected, alone = (_average([_measure_width(one[side]) for one in found]) for side in (0, 1))
    return {"corrected_mean": corrected, "labels_alone": alone}


def _average(widths: Sequence[float | None]) -> float:
    """The mean of the widths that there are; infinite without one."""
    known = [width for width in widths if width is not None]
    return sum(known) / len(known) if known else math.inf
