//! The permutation test of two independent samples.

use std::num::NonZeroUsize;

use super::distributions::normal_cdf;
use super::permutation::PermutationTest;
use super::random::Generator;
use super::{check_count, check_finite, largest_magnitude, overflow, too_few_values};
use crate::error::{Error, Result};
use crate::threads;

/// Pairs of samples summed side by side.
const COLUMNS: usize = 8;
/// Permutations that share one random stream.
const BLOCK: usize = 1024;
/// Indices drawn at a time.
const DRAWN: usize = 256;
/// A larger group is not drawn if its sum is normal for every purpose.
const LARGEST_DRAWN: usize = 10_000;
/// The largest share of the sum of squares that one value can have if the sum is normal.
const LARGEST_SHARE: f64 = 1e-3;
/// Two sums are equal if they differ by at most this share of the sum of all distances from the mean.
const TIE_TOLERANCE: f64 = 1e-12;

/// The permutation test of the difference of two means, for each pair of independent samples: are the values of the
/// first as likely to be in the second?
///
/// Under the null hypothesis every division of all values into groups of these sizes is equally likely. The p-value is
/// two-sided, for the absolute difference of the means:
///
/// - exact, if there are at most `permutations` divisions: the share of those whose difference is at least the observed
///   one;
/// - from the normal distribution with the permutations' variance, if both samples have more than 10,000 values and no
///   value has more than a thousandth of the sum of squares (Noether's condition); `permutations` is then 0;
/// - otherwise, with `permutations` random divisions, `(1 + count) / (1 + permutations)`, which is never 0 and keeps the
///   test's level.
///
/// `mean_difference` is the mean of the first sample minus that of the second. Differences that are equal up to
/// rounding are ties and count. The order of the values does not matter. Pairs of the same sizes use the same divisions.
/// A p-value depends only on its own values and the settings, not on the other pairs or the number of threads.
///
/// # Errors
/// An empty sample, a value that is NaN or infinite, values too large to add up, 2³² values or more, 0 or more than 100
/// million permutations.
///
/// Sources: E. S. Edgington, P. Onghena, "Randomization Tests", 4th edition, 2007; B. Phipson, G. K. Smyth,
/// "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010).
///
/// ```
/// use rageval_core::statistics::permutation_test_unpaired;
///
/// // Of the six divisions, two are as far apart: {1, 2} against {3, 4}, and the other way round.
/// let tests = permutation_test_unpaired(&[(&[1.0, 2.0], &[3.0, 4.0])], 10_000, 0, None)?;
/// assert_eq!((tests[0].p_value, tests[0].exact), (2.0 / 6.0, true));
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn permutation_test_unpaired(
    pairs: &[(&[f64], &[f64])],
    permutations: usize,
    seed: u64,
    threads: Option<NonZeroUsize>,
) -> Result<Vec<PermutationTest>> {
    check_count("permutations", permutations)?;
    let pools = pairs
        .iter()
        .enumerate()
        .map(|(row, (first, second))| Pool::new(row, first, second))
        .collect::<Result<Vec<_>>>()?;
    let threads = threads::resolve(threads);
    let (solved, sampled): (Vec<usize>, Vec<usize>) =
        (0..pools.len()).partition(|&row| pools[row].is_solvable(permutations));
    let solved_tests = threads::map(solved.len(), threads, |i| pools[solved[i]].solve());
    let counts = count_sampled(&pools, &sampled, permutations, seed, threads);
    let sampled_tests = sampled
        .iter()
        .zip(counts)
        .map(|(&row, count)| PermutationTest {
            mean_difference: pools[row].mean_difference,
            p_value: (1 + count) as f64 / (1.0 + permutations as f64),
            permutations,
            exact: false,
        });
    let mut tests: Vec<_> = solved.iter().copied().zip(solved_tests).collect();
    tests.extend(sampled.iter().copied().zip(sampled_tests));
    tests.sort_unstable_by_key(|(row, _)| *row);
    Ok(tests.into_iter().map(|(_, test)| test).collect())
}

/// The values of both samples, as distances from their common mean, in ascending order.
///
/// The distances add up to 0, so the sum of one group decides the difference of the means; the smaller group is drawn.
struct Pool {
    distances: Vec<f64>,
    /// The size of the smaller sample.
    size: usize,
    /// The least absolute sum of the smaller group that counts as reaching the observed one.
    bound: f64,
    mean_difference: f64,
}

impl Pool {
    fn new(row: usize, first: &[f64], second: &[f64]) -> Result<Self> {
        for sample in [first, second] {
            if sample.is_empty() {
                return Err(too_few_values(row, 0, 1));
            }
            check_finite(row, sample)?;
        }
        let mut values = [first, second].concat();
        let count = values.len() as f64;
        if !(2.0 * largest_magnitude(&values) * count).is_finite() {
            return Err(overflow(row));
        }
        if u32::try_from(values.len()).is_err() {
            return Err(Error::Value(format!("sample {row} has too many values")));
        }
        values.sort_unstable_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / count;
        let smaller = if first.len() <= second.len() {
            first
        } else {
            second
        };
        let observed: f64 = smaller.iter().map(|value| value - mean).sum();
        for value in &mut values {
            *value -= mean;
        }
        let spread: f64 = values.iter().map(|distance| distance.abs()).sum();
        let rounding = 4.0 * f64::EPSILON * count * mean.abs();
        Ok(Self {
            distances: values,
            size: smaller.len(),
            bound: observed.abs() - TIE_TOLERANCE * spread - rounding,
            mean_difference: average(first) - average(second),
        })
    }

    /// The number of ways to choose the smaller group; None if there are more than `most`.
    fn divisions(&self, most: usize) -> Option<usize> {
        let mut ways: usize = 1;
        for chosen in 0..self.size {
            // Exact: the product of consecutive binomial coefficients is divisible.
            ways = ways.checked_mul(self.distances.len() - chosen)? / (chosen + 1);
            if ways > most {
                return None;
            }
        }
        Some(ways)
    }

    /// Whether the p-value needs no random divisions.
    fn is_solvable(&self, permutations: usize) -> bool {
        self.is_normal() || self.divisions(permutations).is_some()
    }

    fn solve(&self) -> PermutationTest {
        if self.is_normal() {
            self.approximate()
        } else {
            self.enumerate()
        }
    }

    fn is_normal(&self) -> bool {
        if self.size <= LARGEST_DRAWN {
            return false;
        }
        let largest = largest_magnitude(&self.distances);
        largest * largest <= LARGEST_SHARE * self.sum_of_squares()
    }

    fn sum_of_squares(&self) -> f64 {
        self.distances
            .iter()
            .map(|distance| distance * distance)
            .sum()
    }

    /// The test in the limit of large samples.
    fn approximate(&self) -> PermutationTest {
        let (all, chosen) = (self.distances.len() as f64, self.size as f64);
        let variance = chosen * (all - chosen) / (all * (all - 1.0)) * self.sum_of_squares();
        let z = if variance > 0.0 {
            self.bound.max(0.0) / variance.sqrt()
        } else {
            0.0
        };
        PermutationTest {
            mean_difference: self.mean_difference,
            p_value: (2.0 * normal_cdf(-z)).clamp(f64::MIN_POSITIVE, 1.0),
            permutations: 0,
            exact: false,
        }
    }

    /// The exact test over all divisions.
    fn enumerate(&self) -> PermutationTest {
        let length = self.distances.len();
        let mut chosen: Vec<usize> = (0..self.size).collect();
        let (mut ways, mut reaching) = (0, 0);
        loop {
            let sum: f64 = chosen.iter().map(|&index| self.distances[index]).sum();
            ways += 1;
            reaching += usize::from(sum.abs() >= self.bound);
            let Some(last) =
                (0..self.size).rfind(|&place| chosen[place] < length - self.size + place)
            else {
                break;
            };
            chosen[last] += 1;
            for place in last + 1..self.size {
                chosen[place] = chosen[place - 1] + 1;
            }
        }
        PermutationTest {
            mean_difference: self.mean_difference,
            p_value: reaching as f64 / ways as f64,
            permutations: ways,
            exact: true,
        }
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// For each pool in `rows`, how many of the random divisions reach the observed sum.
fn count_sampled(
    pools: &[Pool],
    rows: &[usize],
    permutations: usize,
    seed: u64,
    threads: NonZeroUsize,
) -> Vec<u64> {
    let groups: Vec<Group> = group_by_sizes(pools, rows)
        .into_iter()
        .map(|rows| Group::new(pools, rows))
        .collect();
    let blocks = permutations.div_ceil(BLOCK);
    let counts = threads::map(groups.len() * blocks, threads, |task| {
        let block = task % blocks;
        let divisions = BLOCK.min(permutations - block * BLOCK);
        groups[task / blocks].count(divisions, &mut Generator::new(seed, block as u64))
    });
    let mut totals = vec![0; pools.len()];
    for (task, counts) in counts.into_iter().enumerate() {
        for (&row, count) in groups[task / blocks].rows.iter().zip(counts) {
            totals[row] += count;
        }
    }
    rows.iter().map(|&row| totals[row]).collect()
}

/// Rows of the same sizes, at most [`COLUMNS`] in a group.
fn group_by_sizes(pools: &[Pool], rows: &[usize]) -> Vec<Vec<usize>> {
    let sizes = |row: usize| (pools[row].distances.len(), pools[row].size);
    let mut rows = rows.to_vec();
    rows.sort_by_key(|&row| sizes(row));
    rows.chunk_by(|&a, &b| sizes(a) == sizes(b))
        .flat_map(|same| same.chunks(COLUMNS).map(<[usize]>::to_vec))
        .collect()
}

/// Pools of the same sizes: the distances at each place side by side, so that a drawn place serves all of them.
struct Group {
    rows: Vec<usize>,
    table: Vec<[f64; COLUMNS]>,
    size: usize,
    bounds: Vec<f64>,
}

impl Group {
    fn new(pools: &[Pool], rows: Vec<usize>) -> Self {
        let mut table = vec![[0.0; COLUMNS]; pools[rows[0]].distances.len()];
        for (column, &row) in rows.iter().enumerate() {
            for (cells, &distance) in table.iter_mut().zip(&pools[row].distances) {
                cells[column] = distance;
            }
        }
        Self {
            table,
            size: pools[rows[0]].size,
            bounds: rows.iter().map(|&row| pools[row].bound).collect(),
            rows,
        }
    }

    /// How many of `divisions` random divisions reach each observed sum.
    ///
    /// A place that the division already has is drawn again. At most half of all places are chosen, so that happens to
    /// fewer than half of the draws.
    fn count(&self, divisions: usize, generator: &mut Generator) -> [u64; COLUMNS] {
        let bound = self.table.len() as u32;
        let mut taken = vec![0_u32; self.table.len()];
        let mut drawn = [0; DRAWN];
        let mut next = DRAWN;
        let mut counts = [0; COLUMNS];
        for division in 1..=divisions as u32 {
            let mut sums = [0.0; COLUMNS];
            let mut missing = self.size;
            while missing > 0 {
                if next == DRAWN {
                    generator.fill_indices(bound, &mut drawn);
                    next = 0;
                }
                let place = drawn[next] as usize;
                next += 1;
                if taken[place] == division {
                    continue;
                }
                taken[place] = division;
                missing -= 1;
                for (sum, distance) in sums.iter_mut().zip(&self.table[place]) {
                    *sum += distance;
                }
            }
            for (count, (sum, bound)) in counts.iter_mut().zip(sums.iter().zip(&self.bounds)) {
                *count += u64::from(sum.abs() >= *bound);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn test(first: &[f64], second: &[f64], permutations: usize) -> PermutationTest {
        permutation_test_unpaired(&[(first, second)], permutations, 11, None).unwrap()[0]
    }

    /// Of the ten pairs from 1 2 3 4 10, only {4, 10} has a mean as far from the others' as the observed 7 from 2.
    #[test]
    fn hand_worked_enumeration() {
        let outcome = test(&[4.0, 10.0], &[1.0, 2.0, 3.0], 10);
        assert_eq!(
            (outcome.p_value, outcome.permutations, outcome.exact),
            (0.1, 10, true)
        );
        assert_eq!(outcome.mean_difference, 5.0);
    }

    #[test]
    fn one_division_too_many_is_sampled() {
        let outcome = test(&[4.0, 10.0], &[1.0, 2.0, 3.0], 9);
        assert_eq!((outcome.permutations, outcome.exact), (9, false));
    }

    #[test]
    fn equal_values_are_no_evidence() {
        assert_eq!(test(&[0.1; 3], &[0.1; 4], 100).p_value, 1.0);
        assert_eq!(test(&[0.1; 30], &[0.1; 47], 100).p_value, 1.0);
    }

    #[test]
    fn a_strong_effect_gets_the_smallest_p_value() {
        assert_eq!(test(&[0.1; 60], &[0.9; 50], 999).p_value, 0.001);
    }

    #[test]
    fn sampling_comes_close_to_enumeration() {
        let values: Vec<f64> = (0..16).map(|i| (f64::from(i * i) * 0.37).sin()).collect();
        let (first, second) = values.split_at(6);
        let exact = test(first, second, 8008);
        let sampled = test(first, second, 8007);
        assert!(exact.exact && !sampled.exact);
        assert!((exact.p_value - sampled.p_value).abs() < 0.02);
    }

    #[test]
    fn large_samples_are_solved_and_agree_with_random_divisions() {
        let values: Vec<f64> = (0..25_000).map(|i| (f64::from(i) * 0.37).sin()).collect();
        let shifted: Vec<f64> = values[..12_000].iter().map(|value| value + 0.01).collect();
        let solved = test(&shifted, &values[12_000..], 2000);
        assert_eq!((solved.permutations, solved.exact), (0, false));
        let drawn = test(&shifted[..9_000], &values[12_000..21_000], 2000);
        assert_eq!(drawn.permutations, 2000);
        let pool = Pool::new(0, &shifted[..9_000], &values[12_000..21_000]).unwrap();
        assert!((pool.approximate().p_value - drawn.p_value).abs() < 0.03);
    }

    #[test]
    fn one_value_that_outweighs_all_others_is_drawn() {
        let mut first = vec![0.0; 11_000];
        first[0] = 1e6;
        let outcome = test(&first, &vec![0.0; 11_000], 50);
        assert_eq!((outcome.permutations, outcome.p_value), (50, 1.0));
    }

    #[test]
    fn large_samples_of_equal_values_are_no_evidence() {
        assert_eq!(test(&[0.25; 11_000], &[0.25; 11_000], 50).p_value, 1.0);
    }

    #[test]
    fn bad_input_is_named() {
        let message = |pairs: &[(&[f64], &[f64])], permutations| {
            permutation_test_unpaired(pairs, permutations, 0, None)
                .unwrap_err()
                .to_string()
        };
        let fine: (&[f64], &[f64]) = (&[1.0], &[2.0]);
        assert!(message(&[fine, (&[1.0], &[])], 10).starts_with("sample 1 has 0 values"));
        assert!(message(&[(&[f64::NAN], &[1.0])], 10).starts_with("value 0 of sample 0 is NaN"));
        assert!(message(&[(&[f64::MAX], &[1.0])], 10).contains("too large"));
        assert!(message(&[], 0).starts_with("permutations must be between 1"));
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1.0..1.0, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn neighbours_and_threads_change_nothing(
            pairs in prop::collection::vec((samples(), samples()), 1..20),
            seed in any::<u64>(),
            threads in 1..5_usize,
        ) {
            let rows: Vec<(&[f64], &[f64])> = pairs.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
            let together = permutation_test_unpaired(&rows, 1500, seed, NonZeroUsize::new(threads)).unwrap();
            for (row, outcome) in rows.iter().zip(together) {
                let alone = permutation_test_unpaired(&[*row], 1500, seed, NonZeroUsize::new(1)).unwrap();
                prop_assert_eq!(alone[0], outcome);
            }
        }

        #[test]
        fn order_does_not_matter_and_swapping_changes_only_the_sign(first in samples(), second in samples()) {
            let mut reversed = first.clone();
            reversed.reverse();
            let (one, other) = (test(&first, &second, 300), test(&second, &reversed, 300));
            prop_assert!((one.p_value - other.p_value).abs() < 1e-12);
            prop_assert!((one.mean_difference + other.mean_difference).abs() < 1e-12);
        }

        #[test]
        fn p_values_are_shares(first in samples(), second in samples()) {
            let outcome = test(&first, &second, 200);
            prop_assert!(outcome.p_value > 0.0 && outcome.p_value <= 1.0);
        }
    }
}
