"""Bootstrap intervals, paired tests and Holm's correction, checked by hand and against numpy and scipy."""

from __future__ import annotations

import itertools
import math
from array import array
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec import kernels
from rageval_spec.kernels import IntervalEnds, PermutationTest

BAD_VALUES = [
    ([], "sample 0 has 0 values"),
    ([0.5, float("nan")], "value 1 of sample 0 is NaN"),
    ([0.5, None], "value 1 of sample 0 is NaN"),
    ([float("inf")], "value 0 of sample 0 is inf"),
    ([[0.5, 0.1]], "must have one dimension"),
    (0.5, "must have one dimension"),
    ([1e308, 1e308], "too large"),
]


def skewed(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(0.5, 2.0, n)


def test_all_kernels_accept_buffers_of_doubles() -> None:
    """Arrays of doubles work without loading numpy."""
    numbers = [0.25, 0.5, 1.0, 0.125]
    doubles = array("d", numbers)
    assert kernels.bootstrap_mean(doubles, seed=3) == kernels.bootstrap_mean(numbers, seed=3)
    assert kernels.bootstrap_means([doubles, array("d", [1.0])], seed=3)[1] is None
    tested = [kernels.permutation_test_paired([given], seed=3) for given in (doubles, numbers)]
    assert tested[0] == tested[1]
    assert kernels.t_test_paired(doubles) == kernels.t_test_paired(numbers)
    assert kernels.holm(doubles) == kernels.holm(numbers)
    assert kernels.aggregate_measure("map", doubles) == 0.46875


def test_arrays_of_other_types_are_converted() -> None:
    assert kernels.holm(array("f", [0.5, 0.25])) == [0.5, 0.5]
    assert kernels.bootstrap_mean(array("i", [1, 2, 4]), seed=3) == kernels.bootstrap_mean([1, 2, 4], seed=3)


def test_strided_numbers_are_copied() -> None:
    packed = np.zeros(3, dtype=[("flag", "i1"), ("value", "f8")])
    packed["value"] = [0.5, 0.25, 0.75]
    assert kernels.aggregate_measure("map", packed["value"]) == 0.5
    assert kernels.aggregate_measure("map", np.array([0.5, 9, 0.25, 9, 0.75])[::2]) == 0.5
    assert kernels.aggregate_measure("map", np.array([0.5, 0.25, 0.75], dtype=">f8")) == 0.5


def test_an_empty_array_is_named() -> None:
    with pytest.raises(ValueError, match="sample 0 has 0 values"):
        kernels.bootstrap_mean(array("d"), seed=0)


class TestBootstrapMean:
    @pytest.mark.parametrize("method", ["bca", "percentile"])
    @pytest.mark.parametrize("n", [8, 60, 1500])
    @pytest.mark.parametrize("confidence", [0.8, 0.95])
    def test_agrees_with_scipy_up_to_the_draws(self, method: kernels.IntervalMethod, n: int, confidence: float) -> None:
        values = skewed(n)
        ours = kernels.bootstrap_mean(values, resamples=100_000, confidence=confidence, seed=1, method=method)
        theirs = scipy.stats.bootstrap(
            (values,), np.mean, n_resamples=40_000, confidence_level=confidence, method=method, rng=2, batch=2000
        ).confidence_interval
        assert ours == pytest.approx(tuple(theirs), abs=0.03 * float(theirs.high - theirs.low))

    def test_bca_differs_from_percentile(self) -> None:
        values = skewed(30, seed=4) ** 3
        bca = kernels.bootstrap_mean(values, seed=1)
        percentile = kernels.bootstrap_mean(values, seed=1, method="percentile")
        assert bca is not None
        assert percentile is not None
        assert bca.low > percentile.low
        assert bca.high > percentile.high

    def test_covers_the_true_mean_as_often_as_it_says(self) -> None:
        samples = np.random.default_rng(5).normal(0.3, 1.0, (1000, 60))
        intervals = kernels.bootstrap_means(samples, resamples=1000, seed=1, confidence=0.9)
        covered = sum(i is not None and i.low <= 0.3 <= i.high for i in intervals)
        assert 860 <= covered <= 930

    def test_one_value_has_no_interval(self) -> None:
        assert kernels.bootstrap_mean([0.5], seed=0) is None

    def test_equal_values_have_an_interval_of_zero_width(self) -> None:
        assert kernels.bootstrap_mean([0.1] * 9, seed=0) == IntervalEnds(0.1, 0.1)

    def test_a_seed_fixes_the_result_on_any_number_of_threads(self) -> None:
        values = skewed(100)
        intervals = {kernels.bootstrap_mean(values, seed=7, threads=threads) for threads in (1, 2, 5, None)}
        assert len(intervals) == 1
        assert kernels.bootstrap_mean(values, seed=8) not in intervals

    def test_samples_do_not_affect_each_other(self) -> None:
        samples = [skewed(n, seed) for seed, n in enumerate([40, 40, 7, 40, 1, 40, 40, 7])]
        together = kernels.bootstrap_means(samples, resamples=500, seed=3)
        assert together == [kernels.bootstrap_mean(sample, resamples=500, seed=3) for sample in samples]

    def test_takes_lists_columns_and_integers(self) -> None:
        matrix = np.array([[0, 1], [1, 1], [3, 0]])
        assert kernels.bootstrap_mean(matrix[:, 0], seed=0) == kernels.bootstrap_mean([0.0, 1.0, 3.0], seed=0)

    @pytest.mark.parametrize(("values", "message"), BAD_VALUES)
    def test_bad_values_are_named(self, values: object, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            kernels.bootstrap_mean(values, seed=0)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ({"resamples": 0}, "resamples must be between 1"),
            ({"resamples": 10**12}, "resamples must be between 1 and 100 million"),
            ({"confidence": 1.0}, "confidence must be between 0 and 1"),
            ({"confidence": float("nan")}, "confidence must be between 0 and 1"),
            ({"seed": -1}, "seed must be between 0"),
            ({"threads": 0}, "threads must be between 1"),
            ({"method": "basic"}, "'bca' or 'percentile', not 'basic'"),
        ],
    )
    def test_bad_settings_are_named(self, setting: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            kernels.bootstrap_mean([0.1, 0.2], **{"seed": 0, **setting})  # type: ignore[arg-type]


def enumerate_p_value(differences: list[int]) -> float:
    """The exact p-value, by definition: over all sign patterns."""
    observed = abs(sum(differences))
    patterns = list(itertools.product([-1, 1], repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in patterns]
    return sum(total >= observed for total in sums) / len(patterns)


class TestPermutationTest:
    @given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
    @settings(max_examples=100)
    def test_exact_p_values_are_those_of_the_definition(self, differences: list[int]) -> None:
        for scale in (1.0, 0.1):
            (test,) = kernels.permutation_test_paired([np.multiply(differences, scale)], permutations=512, seed=0)
            assert test.exact
            assert test.p_value == pytest.approx(enumerate_p_value(differences), abs=1e-15)

    def test_agrees_with_scipy_if_both_enumerate(self) -> None:
        differences = np.random.default_rng(0).normal(0.3, 1, 12)
        theirs = scipy.stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=4096)
        (ours,) = kernels.permutation_test_paired([differences], permutations=4096, seed=0)
        assert ours.p_value == pytest.approx(theirs.pvalue)
        assert ours.mean_difference == pytest.approx(differences.mean())
        assert (ours.permutations, ours.exact) == (4096, True)

    def test_agrees_with_the_t_test_for_many_normal_differences(self) -> None:
        comparisons = np.random.default_rng(1).normal(0.08, 1, (20, 400))
        tests = kernels.permutation_test_paired(comparisons, permutations=40_000, seed=0)
        expected = [scipy.stats.ttest_1samp(row, 0).pvalue for row in comparisons]
        assert [test.p_value for test in tests] == pytest.approx(expected, abs=0.015)

    def test_p_values_are_uniform_under_the_null_hypothesis(self) -> None:
        comparisons = np.random.default_rng(2).normal(0, 1, (600, 25))
        p_values = [t.p_value for t in kernels.permutation_test_paired(comparisons, permutations=999, seed=3)]
        assert scipy.stats.kstest(p_values, "uniform").pvalue > 0.01

    def test_sums_that_differ_by_rounding_count_as_equal(self) -> None:
        tenths, whole = [0.1, 0.2, -0.3] * 10, [1.0, 2.0, -3.0] * 10
        one, other = kernels.permutation_test_paired([tenths, whole], seed=0)
        assert one.p_value == other.p_value == 1.0

    def test_no_difference_is_no_evidence(self) -> None:
        assert kernels.permutation_test_paired([[0.0] * 50], seed=0) == [PermutationTest(0.0, 1.0, 1, True)]

    def test_a_seed_fixes_the_result_on_any_number_of_threads(self) -> None:
        comparisons = np.random.default_rng(3).normal(0.1, 1, (11, 50))
        results = [kernels.permutation_test_paired(comparisons, seed=1, threads=t) for t in (1, 2, 5, None)]
        assert all(result == results[0] for result in results)
        assert kernels.permutation_test_paired(comparisons, seed=2) != results[0]

    def test_comparisons_do_not_affect_each_other(self) -> None:
        rng = np.random.default_rng(4)
        comparisons = [rng.normal(0.2, 1, n) for n in [30, 8, 30, 31, *[30] * 9]]
        together = kernels.permutation_test_paired(comparisons, permutations=2000, seed=3)
        alone = [kernels.permutation_test_paired([c], permutations=2000, seed=3)[0] for c in comparisons]
        assert together == alone

    @pytest.mark.parametrize(("values", "message"), BAD_VALUES)
    def test_bad_values_are_named(self, values: object, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            kernels.permutation_test_paired([values], seed=0)  # type: ignore[list-item]

    def test_bad_settings_are_named(self) -> None:
        with pytest.raises(ValueError, match="permutations must be between 1"):
            kernels.permutation_test_paired([[0.1]], permutations=0, seed=0)
        with pytest.raises(ValueError, match="seed must be between 0"):
            kernels.permutation_test_paired([[0.1]], seed=2**64)


def enumerate_divisions(first: list[int], second: list[int]) -> float:
    """The share of all divisions into groups of these sizes whose means are at least as far apart, in fractions."""
    values, size = [*first, *second], len(first)

    def distance(chosen: tuple[int, ...]) -> Fraction:
        inside = [values[at] for at in chosen]
        outside = sum(values) - sum(inside)
        return abs(Fraction(sum(inside), size) - Fraction(outside, len(values) - size))

    divisions = list(itertools.combinations(range(len(values)), size))
    observed = distance(tuple(range(size)))
    return sum(distance(chosen) >= observed for chosen in divisions) / len(divisions)


class TestUnpairedPermutationTest:
    @given(st.lists(st.integers(-5, 5), min_size=1, max_size=5), st.lists(st.integers(-5, 5), min_size=1, max_size=5))
    @settings(max_examples=100)
    def test_exact_p_values_are_those_of_the_definition(self, first: list[int], second: list[int]) -> None:
        for scale in (1.0, 0.1):
            pair = (np.multiply(first, scale), np.multiply(second, scale))
            (test,) = kernels.permutation_test_unpaired([pair], permutations=252, seed=0)
            assert test.exact
            assert test.p_value == pytest.approx(enumerate_divisions(first, second), abs=1e-15)
            assert test.mean_difference == pytest.approx(np.mean(pair[0]) - np.mean(pair[1]), abs=1e-12)

    def test_agrees_with_scipy_if_both_enumerate(self) -> None:
        rng = np.random.default_rng(0)
        first, second = rng.normal(0.8, 1, 6), rng.normal(0, 1, 8)
        theirs = scipy.stats.permutation_test(
            (first, second),
            lambda a, b: abs(np.mean(a) - np.mean(b)),
            permutation_type="independent",
            n_resamples=3003,
            alternative="greater",
        )
        (ours,) = kernels.permutation_test_unpaired([(first, second)], permutations=3003, seed=0)
        assert ours.p_value == pytest.approx(theirs.pvalue)
        assert (ours.permutations, ours.exact) == (3003, True)

    @pytest.mark.parametrize(("size", "count"), [(120, 400), (12_000, 30_000)])
    def test_agrees_with_the_t_test_for_many_normal_values(self, size: int, count: int) -> None:
        values = np.random.default_rng(1).normal(0, 1, (20, count))
        values[:, :size] += 1.5 / size**0.5
        pairs = [(row[:size], row[size:]) for row in values]
        tests = kernels.permutation_test_unpaired(pairs, permutations=40_000, seed=0)
        expected = [scipy.stats.ttest_ind(*pair).pvalue for pair in pairs]
        assert [test.p_value for test in tests] == pytest.approx(expected, abs=0.015)

    def test_p_values_are_uniform_under_the_null_hypothesis(self) -> None:
        pairs = [(row[:9], row[9:]) for row in np.random.default_rng(2).normal(0, 1, (600, 25))]
        p_values = [t.p_value for t in kernels.permutation_test_unpaired(pairs, permutations=999, seed=3)]
        assert scipy.stats.kstest(p_values, "uniform").pvalue > 0.01

    def test_a_seed_fixes_the_result_on_any_number_of_threads(self) -> None:
        pairs = [(row[:20], row[20:]) for row in np.random.default_rng(3).normal(0.1, 1, (11, 50))]
        results = [kernels.permutation_test_unpaired(pairs, seed=1, threads=t) for t in (1, 2, 5, None)]
        assert all(result == results[0] for result in results)
        assert kernels.permutation_test_unpaired(pairs, seed=2) != results[0]

    def test_pairs_do_not_affect_each_other(self) -> None:
        rng = np.random.default_rng(4)
        pairs = [(rng.normal(0.2, 1, n), rng.normal(0, 1, 40)) for n in [30, 8, 30, 31, *[30] * 9]]
        together = kernels.permutation_test_unpaired(pairs, permutations=2000, seed=3)
        alone = [kernels.permutation_test_unpaired([pair], permutations=2000, seed=3)[0] for pair in pairs]
        assert together == alone

    @pytest.mark.parametrize(("values", "message"), BAD_VALUES)
    def test_bad_values_are_named(self, values: object, message: str) -> None:
        for pair in ((values, [1.0]), ([1.0], values)):
            with pytest.raises(ValueError, match=message):
                kernels.permutation_test_unpaired([pair], seed=0)  # type: ignore[list-item]

    def test_bad_settings_are_named(self) -> None:
        with pytest.raises(ValueError, match="permutations must be between 1"):
            kernels.permutation_test_unpaired([([0.1], [0.2])], permutations=0, seed=0)


class TestTTest:
    @given(st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=2, max_size=40), st.floats(0.5, 0.999))
    def test_the_numbers_equal_scipys(self, differences: list[float], confidence: float) -> None:
        if np.ptp(differences) < 1e-6:
            return
        ours = kernels.t_test_paired(differences, confidence=confidence)
        theirs = scipy.stats.ttest_rel(differences, np.zeros(len(differences)))
        interval = theirs.confidence_interval(confidence)
        assert ours.mean_difference == pytest.approx(np.mean(differences), abs=1e-15)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-12)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-8)
        assert ours.degrees_of_freedom == theirs.df
        assert ours.interval == pytest.approx((interval.low, interval.high), rel=1e-8, abs=1e-12)
        d_z = np.mean(differences) / np.std(differences, ddof=1)
        assert ours.effect_size == pytest.approx(d_z, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize("n", [2, 3, 30, 250, 70_000])
    def test_small_p_values_keep_their_digits(self, n: int) -> None:
        differences = np.random.default_rng(n).normal(8 / np.sqrt(n), 1, n)
        theirs = scipy.stats.ttest_1samp(differences, 0)
        assert kernels.t_test_paired(differences).p_value == pytest.approx(theirs.pvalue, rel=1e-9)

    def test_no_differences_give_a_p_value_of_1(self) -> None:
        test = kernels.t_test_paired([0.0, 0.0, 0.0])
        assert (test.statistic, test.p_value, test.effect_size, test.interval) == (0.0, 1.0, 0.0, (0.0, 0.0))

    def test_a_constant_difference_has_no_statistic(self) -> None:
        test = kernels.t_test_paired([0.3 - 0.2, 0.1, 0.9 - 0.8])
        assert (test.statistic, test.p_value, test.effect_size) == (None, None, None)
        assert test.mean_difference == pytest.approx(0.1)

    def test_bad_input_is_named(self) -> None:
        with pytest.raises(ValueError, match="sample 0 has 1 values; at least 2 are needed"):
            kernels.t_test_paired([0.1])
        with pytest.raises(ValueError, match="value 0 of sample 0 is NaN"):
            kernels.t_test_paired([float("nan"), 0.1])
        with pytest.raises(ValueError, match="confidence"):
            kernels.t_test_paired([0.2, 0.1], confidence=0)


class TestHolm:
    def test_hand_worked_example(self) -> None:
        assert kernels.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    def test_an_empty_family_has_no_values(self) -> None:
        assert kernels.holm([]) == []

    @given(st.lists(st.floats(0, 1), max_size=20))
    def test_rejects_what_the_step_down_procedure_rejects(self, p_values: list[float]) -> None:
        """Holm's procedure at level alpha goes through the sorted p-values and stops at the first large one."""
        alpha, m = 0.05, len(p_values)
        rejected, order = set(), sorted(range(m), key=lambda i: p_values[i])
        for step, i in enumerate(order):
            if (m - step) * p_values[i] > alpha:
                break
            rejected.add(i)
        assert {i for i, p in enumerate(kernels.holm(p_values)) if p <= alpha} == rejected

    @pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.5])
    def test_a_number_that_is_not_a_probability_is_named(self, bad: float) -> None:
        with pytest.raises(ValueError, match="p-value 1 is"):
            kernels.holm([0.5, bad])


class TestStudentsT:
    @pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 30, 199, 5000, 2.5])
    @pytest.mark.parametrize("share", [0.005, 0.05, 0.5, 0.6, 0.9, 0.975, 0.9995])
    def test_quantiles_are_scipys(self, degrees: float, share: float) -> None:
        expected = scipy.stats.t.ppf(share, degrees)
        assert kernels.student_quantile(share, degrees) == pytest.approx(expected, rel=1e-11, abs=1e-12)

    @pytest.mark.parametrize(("t", "degrees"), [(0.3, 1), (2.5, 1), (-2.5, 4), (1.0, 30), (5.0, 100), (80.0, 20)])
    def test_p_values_are_scipys(self, t: float, degrees: int) -> None:
        assert kernels.student_p_value(t, degrees) == pytest.approx(2 * scipy.stats.t.sf(abs(t), degrees), rel=1e-11)

    def test_p_values_at_the_ends(self) -> None:
        assert kernels.student_p_value(0.0, 10) == 1.0
        assert kernels.student_p_value(math.inf, 10) == 0.0

    def test_a_quantile_has_the_p_value_that_it_is_for(self) -> None:
        # By hand: t with one degree of freedom is Cauchy's distribution, whose quantile is tan(pi (share - 1/2)).
        assert kernels.student_quantile(0.75, 1) == pytest.approx(1.0, rel=1e-14)
        assert kernels.student_p_value(1.0, 1) == pytest.approx(0.5, rel=1e-14)

    @pytest.mark.parametrize(("share", "degrees"), [(0.9, 0), (0.9, -1), (0.0, 5), (1.0, 5), (math.nan, 5)])
    def test_what_has_no_quantile_is_an_error(self, share: float, degrees: float) -> None:
        with pytest.raises(ValueError, match="Student's t needs a share"):
            kernels.student_quantile(share, degrees)

    def test_what_has_no_p_value_is_an_error(self) -> None:
        for t, degrees in ((math.nan, 5), (1.0, 0)):
            with pytest.raises(ValueError, match="Student's t needs a number"):
                kernels.student_p_value(t, degrees)
