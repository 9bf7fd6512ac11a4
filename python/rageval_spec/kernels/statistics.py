"""Intervals of means, paired tests, and Holm's correction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rageval_spec import _core
from rageval_spec.kernels.inputs import as_vector, as_vectors, check_count, check_seed, check_threads
from rageval_spec.libraries import Floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rageval_spec.kernels.inputs import Numbers


class IntervalEnds(NamedTuple):
    """The ends of a confidence interval, with `low <= high`."""

    low: float
    high: float


class PermutationTest(NamedTuple):
    """The outcome of a permutation test."""

    mean_difference: float
    p_value: float
    """Two-sided, never 0."""
    permutations: int
    """The number of sign patterns, or divisions of the values, tried: all if `exact`, else the requested number.

    0 if the p-value comes from the normal distribution, which `permutation_test_unpaired` uses for large samples.
    """
    exact: bool
    """Whether all patterns were enumerated, in which case the p-value has no sampling error."""


class TTest(NamedTuple):
    """The outcome of a paired t-test.

    `statistic`, `p_value` and `effect_size` are None if all differences are equal and not 0.
    """

    mean_difference: float
    interval: IntervalEnds
    """The confidence interval of the mean difference."""
    statistic: float | None
    degrees_of_freedom: int
    p_value: float | None
    """Two-sided."""
    effect_size: float | None
    """Cohen's d_z: mean over standard deviation of the differences."""


IntervalMethod: TypeAlias = Literal["bca", "percentile"]


def bootstrap_mean(
    values: Numbers,
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int,
    method: IntervalMethod = "bca",
    threads: int | None = None,
) -> IntervalEnds | None:
    """Return a bootstrap confidence interval of the mean of `values`, or None for a single value.

    The values, shape (n,), are resampled with replacement `resamples` times. The method "percentile" takes the
    quantiles of the resampled means; "bca" corrects them for bias and skewness (Efron 1987) and agrees with
    `scipy.stats.bootstrap` up to the random draws. Equal values give an interval of zero width.

    Raises:
        ValueError: there are no values, a value is NaN or infinite, or a setting is out of range.
    """
    (ends,) = bootstrap_means(
        [values], resamples=resamples, confidence=confidence, seed=seed, method=method, threads=threads
    )
    return ends


def bootstrap_means(
    samples: Sequence[Numbers] | Floats,
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int,
    method: IntervalMethod = "bca",
    threads: int | None = None,
) -> list[IntervalEnds | None]:
    """Return what `bootstrap_mean` returns for each of `samples`, faster than one call for each.

    `samples` is a matrix with one sample per row, or a sequence of arrays of any lengths. Samples of equal length share
    their random draws, so each interval equals that of a separate `bootstrap_mean`. An error names the sample.

    Raises:
        ValueError: as `bootstrap_mean`.
    """
    intervals = _core.bootstrap_means(
        as_vectors("sample", samples),
        check_count("resamples", resamples),
        confidence,
        check_seed(seed),
        method,
        check_threads(threads),
    )
    return [None if ends is None else IntervalEnds(*ends) for ends in intervals]


def bound_means(
    samples: Sequence[Numbers] | Floats,
    bounds: Sequence[tuple[float, float]],
    *,
    counts: Sequence[Numbers | None] | None = None,
    confidence: float = 0.95,
    threads: int | None = None,
) -> list[IntervalEnds]:
    """Return a confidence interval of the mean that each of `samples` was drawn from, for values with known bounds.

    The ends are quantiles of a random mean of the values, each of shape (n,), and of one more value, the bound on that
    side; the weights are uniformly distributed (Gaffke 2005). For values that are only the bounds themselves, this is
    Clopper and Pearson's exact interval (1934). No random numbers are drawn. Values may lie outside the bounds, which
    then only say where the further value is.

    Args:
        samples: the values of each mean.
        bounds: the lowest and the highest possible value, for each sample.
        counts: how often each value of a sample was seen, above 0 and not necessarily whole; None for once.
        confidence: the level, in (0, 1).
        threads: the number of threads; it never changes a number.

    Raises:
        ValueError: a sample is empty, a number is NaN or infinite, or a setting is out of range.
    """
    weights = [None] * len(samples) if counts is None else counts
    found = _core.bound_means(
        as_vectors("sample", samples),
        [None if one is None else as_vector("counts", one) for one in weights],
        list(bounds),
        confidence,
        check_threads(threads),
    )
    return [IntervalEnds(*ends) for ends in found]


def permutation_test_paired(
    comparisons: Sequence[Numbers] | Floats,
    *,
    permutations: int = 10_000,
    seed: int,
    threads: int | None = None,
) -> list[PermutationTest]:
    """Test each of `comparisons` for a mean difference of 0 by flipping signs at random (Fisher).

    A comparison holds `value_a - value_b` for each query; pass a matrix with one comparison per row, or a sequence of
    arrays. The test is two-sided. `p = (1 + count) / (1 + permutations)` over random sign patterns; if the differences
    other than 0 have no more than `permutations` patterns, p is the exact share. A pattern counts if
    `|sum| >= |observed| - 1e-12 * sum(|d|)`, so sums that differ only by rounding are equal. If all differences are 0,
    p = 1. A result does not depend on the other comparisons.

    Raises:
        ValueError: a comparison is empty, a difference is NaN or infinite, or a setting is out of range.
    """
    tests = _core.permutation_test_paired(
        as_vectors("comparison", comparisons),
        check_count("permutations", permutations),
        check_seed(seed),
        check_threads(threads),
    )
    return [PermutationTest(*test) for test in tests]


def permutation_test_unpaired(
    pairs: Sequence[tuple[Numbers, Numbers]],
    *,
    permutations: int = 10_000,
    seed: int,
    threads: int | None = None,
) -> list[PermutationTest]:
    """Test whether the means of two independent samples differ, for each of `pairs`, by dividing the values at random.

    The samples of a pair can have different lengths. The test is two-sided, for the absolute difference of the means.
    `p = (1 + count) / (1 + permutations)` over random divisions into groups of the same sizes; if there are no more
    than `permutations` divisions, p is the exact share. If both samples have more than 10,000 values, none of which
    outweighs the others, p comes from the normal distribution with the permutations' variance. Differences that are
    equal up to rounding count as reached. A result does not depend on the other pairs, nor on the order of the values.

    Raises:
        ValueError: a sample is empty, a value is NaN or infinite, or a setting is out of range.
    """
    tests = _core.permutation_test_unpaired(
        as_vectors("first sample", [first for first, _ in pairs]),
        as_vectors("second sample", [second for _, second in pairs]),
        check_count("permutations", permutations),
        check_seed(seed),
        check_threads(threads),
    )
    return [PermutationTest(*test) for test in tests]


def t_test_paired(differences: Numbers, *, confidence: float = 0.95) -> TTest:
    """Return Student's paired t-test of `differences`, `value_a - value_b` per query, shape (n,), n >= 2.

    The numbers equal those of `scipy.stats.ttest_rel`. If all differences are 0, t = 0, p = 1 and the effect size is 0;
    if they are all equal but not 0, all three are undefined (None).

    Raises:
        ValueError: there are fewer than two differences, one is NaN or infinite, or `confidence` is outside (0, 1).
    """
    mean, interval, statistic, df, p_value, effect = _core.t_test_paired(
        as_vector("differences", differences), confidence
    )
    return TTest(mean, IntervalEnds(*interval), statistic, df, p_value, effect)


def student_p_value(t: float, degrees: float) -> float:
    """The two-sided p-value of Student's t: the probability that it lies at least as far from 0 as `t`.

    Raises:
        ValueError: there are no degrees of freedom, or `t` is NaN.
    """
    if not degrees > 0 or t != t:
        raise ValueError(f"Student's t needs a number and degrees of freedom above 0, not {t} and {degrees}")
    return _core.student_p_value(t, degrees)


def student_quantile(share: float, degrees: float) -> float:
    """The quantile of Student's t: the number below which it lies with the probability `share`.

    Raises:
        ValueError: there are no degrees of freedom, or `share` is not between 0 and 1.
    """
    if not degrees > 0 or not 0 < share < 1:
        raise ValueError(
            f"Student's t needs a share in (0, 1) and degrees of freedom above 0, not {share} and {degrees}"
        )
    if share == 0.5:
        return 0.0
    distance = _core.student_quantile(2 * min(share, 1 - share), degrees)
    return distance if share > 0.5 else -distance


def holm(p_values: Numbers) -> list[float]:
    """Return Holm's adjusted p-values of one family of comparisons, in the given order.

    Raises:
        ValueError: a p-value is NaN or outside [0, 1].
    """
    return _core.holm(as_vector("p_values", p_values))
