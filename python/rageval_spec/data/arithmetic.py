"""Averages that do not depend on the order of their numbers, and comparisons that rounding does not turn.

The floats nearest to 0.7, 0.8 and 0.75 have an average just below 0.75, and three costs of 0.1 add up to more than 0.3.
Nobody who writes `min: 0.75` means that. So averages are rounded once, at the end, and every bound that a person
writes is compared by `reaches` and `exceeds`: a number that is as close to its bound as rounding can move it is level
with it. Nothing else may turn a number near its bound into a failure.

Ranking measures are the exception: their sums are trec_eval's, number by number, in its order. `terms` says of how many
numbers such a sum was made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import repeat

_UNITS = 4
"""How many units in the last place the arithmetic after a sum (a division, a change of scale) can be off by."""


def average(numbers: Iterable[float]) -> float:
    """The average of at least one number, rounded once: the same in every order, and `x` for numbers that are all `x`.

    Infinite numbers give what adding them up gives.

    Raises:
        ValueError: there is no number.
    """
    known = [*numbers]
    if not known:
        raise ValueError("an average needs at least one number")
    mean = math.fsum(known) / len(known)
    if not math.isfinite(mean):
        return mean
    # The sum was rounded before it was divided. What is left of the numbers is small, so it is known exactly.
    return mean + math.fsum([*known, *repeat(-mean, len(known))]) / len(known)


def f_measure(precision: float, recall: float, beta: float = 1.0) -> float:
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall), rounded once; 0 if one of the two is 0.

    Two equal numbers give that number, which the formula in floats does not.
    """
    if precision == 0 or recall == 0:
        return 0.0
    first, second, square = Fraction(precision), Fraction(recall), Fraction(beta) ** 2
    return float((1 + square) * first * second / (square * first + second))


def reaches(number: float, bound: float, *, terms: int = 1, scale: float = 0.0) -> bool:
    """Whether a number is at least a bound, or level with it. See `is_level` for the arguments."""
    return number >= bound or is_level(number, bound, terms=terms, scale=scale)


def exceeds(number: float, bound: float, *, terms: int = 1, scale: float = 0.0) -> bool:
    """Whether a number is above a bound and not level with it. See `is_level` for the arguments."""
    return number > bound and not is_level(number, bound, terms=terms, scale=scale)


def is_level(number: float, bound: float, *, terms: int = 1, scale: float = 0.0) -> bool:
    """Whether a number and a bound differ by no more than rounding: a few units in the last place.

    Args:
        number: what was computed.
        bound: what was written.
        terms: how many numbers were added up, each sum rounded; each can move the last place by one unit.
        scale: the size of numbers of which `number` is a difference, because it is as exact as they are.
    """
    if number == bound:
        return True
    largest = max(abs(number), abs(bound), abs(scale))
    return math.isfinite(largest) and abs(number - bound) <= (_UNITS + terms) * math.ulp(largest)
