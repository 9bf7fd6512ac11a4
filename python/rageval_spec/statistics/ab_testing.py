"""Two systems compared in production while traces arrive: a test that may be looked at any time, and a check that each
system gets the share of traces that it should.

The test is the asymptotic confidence sequence of a difference of means (I. Waudby-Smith, D. Arbour, R. Sinha, E. H.
Kennedy, A. Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences", Annals of Statistics 52,
2024): for values of any range, with weights or without, from the summaries of both sides alone. Its p-value is that of
the mixture of sequential probability ratio tests from which it comes.

Systems that do not get the shares of traces that were set are compared wrongly, whatever their means say: one of them
loses traces on the way. The check is Pearson's chi-square test for one look, and for many looks the Bayes factor of a
Dirichlet prior around the shares against the shares themselves (M. Lindon, A. Malek, "Anytime-valid inference for
multinomial count data", NeurIPS 2022), which exceeds 1 / alpha with probability at most alpha, ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rageval_spec.data.outcomes import Interval
from rageval_spec.statistics.window_summaries import WindowSummary

ASYMPTOTIC = "asymptotic-sequence"
"""The value of `Interval.method`."""
FEWEST = 30
"""With fewer values on a side, the means are not yet close enough to normally distributed ones."""
_CONCENTRATION = 200.0
"""The weight of the prior around the shares that were set: alternatives differ from them by some percentage points."""


class SequentialTest(NamedTuple):
    """A comparison of two streams that may be looked at any time.

    Attributes:
        difference: the mean of the second stream less that of the first.
        interval: of the difference; all intervals of all looks hold together, with its confidence.
        p_value: of no difference, at this look; the smallest p-value of all looks so far is a p-value too.
    """

    difference: float
    interval: Interval
    p_value: float


class ShareCheck(NamedTuple):
    """Whether systems get the shares of traces that they should.

    Attributes:
        shares: what each system got; empty before the first trace.
        p_value: of Pearson's chi-square test, for a single look at a number of traces that was fixed beforehand.
        sequential: the p-value for any number of looks; the smallest one of all looks so far is a p-value too.
    """

    shares: tuple[float, ...]
    p_value: float
    sequential: float


def compare_streams(
    first: WindowSummary, second: WindowSummary, *, confidence: float = 0.95, best_at: int = 1000
) -> SequentialTest | None:
    """Compare the weighted means of two streams, as often as one likes.

    Args:
        first, second: all values of each stream since the test began.
        confidence: of all intervals together.
        best_at: at how many values of both streams the interval is to be tightest; choose it before the test begins.

    None with fewer than `FEWEST` values on a side, or while all values of both sides are equal to those of their side,
    which says nothing about how they vary.
    """
    if min(first.count, second.count) < FEWEST:
        return None
    assert first.mean is not None and second.mean is not None
    assert first.error is not None and second.error is not None
    count, error = first.count + second.count, math.hypot(first.error, second.error)
    if error == 0:
        return None
    alpha, difference = 1 - confidence, second.mean - first.mean
    # With t values of the variance 1, the mixture's boundary of their sum is sqrt(2 (t r + 1) / r * log(...)).
    rate = (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / best_at
    grown = count * rate + 1
    reach = error * math.sqrt(2 * grown / (count * rate) * (math.log(grown) / 2 - math.log(alpha)))
    evidence = (difference / error) ** 2 * count * rate / (2 * grown) - math.log(grown) / 2
    interval = Interval(difference - reach, difference + reach, confidence, ASYMPTOTIC)
    return SequentialTest(difference, interval, math.exp(-max(0.0, evidence)))


def check_shares(counts: Sequence[int], shares: Sequence[float]) -> ShareCheck:
    """Check how many traces each system got, of shape (k,), against the shares that were set, which add up to 1.

    Raises `ValueError` for fewer than two systems, shares not above 0 or not adding up to 1, or negative counts.
    """
    if len(counts) != len(shares) or len(counts) < 2 or min(counts) < 0:
        raise ValueError("there must be a count for each share, of at least two systems")
    if min(shares) <= 0 or abs(math.fsum(shares) - 1) > 1e-9:
        raise ValueError("the shares must be above 0 and add up to 1")
    total = sum(counts)
    if not total:
        return ShareCheck((), 1.0, 1.0)
    expected = [total * share for share in shares]
    square = math.fsum((seen - due) ** 2 / due for seen, due in zip(counts, expected, strict=True))
    evidence = _weigh_counts(counts, shares)
    seen = tuple(count / total for count in counts)
    return ShareCheck(seen, compute_chi_square_tail(square, len(counts) - 1), math.exp(-max(0.0, evidence)))


def _weigh_counts(counts: Sequence[int], shares: Sequence[float]) -> float:
    """The logarithm of the Bayes factor: what the Dirichlet prior expects of the counts over what the shares do."""
    prior = [_CONCENTRATION * share for share in shares]
    parts = [
        math.lgamma(weight + count) - math.lgamma(weight) - count * math.log(share)
        for weight, count, share in zip(prior, counts, shares, strict=True)
    ]
    return math.fsum([*parts, math.lgamma(_CONCENTRATION), -math.lgamma(_CONCENTRATION + sum(counts))])


def compute_chi_square_tail(square: float, degrees: int) -> float:
    """The probability that a chi-square number with so many degrees of freedom, at least 1, is `square` or more.

    By the recurrence of the incomplete gamma function, Q(a + 1, x) = Q(a, x) + x^a e^-x / Gamma(a + 1) (Abramowitz and
    Stegun, 6.5.21), from Q(1/2, x) = erfc(sqrt(x)) or Q(1, x) = e^-x.
    """
    half = square / 2
    if half <= 0:
        return 1.0
    at, tail = (0.5, math.erfc(math.sqrt(half))) if degrees % 2 else (1.0, math.exp(-half))
    while at < degrees / 2:
        tail += math.exp(at * math.log(half) - half - math.lgamma(at + 1))
        at += 1
    return min(1.0, tail)
