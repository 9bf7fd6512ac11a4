"""Decides whether a whole interval clears a bound, and how many more queries would decide."""

from __future__ import annotations

import math
from typing import NamedTuple

from rageval_spec.data.evaluation import Counted, Verdict

_MOST = 1_000_000
"""More queries than this are not worth naming."""
_ROUNDING = 1e-9
"""So that a whole number that rounding moved up by a little is not raised to the next one."""


class Estimate(NamedTuple):
    """A number with its interval, from `queries` queries; or from as many labels, for a number corrected by labels."""

    point: float
    low: float
    high: float
    queries: int
    is_of_labels: bool = False


def decide(estimate: Estimate, bound: float, *, below_is_bad: bool, miss: Counted) -> Verdict:
    """`pass` if the whole interval clears the bound, `miss` if none of it does, else `inconclusive`.

    A number that equals the bound clears it.
    """
    worst, best = (estimate.low, estimate.high) if below_is_bad else (-estimate.high, -estimate.low)
    least = bound if below_is_bad else -bound
    if worst >= least:
        return "pass"
    return miss if best < least else "inconclusive"


def describe_decision(outcome: Verdict, estimate: Estimate, bound: float, limit: str, *, below_is_bad: bool) -> str:
    """Where the interval lies: `with the whole interval below the minimum 0.850`. `limit` is the bound in words."""
    if outcome == "inconclusive":
        return f"with {limit} inside the interval; {_describe_more(estimate, bound)}"
    is_above = (outcome == "pass") == below_is_bad
    side = ("at or above" if is_above else "at or below") if outcome == "pass" else ("above" if is_above else "below")
    return f"with the whole interval {side} {limit}"


def count_more(estimate: Estimate, bound: float) -> int | None:
    """How many more queries would decide, if their values varied as those seen do and had the same mean.

    The interval shrinks with the square root of the number of queries, so its end on the bound's side reaches the
    bound at `queries * (end - point)² / (bound - point)²` queries. None if that is more than a million.
    """
    end = estimate.low if bound < estimate.point else estimate.high
    distance = bound - estimate.point
    needed = estimate.queries * ((end - estimate.point) / distance) ** 2 if distance else math.inf
    return max(1, math.ceil(needed * (1 - _ROUNDING)) - estimate.queries) if needed <= _MOST else None


def _describe_more(estimate: Estimate, bound: float) -> str:
    more = count_more(estimate, bound)
    if more is None:
        noun = "labels" if estimate.is_of_labels else "queries"
        return f"the two are so close that no number of {noun} would decide"
    one, several = ("label", "labels") if estimate.is_of_labels else ("query", "queries")
    return f"at the variance seen, about {_round(more):,} more {one if more == 1 else several} would decide"


def _round(count: int) -> int:
    """Two significant digits, rounded up: the number is an estimate."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return math.ceil(count / unit) * unit
