//! Bootstrap confidence intervals of means.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use pulp::{Arch, Simd, WithSimd};

use super::distributions::{normal_cdf, normal_quantile};
use super::random::Generator;
use super::{
    Interval, check_confidence, check_count, check_finite, largest_magnitude, overflow, quantile,
    too_few_values,
};
use crate::error::{Error, Result};
use crate::threads;

/// Resamples that share one random stream.
const BLOCK: usize = 64;
/// Indices drawn at a time: few enough to stay in the first-level cache.
const BATCH: usize = 512;
/// Running sums of one resample, so that additions need not wait for each other.
const LANES: usize = 4;
/// Samples of equal length that are resampled with the same draws.
const TOGETHER: usize = 4;
/// Resample means this close to the sample's mean, relative to its largest value, count as equal to it.
const TIE_TOLERANCE: f64 = 1e-12;

/// How the ends of the interval are computed from the resample means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalMethod {
    /// Bias-corrected and accelerated: second-order accurate, the better choice for skewed values.
    Bca,
    /// The plain quantiles of the resample means.
    Percentile,
}

/// The settings of a bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples, 1 to 100 million.
    pub resamples: usize,
    /// Confidence level, between 0 and 1.
    pub confidence: f64,
    /// The seed of the random draws.
    pub seed: u64,
    /// How the interval's ends are computed.
    pub method: IntervalMethod,
    /// Threads to use; one per core by default. It never changes the result.
    pub threads: Option<NonZeroUsize>,
}

/// 10,000 resamples, a 95 % BCa interval, seed 0.
impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            resamples: 10_000,
            confidence: 0.95,
            seed: 0,
            method: IntervalMethod::Bca,
            threads: None,
        }
    }
}

/// A confidence interval of the mean of each of `samples`.
///
/// A sample of `n` values is resampled `resamples` times with replacement, `n` values each; the
/// interval's ends are the quantiles (linear interpolation) of the resample means at
///
/// - percentile: `alpha = (1 - confidence) / 2` and `1 - alpha`;
/// - BCa: `Phi(z0 + (z0 + z) / (1 - a * (z0 + z)))` for `z` at `alpha` and `1 - alpha`, where `z0` is the
///   normal quantile of the share of resample means below the sample's mean (those equal to it count
///   half) and `a = sum(d^3) / (6 * sum(d^2)^1.5)` with `d` the deviations from the mean, which is
///   what the jackknife gives for a mean.
///
/// Samples of the same length use the same draws. A sample's interval depends only on its own values and the settings,
/// not on the other samples or the number of threads.
///
/// Edge cases: a sample of one value has no interval (`None`). Equal values have an interval of width 0. If every
/// resample mean lies on one side of the sample's mean, the share on the other side counts as half a resample, so that
/// `z0` is finite.
///
/// # Errors
/// An empty sample, a value that is NaN or infinite, values too large to add up, 0 or more than
/// 100 million resamples, a confidence outside `(0, 1)`.
///
/// Source: B. Efron, "Better bootstrap confidence intervals", Journal of the American Statistical
/// Association 82 (1987). Agrees with `scipy.stats.bootstrap` up to the random draws.
///
/// ```
/// use rageval_core::statistics::{Bootstrap, bootstrap_means};
///
/// let settings = Bootstrap { resamples: 2000, ..Bootstrap::default() };
/// let intervals = bootstrap_means(&[&[0.0, 1.0, 1.0, 0.0, 1.0], &[0.5]], &settings)?;
/// assert!(intervals[0].is_some_and(|interval| interval.low < 0.6 && 0.6 < interval.high));
/// assert_eq!(intervals[1], None);
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn bootstrap_means(samples: &[&[f64]], settings: &Bootstrap) -> Result<Vec<Option<Interval>>> {
    check_count("resamples", settings.resamples)?;
    check_confidence(settings.confidence)?;
    let mut rows_by_length = BTreeMap::<usize, Vec<usize>>::new();
    for (row, sample) in samples.iter().enumerate() {
        check_sample(row, sample)?;
        rows_by_length.entry(sample.len()).or_default().push(row);
    }
    let mut intervals = vec![None; samples.len()];
    for rows in rows_by_length.values() {
        for rows in rows.chunks(TOGETHER) {
            let together: Vec<&[f64]> = rows.iter().map(|&row| samples[row]).collect();
            for (&row, means) in rows.iter().zip(resample_means(&together, settings)) {
                intervals[row] = interval(samples[row], means, settings);
            }
        }
    }
    Ok(intervals)
}

fn check_sample(row: usize, sample: &[f64]) -> Result<()> {
    if sample.is_empty() {
        return Err(too_few_values(row, 0, 1));
    }
    if u32::try_from(sample.len()).is_err() {
        return Err(Error::Value(format!(
            "sample {row} has more than {} values",
            u32::MAX
        )));
    }
    check_finite(row, sample)?;
    let largest = largest_magnitude(sample);
    if (largest * sample.len() as f64).is_finite() {
        Ok(())
    } else {
        Err(overflow(row))
    }
}

/// The resample means of up to [`TOGETHER`] samples of one length.
fn resample_means(samples: &[&[f64]], settings: &Bootstrap) -> Vec<Vec<f64>> {
    match samples {
        [one] => {
            let rows: Vec<[f64; 1]> = one.iter().map(|&value| [value]).collect();
            resample_rows(&rows, samples.len(), settings)
        }
        [first, second] => {
            let rows: Vec<[f64; 2]> = first.iter().zip(*second).map(|(&a, &b)| [a, b]).collect();
            resample_rows(&rows, samples.len(), settings)
        }
        _ => {
            let mut rows = vec![[0.0; TOGETHER]; samples[0].len()];
            for (column, sample) in samples.iter().enumerate() {
                for (row, &value) in rows.iter_mut().zip(*sample) {
                    row[column] = value;
                }
            }
            resample_rows(&rows, samples.len(), settings)
        }
    }
}

fn resample_rows<const C: usize>(
    rows: &[[f64; C]],
    columns: usize,
    settings: &Bootstrap,
) -> Vec<Vec<f64>> {
    let blocks = settings.resamples.div_ceil(BLOCK);
    let arch = Arch::new();
    let sums = threads::map(blocks, threads::resolve(settings.threads), |block| {
        arch.dispatch(Block {
            rows,
            size: BLOCK.min(settings.resamples - block * BLOCK),
            generator: Generator::new(settings.seed, block as u64),
        })
    });
    let count = rows.len() as f64;
    let means = |column: usize| sums.iter().flatten().map(move |sum| sum[column] / count);
    (0..columns).map(|column| means(column).collect()).collect()
}

/// A block of resamples. Inlined with everything it calls, so that it is compiled for the vector instructions of each
/// kind of machine. They change the speed but not a single bit of the result.
struct Block<'a, const C: usize> {
    rows: &'a [[f64; C]],
    size: usize,
    generator: Generator,
}

impl<const C: usize> WithSimd for Block<'_, C> {
    type Output = Vec<[f64; C]>;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> Self::Output {
        let mut sums = vec![[0.0; C]; self.size];
        let mut indices = [0; BATCH];
        for sum in &mut sums {
            *sum = resample_sum(self.rows, &mut self.generator, &mut indices);
        }
        sums
    }
}

#[inline(always)]
fn resample_sum<const C: usize>(
    rows: &[[f64; C]],
    generator: &mut Generator,
    indices: &mut [u32; BATCH],
) -> [f64; C] {
    let mut lanes = [[0.0; C]; LANES];
    let mut remaining = rows.len();
    while remaining > 0 {
        let batch = &mut indices[..remaining.min(BATCH)];
        generator.fill_indices(rows.len() as u32, batch);
        let (chunks, rest) = batch.as_chunks::<LANES>();
        for chunk in chunks {
            add_drawn(rows, chunk, &mut lanes);
        }
        add_drawn(rows, rest, &mut lanes);
        remaining -= batch.len();
    }
    std::array::from_fn(|column| lanes.iter().map(|lane| lane[column]).sum())
}

#[inline(always)]
fn add_drawn<const C: usize>(rows: &[[f64; C]], indices: &[u32], lanes: &mut [[f64; C]; LANES]) {
    for (lane, &index) in lanes.iter_mut().zip(indices) {
        let row = &rows[index as usize];
        for column in 0..C {
            lane[column] += row[column];
        }
    }
}

fn interval(sample: &[f64], mut means: Vec<f64>, settings: &Bootstrap) -> Option<Interval> {
    let first = sample[0];
    if sample.len() == 1 {
        return None;
    }
    if sample.iter().all(|&value| value == first) {
        return Some(Interval {
            low: first,
            high: first,
        });
    }
    means.sort_unstable_by(f64::total_cmp);
    let alpha = (1.0 - settings.confidence) / 2.0;
    let [low, high] = match settings.method {
        IntervalMethod::Percentile => [alpha, 1.0 - alpha],
        IntervalMethod::Bca => bca_probabilities(sample, &means, alpha),
    };
    Some(Interval {
        low: quantile::linear(&means, low),
        high: quantile::linear(&means, high),
    })
}

fn bca_probabilities(sample: &[f64], sorted_means: &[f64], alpha: f64) -> [f64; 2] {
    let bias = bias_correction(sample, sorted_means);
    let acceleration = acceleration(sample);
    let z = normal_quantile(alpha);
    [z, -z].map(|z| {
        let shifted = bias + z;
        let denominator = 1.0 - acceleration * shifted;
        if denominator > 0.0 {
            normal_cdf(bias + shifted / denominator)
        } else {
            f64::from(u8::from(shifted > 0.0))
        }
    })
}

/// `z0`: the normal quantile of the share of resample means below the sample's mean.
fn bias_correction(sample: &[f64], sorted_means: &[f64]) -> f64 {
    let mean = mean(sample);
    let tolerance = TIE_TOLERANCE * largest_magnitude(sample);
    let below = sorted_means.partition_point(|&resampled| resampled < mean - tolerance);
    let not_above = sorted_means.partition_point(|&resampled| resampled <= mean + tolerance);
    let count = sorted_means.len() as f64;
    let share = (below + not_above) as f64 / (2.0 * count);
    let half_a_resample = 0.5 / count;
    normal_quantile(share.clamp(half_a_resample, 1.0 - half_a_resample))
}

/// `a`: a sixth of the skewness of the jackknife means. The deviations are scaled to at most 1,
/// so that no power of them under- or overflows.
fn acceleration(sample: &[f64]) -> f64 {
    let mean = mean(sample);
    let largest = sample
        .iter()
        .fold(0.0_f64, |largest, value| largest.max((value - mean).abs()));
    let [squares, cubes] = sample.iter().fold([0.0, 0.0], |[squares, cubes], value| {
        let deviation = (value - mean) / largest;
        [squares + deviation.powi(2), cubes + deviation.powi(3)]
    });
    cubes / (6.0 * squares.powf(1.5))
}

fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(resamples: usize, seed: u64, threads: usize) -> Bootstrap {
        Bootstrap {
            resamples,
            seed,
            threads: NonZeroUsize::new(threads),
            ..Bootstrap::default()
        }
    }

    fn wavy(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| ((i * i) as f64 * 0.37).sin().abs())
            .collect()
    }

    #[test]
    fn one_value_has_no_interval_and_equal_values_have_no_width() {
        let intervals = bootstrap_means(&[&[0.3], &[0.1; 7]], &settings(100, 1, 1)).unwrap();
        assert_eq!(
            intervals,
            [
                None,
                Some(Interval {
                    low: 0.1,
                    high: 0.1
                })
            ]
        );
    }

    /// Of two values 0 and 1 a quarter of the resample means is 0, half is 0.5 and a quarter is 1.
    #[test]
    fn two_values_span_the_whole_range() {
        for method in [IntervalMethod::Bca, IntervalMethod::Percentile] {
            let settings = Bootstrap {
                method,
                ..settings(4000, 3, 2)
            };
            let interval = bootstrap_means(&[&[0.0, 1.0]], &settings).unwrap()[0];
            assert_eq!(
                interval,
                Some(Interval {
                    low: 0.0,
                    high: 1.0
                })
            );
        }
    }

    #[test]
    fn the_interval_is_close_to_the_normal_one_for_many_values() {
        let sample = wavy(5000);
        let centre = mean(&sample);
        let variance = sample.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / 5000.0;
        let half_width = 1.96 * (variance / 5000.0).sqrt();
        let interval = bootstrap_means(&[&sample], &settings(10_000, 5, 2)).unwrap()[0].unwrap();
        assert!((interval.low - (centre - half_width)).abs() < 0.05 * half_width);
        assert!((interval.high - (centre + half_width)).abs() < 0.05 * half_width);
    }

    /// d = (-1, -1, 2): squares 6, cubes 6, so a = 6 / (6 * 6^1.5).
    #[test]
    fn acceleration_by_hand() {
        assert!((acceleration(&[0.0, 0.0, 3.0]) - 6.0_f64.powf(-1.5)).abs() < 1e-15);
        let tiny = acceleration(&[0.0, 0.0, 3e-300]);
        assert!((tiny - 6.0_f64.powf(-1.5)).abs() < 1e-15);
    }

    #[test]
    fn skewed_values_move_the_bca_interval_to_the_tail() {
        let mut sample = vec![0.0; 95];
        sample.extend([1.0; 5]);
        let bca = bootstrap_means(&[&sample], &settings(10_000, 2, 2)).unwrap()[0].unwrap();
        let plain = Bootstrap {
            method: IntervalMethod::Percentile,
            ..settings(10_000, 2, 2)
        };
        let percentile = bootstrap_means(&[&sample], &plain).unwrap()[0].unwrap();
        assert!(bca.low > percentile.low && bca.high > percentile.high);
    }

    #[test]
    fn resample_means_on_one_side_leave_a_finite_interval() {
        let mut sample = vec![0.0; 99];
        sample.push(1.0);
        for seed in 0..20 {
            let interval = bootstrap_means(&[&sample], &settings(1, seed, 1)).unwrap()[0].unwrap();
            assert!(interval.low.is_finite() && interval.low == interval.high);
        }
    }

    #[test]
    fn bad_input_is_named() {
        let default = Bootstrap::default();
        let message = |samples: &[&[f64]], settings: &Bootstrap| {
            bootstrap_means(samples, settings).unwrap_err().to_string()
        };
        assert_eq!(
            message(&[&[1.0], &[]], &default),
            "sample 1 has 0 values; at least 1 are needed"
        );
        assert!(message(&[&[1.0, f64::NAN]], &default).starts_with("value 1 of sample 0 is NaN"));
        assert!(message(&[&[f64::MAX, f64::MAX]], &default).contains("too large"));
        assert!(
            message(
                &[],
                &Bootstrap {
                    resamples: 0,
                    ..default
                }
            )
            .starts_with("resamples")
        );
        assert!(
            message(
                &[],
                &Bootstrap {
                    confidence: 1.0,
                    ..default
                }
            )
            .starts_with("confidence")
        );
        assert!(
            message(
                &[],
                &Bootstrap {
                    confidence: f64::NAN,
                    ..default
                }
            )
            .contains("not NaN")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn neighbours_and_threads_change_nothing(
            samples in prop::collection::vec(prop::collection::vec(-1e3..1e3, 1..40), 1..9),
            seed in any::<u64>(),
            threads in 1..5_usize,
        ) {
            let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
            let together = bootstrap_means(&samples, &settings(150, seed, threads)).unwrap();
            for (sample, interval) in samples.iter().zip(together) {
                prop_assert_eq!(bootstrap_means(&[sample], &settings(150, seed, 1)).unwrap()[0], interval);
            }
        }

        #[test]
        fn the_interval_lies_within_the_values(
            sample in prop::collection::vec(-1e300..1e300, 2..20),
            seed in any::<u64>(),
        ) {
            let interval = bootstrap_means(&[&sample], &settings(99, seed, 2)).unwrap()[0].unwrap();
            let (lowest, highest) = (
                sample.iter().copied().fold(f64::INFINITY, f64::min),
                sample.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            );
            let slack = 1e-12 * largest_magnitude(&sample);
            prop_assert!(lowest - slack <= interval.low && interval.low <= interval.high);
            prop_assert!(interval.high <= highest + slack);
        }
    }
}
