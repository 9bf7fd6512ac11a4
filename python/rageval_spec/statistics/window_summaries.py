"""What is kept of a window with too many values to hold: their number, their weighted moments, and a quantile sketch.

The sketch (DDSketch: C. Masson, J. E. Rim, H. K. Lee, PVLDB 12, 2019) counts values in buckets whose bounds grow by a
constant factor, so that any value of a bucket is within 1 % of its middle. It counts weights in millionths of 1: whole
numbers, whose sums are the same in any order, so a database can add them as parts arrive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import Floats, Ints, np

if TYPE_CHECKING:
    Numbers: TypeAlias = Sequence[float] | Floats


ACCURACY = 0.01
"""How far a percentile of the sketch is from a value of that rank, as a part of it."""
MANY = 100_000
"""A window with more values than this is summarised."""
_GROWTH = (1 + ACCURACY) / (1 - ACCURACY)
_UNITS = 1_000_000
"""The whole number that stands for the weight 1 in the sketch."""
_SMALLEST = 1e-12
"""A value closer to 0 than this counts as 0 in the sketch."""
_POWERS = ("weight", "weight2", "value", "value2", "weight2_value", "weight2_value2")


@dataclass(frozen=True)
class WindowSummary:
    """The summary of any number of values; without values, that of an empty window.

    Attributes:
        count: the number of values.
        sums: sums by name, over the values x with weights w: of w, w², w x, w x², w² x and w² x².
        buckets: the weight in each bucket of the sketch, in millionths of 1, by the bucket's number: positive ones for
            values above 0, negative ones for those below, and 0 for 0.
        low, high: the extreme values; None without any.
    """

    count: int = 0
    sums: Mapping[str, Fraction] = field(default_factory=lambda: dict.fromkeys(_POWERS, Fraction(0)))
    buckets: Mapping[int, int] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None

    @property
    def mean(self) -> float | None:
        """Hájek's weighted mean; None without values."""
        return float(self.sums["value"] / self.sums["weight"]) if self.count else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the values, weighted, with n / (n - 1) for n values; None for fewer than two."""
        if self.count < 2:
            return None
        mean = self.sums["value"] / self.sums["weight"]
        spread = self.sums["value2"] / self.sums["weight"] - mean**2
        return math.sqrt(max(Fraction(0), spread) * Fraction(self.count, self.count - 1))

    @property
    def error(self) -> float | None:
        """The standard error of the mean, of its linearisation (Särndal, Swensson and Wretman, 1992, section 5.7)."""
        if self.count < 2:
            return None
        mean = self.sums["value"] / self.sums["weight"]
        spread = self.sums["weight2_value2"] - 2 * mean * self.sums["weight2_value"] + mean**2 * self.sums["weight2"]
        return math.sqrt(max(Fraction(0), spread) * Fraction(self.count, self.count - 1)) / float(self.sums["weight"])

    @property
    def effective(self) -> float:
        """How many values of equal weight are worth as much (Kish); 0 without values."""
        return float(self.sums["weight"] ** 2 / self.sums["weight2"]) if self.count else 0.0

    def find_percentile(self, percent: float) -> float | None:
        """The value at which the weight reaches this part of all of it, within 1 % of the value; None without values.

        This is the inverse of the distribution function, without interpolation.
        """
        if self.low is None or self.high is None:
            return None
        wanted, upto = Fraction(percent) / 100 * sum(self.buckets.values()), 0
        for bucket in sorted(self.buckets):
            upto += self.buckets[bucket]
            if upto >= wanted:
                return min(max(find_middle(bucket), self.low), self.high)
        return self.high


def summarize_values(values: Numbers, weights: Numbers | None = None) -> WindowSummary:
    """The summary of values, of shape (n,), with weights, of the same shape and above 0; None if all count the same.

    A weight counts in the sketch as the nearest millionth, and at least one.

    Raises `ValueError` for numbers that are not finite, and weights not above 0.
    """
    numbers = np.asarray(values, dtype=np.float64)
    own = np.ones(len(numbers)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(numbers).all() and np.isfinite(own).all() and (own > 0).all() and len(own) == len(numbers)):
        raise ValueError("each value must be a finite number with a weight above 0")
    if not len(numbers):
        return WindowSummary()
    products = (own, own**2, own * numbers, own * numbers**2, own**2 * numbers, own**2 * numbers**2)
    sums = {name: Fraction(math.fsum(of)) for name, of in zip(_POWERS, products, strict=True)}
    of_value, units = find_buckets(numbers, own)
    places, rows = np.unique(of_value, return_inverse=True)
    weighed = np.zeros(len(places), dtype=np.int64)
    np.add.at(weighed, rows, units)
    buckets = dict(zip(places.tolist(), weighed.tolist(), strict=True))
    return WindowSummary(len(numbers), sums, buckets, float(numbers.min()), float(numbers.max()))


def find_buckets(numbers: Floats, weights: Floats) -> tuple[Ints, Ints]:
    """The number of the bucket of each value, and its weight there, in millionths of 1; for sums that a database adds.

    |x| is in the bucket k if growth^(k-1) < |x| / smallest <= growth^k.
    """
    sizes = np.maximum(np.abs(numbers) / _SMALLEST, 1.0)
    found: Ints = (np.sign(numbers) * np.ceil(np.log(sizes) / math.log(_GROWTH))).astype(np.int64)
    units: Ints = np.maximum(1, np.rint(weights * _UNITS)).astype(np.int64)
    return found, units


def find_middle(bucket: int) -> float:
    """The number that is within 1 % of all values of a bucket."""
    if not bucket:
        return 0.0
    return math.copysign(_SMALLEST * 2 * _GROWTH ** abs(bucket) / (_GROWTH + 1), bucket)
