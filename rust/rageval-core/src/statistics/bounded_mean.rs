//! Confidence intervals of means of values that have a lowest and a highest possible value.

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use super::distributions::normal_quantile;
use super::gamma_sums::tail_above;
use super::{Interval, check_confidence, check_finite, overflow};
use crate::error::{Error, Result};
use crate::threads;

/// The most steps towards an end, and the share of the range at which they stop.
const MOST_STEPS: usize = 100;
const CLOSE: f64 = 1e-12;
/// The distance from an end, in standard normal deviates, that is only rounding.
const NEARLY: f64 = 1e-13;
/// Probabilities are taken to be no closer to 0 and 1 than this.
const LEAST: f64 = 1e-290;
const MOST: f64 = 1.0 - 1e-16;

/// A sample of values, with what is known of the values that it could have had.
#[derive(Debug, Clone, Copy)]
pub struct BoundedSample<'a> {
    /// The values.
    pub values: &'a [f64],
    /// How often each value was seen, if not once; not necessarily whole numbers.
    pub counts: Option<&'a [f64]>,
    /// The lowest and the highest possible value.
    pub bounds: (f64, f64),
}

/// A confidence interval of the mean that each of `samples` was drawn from.
///
/// The upper end is the quantile of a random mean: the values and, as one more, the highest possible value have random
/// weights that add up to 1, uniformly distributed (Dirichlet's distribution with the parameters 1). The lower end is the
/// same with the lowest possible value. If all values are one of the two bounds, these are the ends of Clopper and
/// Pearson's exact interval of a share, because the weights of `k + 1` of `n + 1` values add up to a number with the
/// distribution Beta(k + 1, n - k). If all values are equal, the interval has every mean that so many equal values do not
/// rule out. No interval of values below the highest possible one ends at the mean.
///
/// The probability that the random mean exceeds `m` is that of `sum(a * g) > 0` for `a = value - m` and independent
/// gamma variables `g` with the counts as parameters. It is an integral of `prod((1 - a * s)^-count) / s`, along a
/// hyperbola through the saddle point, where it converges to about ten digits. There are no random draws.
///
/// The interval of a sample with one value is valid too, and of no use.
///
/// # Errors
/// A sample without values, a value or count that is not finite, a count that is not above 0, as many counts as values
/// are not given, bounds that are not below one another, a confidence outside `(0, 1)`. Values outside the bounds are not
/// an error; then the bounds are only where the one further value is.
///
/// Sources: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
/// binomial", Biometrika 26 (1934); N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the
/// mean of a nonnegative variable", Mathematical Methods of Statistics 14 (2005); E. Learned-Miller, P. S. Thomas,
/// "A new confidence interval for the mean of a bounded random variable", arXiv:1905.06208 (2019).
///
/// ```
/// use rageval_core::statistics::{BoundedSample, bound_means};
///
/// // Five answers of five are right: the share is at least the fifth root of 0.025.
/// let sample = BoundedSample { values: &[1.0; 5], counts: None, bounds: (0.0, 1.0) };
/// let interval = bound_means(&[sample], 0.95, None)?[0];
/// assert!((interval.low - 0.025_f64.powf(0.2)).abs() < 1e-12 && interval.high == 1.0);
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn bound_means(
    samples: &[BoundedSample<'_>],
    confidence: f64,
    threads: Option<NonZeroUsize>,
) -> Result<Vec<Interval>> {
    check_confidence(confidence)?;
    for (row, sample) in samples.iter().enumerate() {
        check_sample(row, sample)?;
    }
    let tail = (1.0 - confidence) / 2.0;
    Ok(threads::map(
        samples.len(),
        threads::resolve(threads),
        |row| {
            let sample = &samples[row];
            let (low, high) = sample.bounds;
            Interval {
                low: 0.0 - upper_end(sample, -1.0, -low, tail),
                high: upper_end(sample, 1.0, high, tail),
            }
        },
    ))
}

fn check_sample(row: usize, sample: &BoundedSample<'_>) -> Result<()> {
    if sample.values.is_empty() {
        return Err(Error::Value(format!("sample {row} has no values")));
    }
    check_finite(row, sample.values)?;
    let (low, high) = sample.bounds;
    if low.partial_cmp(&high) != Some(Ordering::Less) {
        return Err(Error::Value(format!(
            "sample {row} has the bounds {low} and {high}; the first must be below the second"
        )));
    }
    let reach = sample
        .values
        .iter()
        .fold(low.abs().max(high.abs()), |most, value| {
            most.max(value.abs())
        });
    if !(reach * (sample.values.len() + 2) as f64).is_finite() {
        return Err(overflow(row));
    }
    let Some(counts) = sample.counts else {
        return Ok(());
    };
    if counts.len() != sample.values.len() {
        return Err(Error::Value(format!(
            "sample {row} has {} values and {} counts; there must be equally many",
            sample.values.len(),
            counts.len()
        )));
    }
    match counts
        .iter()
        .find(|count| !(count.is_finite() && **count > 0.0))
    {
        None => Ok(()),
        Some(count) => Err(Error::Value(format!(
            "sample {row} has the count {count}; counts must be above 0"
        ))),
    }
}

/// Different numbers in ascending order, from 0 to 1, each with how often it was seen.
struct Atoms {
    numbers: Vec<f64>,
    counts: Vec<f64>,
    /// What 0 and 1 stand for.
    ends: (f64, f64),
}

impl Atoms {
    fn new(sample: &BoundedSample<'_>, sign: f64, further: f64) -> Self {
        let count = |place: usize| sample.counts.map_or(1.0, |counts| counts[place]);
        let mut pairs: Vec<(f64, f64)> = sample
            .values
            .iter()
            .enumerate()
            .map(|(place, &value)| (sign * value, count(place)))
            .chain([(further, 1.0)])
            .collect();
        pairs.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut atoms = Self {
            numbers: Vec::with_capacity(pairs.len()),
            counts: Vec::with_capacity(pairs.len()),
            ends: (pairs[0].0, pairs[pairs.len() - 1].0),
        };
        for (number, count) in pairs {
            match (atoms.numbers.last(), atoms.counts.last_mut()) {
                (Some(&last), Some(seen)) if last == number => *seen += count,
                _ => {
                    atoms.numbers.push(number);
                    atoms.counts.push(count);
                }
            }
        }
        let (first, span) = (atoms.ends.0, atoms.ends.1 - atoms.ends.0);
        for number in &mut atoms.numbers {
            *number = if span > 0.0 {
                (*number - first) / span
            } else {
                0.0
            };
        }
        atoms
    }

    /// The mean and the standard deviation of the random mean.
    fn describe(&self) -> (f64, f64) {
        let sum = |term: &dyn Fn(f64) -> f64| -> f64 {
            (self.numbers.iter().zip(&self.counts))
                .map(|(&number, count)| count * term(number))
                .sum()
        };
        let total: f64 = self.counts.iter().sum();
        let mean = sum(&|number| number) / total;
        let squares = sum(&|number| (number - mean).powi(2));
        (mean, (squares / (total * (total + 1.0))).sqrt())
    }
}

/// The number that the random mean exceeds with the probability `tail`.
fn upper_end(sample: &BoundedSample<'_>, sign: f64, further: f64, tail: f64) -> f64 {
    let atoms = Atoms::new(sample, sign, further);
    let (first, last) = atoms.ends;
    if first == last {
        return last;
    }
    let (mean, deviation) = atoms.describe();
    let target = -normal_quantile(tail);
    // In standard normal deviates, the probability is nearly a linear function of the end, so secants find it soon.
    let distance = |end: f64| -normal_quantile(exceed(&atoms, end).clamp(LEAST, MOST)) - target;
    let (mut low, mut high) = (0.0, 1.0);
    let mut end = (mean + target * deviation).min(0.5 * (mean + 1.0));
    let mut before: Option<(f64, f64)> = None;
    for _ in 0..MOST_STEPS {
        let found = distance(end);
        if found.abs() <= NEARLY {
            break;
        }
        if found < 0.0 {
            low = end;
        } else {
            high = end;
        }
        let slope = match before {
            Some((place, value)) if place != end => (found - value) / (end - place),
            _ => 1.0 / deviation,
        };
        before = Some((end, found));
        let secant = end - found / slope;
        let next = if secant > low && secant < high {
            secant
        } else {
            0.5 * (low + high)
        };
        let step = (next - end).abs();
        end = next;
        if step <= CLOSE {
            break;
        }
    }
    first + end * (last - first)
}

/// The probability that the random mean exceeds `end`, which is between 0 and 1.
fn exceed(atoms: &Atoms, end: f64) -> f64 {
    let mut apart: Vec<f64> = atoms.numbers.iter().map(|number| number - end).collect();
    let sum: f64 = (apart.iter().zip(&atoms.counts))
        .map(|(a, count)| a * count)
        .sum();
    if sum <= 0.0 {
        return tail_above(&apart, &atoms.counts);
    }
    for a in &mut apart {
        *a = -*a;
    }
    1.0 - tail_above(&apart, &atoms.counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound(values: &[f64], confidence: f64) -> Interval {
        let sample = BoundedSample {
            values,
            counts: None,
            bounds: (0.0, 1.0),
        };
        bound_means(&[sample], confidence, None).unwrap()[0]
    }

    fn share(count: f64, total: f64) -> Interval {
        let (values, counts): (Vec<f64>, Vec<f64>) = [(1.0, count), (0.0, total - count)]
            .into_iter()
            .filter(|pair| pair.1 > 0.0)
            .unzip();
        let sample = BoundedSample {
            values: &values,
            counts: Some(&counts),
            bounds: (0.0, 1.0),
        };
        bound_means(&[sample], 0.95, None).unwrap()[0]
    }

    fn close(have: f64, want: f64) {
        assert!((have - want).abs() <= 1e-9, "{have} is not {want}");
    }

    #[test]
    fn equal_values_at_a_bound_give_the_root_of_the_tail() {
        for count in [1, 2, 5, 73, 10_000] {
            let interval = bound(&vec![1.0; count], 0.95);
            close(interval.low, 0.025_f64.powf(1.0 / count as f64));
            assert_eq!(interval.high, 1.0);
            let interval = bound(&vec![0.0; count], 0.95);
            close(interval.high, 1.0 - 0.025_f64.powf(1.0 / count as f64));
            assert_eq!(interval.low, 0.0);
        }
    }

    /// `scipy.stats.binomtest(count, total).proportion_ci(0.95, "exact")` of scipy 1.16.
    #[test]
    fn yes_and_no_have_the_exact_interval_of_scipy() {
        for (count, total, low, high) in GOLDEN {
            let interval = share(count, total);
            close(interval.low, low);
            close(interval.high, high);
        }
    }

    #[test]
    fn effective_counts_need_not_be_whole() {
        let (few, some, many) = (share(8.0, 10.0), share(8.4, 10.5), share(8.8, 11.0));
        assert!(few.low < some.low && some.low < many.low);
        assert!(few.high > some.high && some.high > many.high);
    }

    #[test]
    fn counts_are_repeated_values() {
        let sample = BoundedSample {
            values: &[0.3, 0.9, 0.5],
            counts: Some(&[2.0, 3.0, 1.0]),
            bounds: (0.0, 1.0),
        };
        let counted = bound_means(&[sample], 0.9, None).unwrap()[0];
        let repeated = bound(&[0.3, 0.9, 0.3, 0.9, 0.9, 0.5], 0.9);
        close(counted.low, repeated.low);
        close(counted.high, repeated.high);
    }

    /// With one value in the middle, the random mean is uniform between it and the bound.
    #[test]
    fn one_value_moves_uniformly_towards_the_bound() {
        let interval = bound(&[0.5], 0.9);
        close(interval.low, 0.025);
        close(interval.high, 0.975);
    }

    #[test]
    fn many_values_have_nearly_the_normal_interval() {
        let values: Vec<f64> = (0..20_000).map(|i| f64::from(i % 1000) / 1000.0).collect();
        let interval = bound(&values, 0.95);
        let error = 0.5 / 3.0_f64.sqrt() / 20_000.0_f64.sqrt();
        let mean = 0.4995;
        assert!((interval.low - (mean - 1.96 * error)).abs() < 1e-4);
        assert!((interval.high - (mean + 1.96 * error)).abs() < 1e-4);
    }

    #[test]
    fn bad_input_is_an_error() {
        let check = |values: &[f64], counts: Option<&[f64]>, bounds: (f64, f64)| {
            let sample = BoundedSample {
                values,
                counts,
                bounds,
            };
            bound_means(&[sample], 0.95, None).unwrap_err().to_string()
        };
        assert!(check(&[], None, (0.0, 1.0)).contains("sample 0 has no values"));
        assert!(check(&[f64::NAN], None, (0.0, 1.0)).contains("value 0 of sample 0"));
        assert!(check(&[0.5], None, (1.0, 1.0)).contains("must be below"));
        assert!(check(&[0.5], None, (0.0, f64::NAN)).contains("must be below"));
        assert!(check(&[0.5], None, (0.0, f64::INFINITY)).contains("too large"));
        assert!(check(&[0.5], Some(&[]), (0.0, 1.0)).contains("1 values and 0 counts"));
        assert!(check(&[0.5], Some(&[0.0]), (0.0, 1.0)).contains("the count 0"));
        assert!(check(&[f64::MAX; 3], None, (0.0, 1.0)).contains("too large"));
        assert!(bound_means(&[], 1.0, None).is_err());
    }

    /// The probability by drawing the weights, for at most five values.
    fn draw(values: &[f64], end: f64) -> f64 {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let draws = 40_000;
        let above = (0..draws)
            .filter(|_| {
                values
                    .iter()
                    .map(|value| (end - value) * uniform().ln())
                    .sum::<f64>()
                    > 0.0
            })
            .count();
        above as f64 / f64::from(draws)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_ends_are_quantiles_of_the_random_mean(mut values in prop::collection::vec(0.0..1.0, 1..6)) {
            let interval = bound(&values, 0.8);
            values.push(1.0);
            prop_assert!((draw(&values, interval.high) - 0.1).abs() < 0.01);
            *values.last_mut().unwrap() = 0.0;
            prop_assert!((draw(&values, interval.low) - 0.9).abs() < 0.01);
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_mean_and_stays_inside(
            values in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), Just(0.5), 0.0..=1.0, 0.999..=1.0], 1..40),
            confidence in 0.5..0.999,
        ) {
            let interval = bound(&values, confidence);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
            prop_assert!(interval.low <= mean + 1e-9 && mean <= interval.high + 1e-9);
            prop_assert!(interval.low < interval.high);
            let mirrored: Vec<f64> = values.iter().map(|value| 1.0 - value).collect();
            let other = bound(&mirrored, confidence);
            prop_assert!((1.0 - other.high - interval.low).abs() < 1e-9);
            let backwards: Vec<f64> = values.iter().rev().copied().collect();
            prop_assert_eq!(bound(&backwards, confidence), interval);
        }

        #[test]
        fn scale_and_threads_change_nothing(values in prop::collection::vec(0.0..=1.0, 2..20), scale in -300..300) {
            let unit = 2.0_f64.powi(scale);
            let scaled: Vec<f64> = values.iter().map(|value| value * unit).collect();
            let sample = BoundedSample { values: &scaled, counts: None, bounds: (0.0, unit) };
            let found = bound_means(&[sample; 3], 0.95, NonZeroUsize::new(2)).unwrap();
            let plain = bound(&values, 0.95);
            prop_assert_eq!(found[0], found[2]);
            prop_assert!((found[0].low / unit - plain.low).abs() < 1e-9);
            prop_assert!((found[0].high / unit - plain.high).abs() < 1e-9);
        }
    }
    const GOLDEN: [(f64, f64, f64, f64); 10] = [
        (5.0, 5.0, 0.47817624989501856, 1.0),
        (0.0, 5.0, 0.0, 0.5218237501049814),
        (3.0, 5.0, 0.14663279963467254, 0.9472550494736843),
        (9.0, 10.0, 0.5549838829718047, 0.9974714214555375),
        (29.0, 30.0, 0.827830544366587, 0.9991564290733507),
        (1.0, 30.0, 0.0008435709266493071, 0.17216945563341293),
        (98.0, 100.0, 0.9296160675289299, 0.9975686631760752),
        (57.0, 200.0, 0.22355439801032143, 0.35294269975153986),
        (1990.0, 2000.0, 0.9908241049299802, 0.9975997802442698),
        (4321.0, 10000.0, 0.42236192408210005, 0.4418776428108709),
    ];
}
