//! The paired permutation test.

use std::num::NonZeroUsize;

use super::random::Generator;
use super::{check_count, check_finite, largest_magnitude, overflow, too_few_values};
use crate::error::Result;
use crate::threads;

/// The number of differences whose sums under every pattern of signs are tabulated together.
const TABULATED: usize = 8;
const PATTERNS: usize = 1 << TABULATED;
/// Comparisons summed side by side.
const COLUMNS: usize = 8;
/// Permutations that share one random stream.
const BLOCK: usize = 1024;
/// Two sums of a comparison are equal if they differ by at most this share of `sum(|difference|)`.
const TIE_TOLERANCE: f64 = 1e-12;

/// The outcome of a paired permutation test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// Mean of the differences.
    pub mean_difference: f64,
    /// Two-sided p-value, in `(0, 1]`.
    pub p_value: f64,
    /// Sign patterns tried: all of them if `exact`, otherwise the number requested.
    pub permutations: usize,
    /// Whether all patterns were enumerated, so that the p-value has no sampling error.
    pub exact: bool,
}

/// Fisher's paired randomisation test of every row of `comparisons`: are the differences as likely
/// to be negative as positive?
///
/// A comparison holds `value_a - value_b` per query. Under the null hypothesis each difference is as likely to have the
/// other sign. The p-value is two-sided, for the absolute mean:
///
/// - exact, if the `m` differences that are not 0 have at most `permutations` sign patterns
///   (`2^m <= permutations`): the share of patterns with `|sum| >= |observed sum|`;
/// - otherwise, with `permutations` random patterns, `(1 + count) / (1 + permutations)`, which is never 0 and keeps the
///   test's level.
///
/// Ties: a pattern reaches the observed sum if `|sum| >= |observed| - 1e-12 * sum(|d|)`, because sums that are equal
/// differ by rounding when added up in another order.
///
/// Comparisons of the same length use the same patterns. A p-value depends only on its own differences and the
/// settings, not on the other comparisons or the number of threads.
///
/// Edge cases: if all differences are 0, or there is only one, p = 1.
///
/// # Errors
/// An empty comparison, a difference that is NaN or infinite, differences too large to add up, 0 or
/// more than 100 million permutations.
///
/// Sources: M. D. Smucker, J. Allan, B. Carterette, "A comparison of statistical significance tests
/// for information retrieval evaluation", CIKM 2007; B. Phipson, G. K. Smyth, "Permutation p-values
/// should never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010).
///
/// ```
/// use rageval_core::statistics::permutation_test_paired;
///
/// // Only the two patterns with equal signs reach the observed sum: 2 of 8.
/// let tests = permutation_test_paired(&[&[0.1, 0.2, 0.3]], 10_000, 0, None)?;
/// assert_eq!((tests[0].p_value, tests[0].exact), (0.25, true));
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn permutation_test_paired(
    comparisons: &[&[f64]],
    permutations: usize,
    seed: u64,
    threads: Option<NonZeroUsize>,
) -> Result<Vec<PermutationTest>> {
    check_count("permutations", permutations)?;
    let comparisons = comparisons
        .iter()
        .enumerate()
        .map(|(row, differences)| Comparison::new(row, differences))
        .collect::<Result<Vec<_>>>()?;
    let threads = threads::resolve(threads);
    let (exact, sampled): (Vec<usize>, Vec<usize>) =
        (0..comparisons.len()).partition(|&row| comparisons[row].is_enumerable(permutations));
    let exact_tests = threads::map(exact.len(), threads, |i| comparisons[exact[i]].enumerate());
    let counts = count_sampled(&comparisons, &sampled, permutations, seed, threads);
    let sampled_tests = sampled
        .iter()
        .zip(counts)
        .map(|(&row, count)| PermutationTest {
            mean_difference: comparisons[row].mean(),
            p_value: (1 + count) as f64 / (1.0 + permutations as f64),
            permutations,
            exact: false,
        });
    let mut tests: Vec<_> = exact.iter().copied().zip(exact_tests).collect();
    tests.extend(sampled.iter().copied().zip(sampled_tests));
    tests.sort_unstable_by_key(|(row, _)| *row);
    Ok(tests.into_iter().map(|(_, test)| test).collect())
}

struct Comparison<'a> {
    differences: &'a [f64],
    sum: f64,
    /// The least absolute sum that counts as reaching the observed one.
    bound: f64,
}

impl<'a> Comparison<'a> {
    fn new(row: usize, differences: &'a [f64]) -> Result<Self> {
        if differences.is_empty() {
            return Err(too_few_values(row, 0, 1));
        }
        check_finite(row, differences)?;
        if !(2.0 * largest_magnitude(differences) * differences.len() as f64).is_finite() {
            return Err(overflow(row));
        }
        let sum: f64 = differences.iter().sum();
        let magnitude: f64 = differences.iter().map(|difference| difference.abs()).sum();
        let bound = sum.abs() - TIE_TOLERANCE * magnitude;
        Ok(Self {
            differences,
            sum,
            bound,
        })
    }

    fn mean(&self) -> f64 {
        self.sum / self.differences.len() as f64
    }

    fn not_zero(&self) -> impl Iterator<Item = f64> {
        self.differences
            .iter()
            .copied()
            .filter(|&difference| difference != 0.0)
    }

    fn is_enumerable(&self, permutations: usize) -> bool {
        u32::try_from(self.not_zero().count())
            .ok()
            .and_then(|bits| 1_usize.checked_shl(bits))
            .is_some_and(|patterns| patterns <= permutations)
    }

    /// The exact test over all sign patterns of the differences that are not 0.
    fn enumerate(&self) -> PermutationTest {
        let differences: Vec<f64> = self.not_zero().collect();
        let patterns = 1_usize << differences.len();
        let reaching = (0..patterns)
            .filter(|&pattern| signed_sum(&differences, pattern).abs() >= self.bound)
            .count();
        PermutationTest {
            mean_difference: self.mean(),
            p_value: reaching as f64 / patterns as f64,
            permutations: patterns,
            exact: true,
        }
    }
}

fn signed_sum(differences: &[f64], pattern: usize) -> f64 {
    let signed = |(bit, &difference): (usize, &f64)| {
        if pattern >> bit & 1 == 1 {
            difference
        } else {
            -difference
        }
    };
    differences.iter().enumerate().map(signed).sum()
}

/// For each comparison in `rows`, how many of the random patterns reach the observed sum.
fn count_sampled(
    comparisons: &[Comparison],
    rows: &[usize],
    permutations: usize,
    seed: u64,
    threads: NonZeroUsize,
) -> Vec<u64> {
    let groups = group_by_length(comparisons, rows);
    let blocks = permutations.div_ceil(BLOCK);
    let counts = threads::map(groups.len() * blocks, threads, |task| {
        let (group, block) = (&groups[task / blocks], task % blocks);
        let size = BLOCK.min(permutations - block * BLOCK);
        let mut generator = Generator::new(seed, block as u64);
        let together: Vec<&Comparison> = group.iter().map(|&row| &comparisons[row]).collect();
        count_block(&together, size, &mut generator)
    });
    let mut totals = vec![0; comparisons.len()];
    for (task, counts) in counts.into_iter().enumerate() {
        for (&row, count) in groups[task / blocks].iter().zip(counts) {
            totals[row] += count;
        }
    }
    rows.iter().map(|&row| totals[row]).collect()
}

/// Rows of one length, at most [`COLUMNS`] in a group.
fn group_by_length(comparisons: &[Comparison], rows: &[usize]) -> Vec<Vec<usize>> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|&row| comparisons[row].differences.len());
    rows.chunk_by(|&a, &b| comparisons[a].differences.len() == comparisons[b].differences.len())
        .flat_map(|same| same.chunks(COLUMNS).map(<[usize]>::to_vec))
        .collect()
}

/// How many of `size` random patterns reach each observed sum.
///
/// A pattern's sum is the sum of table entries, each for eight differences. That takes an eighth of the additions, and
/// each addition serves all comparisons of the group.
fn count_block(group: &[&Comparison], size: usize, generator: &mut Generator) -> [u64; COLUMNS] {
    let length = group[0].differences.len();
    let mut sums = vec![[0.0; COLUMNS]; size];
    let mut patterns = vec![0; size];
    for start in (0..length).step_by(TABULATED) {
        let table = tabulate(group, start..length.min(start + TABULATED));
        generator.fill_bytes(&mut patterns);
        for (sum, &pattern) in sums.iter_mut().zip(&patterns) {
            let part = &table[usize::from(pattern)];
            for column in 0..COLUMNS {
                sum[column] += part[column];
            }
        }
    }
    let mut counts = [0; COLUMNS];
    for (column, comparison) in group.iter().enumerate() {
        let reaching = sums
            .iter()
            .filter(|sum| sum[column].abs() >= comparison.bound);
        counts[column] = reaching.count() as u64;
    }
    counts
}

/// The sums of the differences `queries` of every comparison under each pattern of signs.
fn tabulate(group: &[&Comparison], queries: std::ops::Range<usize>) -> Vec<[f64; COLUMNS]> {
    let mut rows = [[0.0; COLUMNS]; TABULATED];
    for (row, query) in rows.iter_mut().zip(queries) {
        for (cell, comparison) in row.iter_mut().zip(group) {
            *cell = comparison.differences[query];
        }
    }
    let mut table = vec![[0.0; COLUMNS]; PATTERNS];
    for row in &rows {
        add_to(&mut table[0], row, -1.0);
    }
    for pattern in 1..PATTERNS {
        table[pattern] = table[pattern & (pattern - 1)];
        add_to(
            &mut table[pattern],
            &rows[pattern.trailing_zeros() as usize],
            2.0,
        );
    }
    table
}

fn add_to(sums: &mut [f64; COLUMNS], row: &[f64; COLUMNS], factor: f64) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += factor * value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn test(differences: &[f64], permutations: usize) -> PermutationTest {
        permutation_test_paired(&[differences], permutations, 11, None).unwrap()[0]
    }

    /// Sums of +-1 +-1 +-2: |sum| is 4 twice, 2 four times, 0 twice; observed 2.
    #[test]
    fn hand_worked_enumeration() {
        let outcome = test(&[1.0, -1.0, 2.0], 8);
        assert_eq!(outcome.p_value, 6.0 / 8.0);
        assert_eq!((outcome.permutations, outcome.exact), (8, true));
        assert!((outcome.mean_difference - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn one_pattern_too_many_is_sampled() {
        let outcome = test(&[1.0, -1.0, 2.0], 7);
        assert_eq!((outcome.permutations, outcome.exact), (7, false));
    }

    #[test]
    fn zeros_do_not_stand_in_the_way_of_enumeration() {
        let mut differences = vec![0.0; 500];
        differences[17] = 0.5;
        differences[300] = 0.25;
        let outcome = test(&differences, 100);
        assert_eq!(
            (outcome.p_value, outcome.permutations, outcome.exact),
            (0.5, 4, true)
        );
    }

    #[test]
    fn no_difference_at_all_is_no_evidence() {
        let outcome = test(&[0.0; 30], 1);
        assert_eq!(
            (outcome.p_value, outcome.permutations, outcome.exact),
            (1.0, 1, true)
        );
    }

    /// 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit.
    #[test]
    fn sums_that_differ_by_rounding_are_ties() {
        let differences: Vec<f64> = (0..40).map(|i| [0.1, 0.2, -0.3][i % 3]).collect();
        let scaled: Vec<f64> = (0..40).map(|i| [1.0, 2.0, -3.0][i % 3]).collect();
        assert_eq!(
            test(&differences, 5000).p_value,
            test(&scaled, 5000).p_value
        );
    }

    #[test]
    fn a_strong_effect_gets_the_smallest_p_value() {
        assert_eq!(test(&[0.1; 100], 999).p_value, 0.001);
    }

    #[test]
    fn sampling_comes_close_to_enumeration() {
        let differences: Vec<f64> = (0..14)
            .map(|i| ((i * i) as f64 * 0.37).sin() + 0.2)
            .collect();
        let exact = test(&differences, 1 << 14);
        let sampled = test(&differences, (1 << 14) - 1);
        assert!(exact.exact && !sampled.exact);
        assert!((exact.p_value - sampled.p_value).abs() < 0.015);
    }

    #[test]
    fn bad_input_is_named() {
        let message = |comparisons: &[&[f64]], permutations| {
            permutation_test_paired(comparisons, permutations, 0, None)
                .unwrap_err()
                .to_string()
        };
        assert!(message(&[&[1.0], &[]], 10).starts_with("sample 1 has 0 values"));
        assert!(message(&[&[f64::NEG_INFINITY]], 10).starts_with("value 0 of sample 0 is -inf"));
        assert!(message(&[&[f64::MAX, 1.0]], 10).contains("too large"));
        assert!(message(&[], 0).starts_with("permutations must be between 1"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn neighbours_and_threads_change_nothing(
            comparisons in prop::collection::vec(prop::collection::vec(-1.0..1.0, 1..30), 1..20),
            seed in any::<u64>(),
            threads in 1..5_usize,
        ) {
            let rows: Vec<&[f64]> = comparisons.iter().map(Vec::as_slice).collect();
            let together = permutation_test_paired(&rows, 1500, seed, NonZeroUsize::new(threads)).unwrap();
            for (row, outcome) in rows.iter().zip(together) {
                let alone = permutation_test_paired(&[row], 1500, seed, NonZeroUsize::new(1)).unwrap();
                prop_assert_eq!(alone[0], outcome);
            }
        }

        #[test]
        fn tabulated_sums_are_signed_sums(differences in prop::collection::vec(-1.0..1.0, 1..9)) {
            let comparison = Comparison::new(0, &differences).unwrap();
            let table = tabulate(&[&comparison], 0..differences.len());
            for (pattern, sums) in table.iter().enumerate() {
                prop_assert!((sums[0] - signed_sum(&differences, pattern)).abs() < 1e-14);
            }
        }

        #[test]
        fn swapping_the_systems_changes_only_the_sign(differences in prop::collection::vec(-1.0..1.0, 1..40)) {
            let swapped: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            let (one, other) = (test(&differences, 300), test(&swapped, 300));
            prop_assert_eq!(one.p_value, other.p_value);
            prop_assert_eq!(one.mean_difference, -other.mean_difference);
        }
    }
}
