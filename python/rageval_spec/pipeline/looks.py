"""The means that gates look at, question by question in the order in which the questions were drawn.

A gate looks at each of its bounds, and at the share of the questions that could be scored (`min_scored`). Each look is
the comparison of one mean of bounded values with one number, so a confidence sequence can decide it. A question without
a value is NaN. Where equality with the bound matters, the sample's mean tells; sequences exclude only other means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rageval_spec.data.drop import Drop, read_drop
from rageval_spec.data.evaluation import Counted
from rageval_spec.pipeline.rounds import Pairs, Scored, list_values
from rageval_spec.statistics import sequences

if TYPE_CHECKING:
    from rageval_spec.data.bands import Scale
    from rageval_spec.plugin import Metric
    from rageval_spec.spec.nodes import GateNode

_ROUNDING = 1e-9
"""Values that are outside a metric's bounds by no more than this are moved to them."""
_HALF = 0.5


Column: TypeAlias = Sequence[Scored]
"""The questions of a cell that were asked, in the order in which they were drawn."""


class Look(NamedTuple):
    """The comparison of a mean with a bound.

    Attributes:
        values: the values of the mean, in the order of the draw; NaN for a question without one.
        population: how many questions there are, asked or not.
        bound: the bound.
        bounds: the lowest and the highest possible value.
        passes_above: whether the mean must be at least the bound; otherwise at most.
        miss: the outcome of the gate if the mean is on the other side.
        is_share: whether it is the share of questions that could be scored, which mostly is all of them.
    """

    values: Sequence[float]
    population: int
    bound: float
    bounds: tuple[float, float]
    passes_above: bool = True
    miss: Counted = "fail"
    is_share: bool = False

    def decide(self, confidence: float) -> bool | None:
        """Whether the bound is met, once that is certain; None before.

        It stays open while the mean of the values seen is on the other side, so that a gate that is decided always has
        the outcome that its number shows.
        """
        known = [value for value in self.values if not math.isnan(value)]
        if not known:
            return None
        try:
            decision = self._compare(confidence)
        except ValueError:  # the metric is wrong about its bounds
            return None
        if decision is None:
            return None
        mean = math.fsum(known) / len(known)
        seen = mean >= self.bound if self.passes_above else mean <= self.bound
        return seen if seen == (decision.is_above == self.passes_above) else None

    def _compare(self, confidence: float) -> sequences.Decision | None:
        values = clip(self.values, self.bounds)
        if self.is_share:
            parts = sequences.NEARLY_ALL
            return sequences.decide(values, self.bound, self.population, confidence, self.bounds, parts)
        return sequences.decide(values, self.bound, self.population, confidence, self.bounds)


def clip(values: Sequence[float], bounds: tuple[float, float]) -> list[float]:
    """The values; those that rounding moved out of the bounds are moved back."""
    low, high = bounds
    ends = low - _ROUNDING, high + _ROUNDING
    return [min(max(value, low), high) if ends[0] <= value <= ends[1] else value for value in values]


def list_bound_looks(
    gate: GateNode, metric: Metric[Any], column: Column, population: int, scale: Scale | None
) -> Iterator[Look]:
    """The looks at `min`, `max`, `target` and `at_least`."""
    values = list_values(column)
    bounds = range_of(metric)
    if gate.min is not None:
        yield Look(values, population, gate.min, bounds)
    if gate.max is not None:
        yield Look(values, population, gate.max, bounds, passes_above=False)
    if gate.target is not None:
        yield Look(values, population, gate.target, bounds, metric.higher_is_better is not False, "warn")
    if gate.at_least is not None and scale is not None:
        bound = scale.bound_of(gate.at_least)
        assert bound is not None, "the spec's check refuses the level without a bound"
        yield Look(values, population, bound, bounds, passes_above=not scale.lower_is_better)


def list_drops(gate: GateNode) -> list[tuple[Drop, Counted]]:
    """The drops from its baseline that a gate allows, and what a larger one means; see `drops.check_drop`."""
    if gate.baseline is None:
        return []
    if gate.max_drop is not None:
        return [(read_drop(gate.max_drop), "fail")]
    grades = {} if gate.severities is None else gate.severities.drops
    graded: list[tuple[Drop, Counted]] = [
        (drop, "warn" if severity == "low" else "fail") for severity, drop in grades.items()
    ]
    return graded or [(Drop(0.0), "fail")]


def list_drop_looks(gate: GateNode, metric: Metric[Any], pairs: Pairs) -> Iterator[Look]:
    """The looks at the drops that a gate allows.

    A drop by a share of the baseline's mean, where that is not negative, is a bound of the mean of each value minus the
    rest of the baseline's value: with at most 5% below it, of `value - 0.95 * base`.
    """
    lower_is_better = metric.higher_is_better is False
    sign = 1 if lower_is_better else -1
    for drop, miss in list_drops(gate):
        factor = 1 + sign * drop.number if drop.is_share else 1.0
        bound = 0.0 if drop.is_share else sign * drop.number
        low, high = range_of(metric)
        ends = -factor * low, -factor * high
        bounds = low + min(ends), high + max(ends)
        values = [*pairs.subtract(factor).values()]
        yield Look(values, pairs.population, bound, bounds, not lower_is_better, miss)


def list_share_looks(gate: GateNode, metric: Metric[Any], column: Column, population: int) -> Iterator[Look]:
    """The look at the share of the questions that could be scored, for `min_scored`."""
    if gate.min_scored > 0:
        shares = [math.nan if metric.excuses and one.status == "unscorable" else _is_scored(one) for one in column]
        yield Look(shares, population, gate.min_scored, (0.0, 1.0), is_share=True)


def warns_of_few(gate: GateNode, metric: Metric[Any]) -> bool:
    """Whether the gate warns if most questions are excused; see `bounds.check_half`."""
    return metric.excuses and not metric.is_partial and "min_scored" not in gate.model_fields_set


def list_half_looks(column: Column, population: int) -> tuple[Look, Look]:
    """Whether half of the questions could be scored; and whether, if not, it is because the others are excused."""
    scored = [_is_scored(one) for one in column]
    excused = [_is_scored(one) + 2.0 * (one.status == "unscorable") for one in column]
    return Look(scored, population, _HALF, (0.0, 1.0)), Look(excused, population, 1.0, (0.0, 2.0))


def range_of(metric: Metric[Any]) -> tuple[float, float]:
    """The bounds of a metric that has both."""
    low, high = metric.bounds
    assert high is not None, "gates on other metrics need every question"
    return low, high


def settle(looks: Iterable[tuple[Look, bool | None]]) -> bool:
    """Whether the outcome of a gate is certain: `looks` are its bounds, and whether each is met (None: open)."""
    order: Mapping[str, int] = {"pass": 0, "warn": 1, "fail": 2}
    best = worst = order["pass"]
    for look, is_met in looks:
        miss = order[look.miss]
        best = max(best, miss) if is_met is False else best
        worst = max(worst, miss) if is_met is not True else worst
    return best == worst


def _is_scored(one: Scored) -> float:
    return float(one.status == "scored")
