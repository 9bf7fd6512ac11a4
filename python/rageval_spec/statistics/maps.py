"""Maps that turn a judge's value into what people would say on average: Platt's curve and isotonic steps.

Both rise with the value, so they keep the order of the answers. A map is a few numbers: it can be written to a file and
applied without numpy.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from rageval_spec.statistics.resampling import Floats

_NOTHING = 1e-9
"""What rounding can leave of a rise that is 0."""


@dataclass(frozen=True, slots=True)
class PlattMap:
    """`1 / (1 + exp(-(slope * value + intercept)))` (Platt, 1999); `slope` is positive."""

    slope: float
    intercept: float

    @property
    def kind(self) -> Literal["platt"]:
        """The word that a file has for maps of this kind."""
        return "platt"

    def apply(self, values: Sequence[float]) -> list[float]:
        """The mapped values, between 0 and 1, in the order of `values`."""
        return [_squash(self.slope * value + self.intercept) for value in values]

    def to_json(self) -> dict[str, Any]:
        """The map as JSON; `read_map` reads it."""
        return {"kind": self.kind, "slope": self.slope, "intercept": self.intercept}


@dataclass(frozen=True, slots=True)
class IsotonicMap:
    """A line through points that rises and never falls; flat before the first point and after the last.

    Attributes:
        values: the judge's values at the points, in ascending order.
        results: what they are mapped to.
    """

    values: tuple[float, ...]
    results: tuple[float, ...]

    @property
    def kind(self) -> Literal["isotonic"]:
        """The word that a file has for maps of this kind."""
        return "isotonic"

    def apply(self, values: Sequence[float]) -> list[float]:
        """The mapped values, in the order of `values`."""
        return [self._apply(value) for value in values]

    def _apply(self, value: float) -> float:
        after = bisect_right(self.values, value)
        if after == 0:
            return self.results[0]
        if after == len(self.values):
            return self.results[-1]
        low, high = self.values[after - 1], self.values[after]
        part = (value - low) / (high - low)
        return self.results[after - 1] + part * (self.results[after] - self.results[after - 1])

    def to_json(self) -> dict[str, Any]:
        """The map as JSON; `read_map` reads it."""
        return {"kind": self.kind, "values": [*self.values], "results": [*self.results]}


ValueMap: TypeAlias = PlattMap | IsotonicMap


def read_map(content: Mapping[str, Any]) -> ValueMap:
    """The map that `to_json` gave.

    Raises:
        ValueError: the content is not that of a map. The message says what is wrong.
    """
    kind = content.get("kind")
    if kind == "platt":
        return _read_platt(content)
    if kind == "isotonic":
        return _read_isotonic(content)
    raise ValueError(f"a map's kind is 'platt' or 'isotonic', not {kind!r}")


def _read_platt(content: Mapping[str, Any]) -> PlattMap:
    slope, intercept = content.get("slope"), content.get("intercept")
    if not (_is_number(slope) and _is_number(intercept) and slope > 0):
        raise ValueError("a 'platt' map needs the numbers 'slope' (above 0) and 'intercept'")
    return PlattMap(float(slope), float(intercept))


def _read_isotonic(content: Mapping[str, Any]) -> IsotonicMap:
    values, results = (_read_numbers(content.get(name)) for name in ("values", "results"))
    if not values or not results:
        raise ValueError("an 'isotonic' map needs the lists of numbers 'values' and 'results'")
    rises = all(a < b for a, b in itertools.pairwise(values))
    rises = rises and all(a <= b for a, b in itertools.pairwise(results))
    if len(values) != len(results) or not rises:
        raise ValueError("'values' and 'results' of an 'isotonic' map must be equally long and in ascending order")
    return IsotonicMap(values, results)


def _read_numbers(found: object) -> tuple[float, ...]:
    """The numbers of a list; none if it is not a list of numbers."""
    if not isinstance(found, list) or not all(map(_is_number, found)):
        return ()
    return tuple(map(float, found))


def _is_number(found: object) -> TypeGuard[float]:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)


def _squash(number: float) -> float:
    """The logistic function, without overflow."""
    if number >= 0:
        return 1 / (1 + math.exp(-number))
    grown = math.exp(number)
    return grown / (1 + grown)


def fit_isotonic(values: Floats, labels: Floats) -> IsotonicMap | None:
    """The rising line with the least squared error: pool adjacent violators.

    Args:
        values: the judge's values.
        labels: what people said of the same rows, from 0 to 1.

    Returns:
        The map, with the two ends of each flat part as its points. None if it would map all values to the same number:
        higher values then do not go with higher labels.
    """
    import numpy as np

    levels, places = np.unique(values, return_inverse=True)
    counts = np.bincount(places, minlength=len(levels)).astype(float)
    means = np.bincount(places, weights=labels, minlength=len(levels)) / np.maximum(counts, 1)
    blocks: list[tuple[float, float, int]] = []
    for mean, count in zip(means.tolist(), counts.tolist(), strict=True):
        block = (mean, count, 1)
        while blocks and blocks[-1][0] >= block[0]:
            block = _pool(blocks.pop(), block)
        blocks.append(block)
    if not blocks or blocks[-1][0] - blocks[0][0] <= _NOTHING:
        return None
    points: list[tuple[float, float]] = []
    start = 0
    for mean, _, width in blocks:
        ends = dict.fromkeys((float(levels[start]), float(levels[start + width - 1])))
        points += [(end, mean) for end in ends]
        start += width
    return IsotonicMap(tuple(value for value, _ in points), tuple(result for _, result in points))


def _pool(first: tuple[float, float, int], second: tuple[float, float, int]) -> tuple[float, float, int]:
    """Two blocks (mean, rows, levels) as one."""
    count = first[1] + second[1]
    return (first[0] * first[1] + second[0] * second[1]) / count, count, first[2] + second[2]


_MOST_STEPS = 100
_CLOSE = 1e-10


def fit_platt(values: Floats, labels: Floats) -> PlattMap | None:
    """The logistic curve that makes the labels most likely, by Newton's method (Lin, Lin and Weng, 2007).

    Labels are drawn a little towards the middle, as if there were one more yes and one more no (Platt, 1999): a judge
    that makes no mistake in the labels still gets a finite slope. A label between 0 and 1 counts as a part of a yes and
    a part of a no.

    Args:
        values: the judge's values.
        labels: what people said of the same rows, from 0 to 1.

    Returns:
        The map; None if the curve does not rise: higher values then do not go with higher labels.
    """
    import numpy as np

    spread = float(values.std()) if len(values) else 0.0
    if spread <= _NOTHING:
        return None
    centre = float(values.mean())
    yes = float(labels.sum())
    high, low = (yes + 1) / (yes + 2), 1 / (len(labels) - yes + 2)
    targets = low + labels * (high - low)
    design = np.column_stack([(values - centre) / spread, np.ones_like(values)])
    found = np.array([0.0, math.log((yes + 1) / (len(labels) - yes + 1))])
    loss = _find_loss(design @ found, targets)
    for _ in range(_MOST_STEPS):
        shares = (1 + np.tanh(design @ found / 2)) / 2
        slope = design.T @ (shares - targets)
        if abs(slope).max() <= _CLOSE * len(labels):
            break
        curve = (design.T * (shares * (1 - shares))) @ design + _CLOSE * np.eye(2)
        step = np.linalg.solve(curve, slope)
        found, loss, moved = _walk(design, targets, found, step, loss)
        if not moved:
            break
    rise = float(found[0]) / spread
    return PlattMap(rise, float(found[1]) - rise * centre) if found[0] > _NOTHING else None


def _walk(design: Floats, targets: Floats, start: Floats, step: Floats, loss: float) -> tuple[Floats, float, bool]:
    """Go along the step, half as far each time until the loss falls; and whether it fell."""
    length = 1.0
    while length > _CLOSE:
        there = start - length * step
        reached = _find_loss(design @ there, targets)
        if reached < loss:
            return there, reached, True
        length /= 2
    return start, loss, False


def _find_loss(numbers: Floats, targets: Floats) -> float:
    import numpy as np

    return float((np.logaddexp(0, numbers) - targets * numbers).sum())
