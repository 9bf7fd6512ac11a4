//! Student's paired t-test.

use super::distributions::{student_two_sided, student_two_sided_quantile};
use super::{
    Interval, check_confidence, check_finite, largest_magnitude, overflow, too_few_values,
};
use crate::error::Result;

/// Differences whose spread is at most this share of the largest count as equal.
const EQUAL_WITHIN: f64 = 1e-12;

/// The outcome of a paired t-test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// Mean of the differences.
    pub mean_difference: f64,
    /// Confidence interval of the mean difference.
    pub interval: Interval,
    /// `mean / (sd / sqrt(n))`; `None` if all differences are equal and not 0.
    pub statistic: Option<f64>,
    /// Degrees of freedom, `n - 1`.
    pub degrees_of_freedom: usize,
    /// Two-sided p-value; `None` if all differences are equal and not 0.
    pub p_value: Option<f64>,
    /// Cohen's d_z, `mean / sd`; `None` if all differences are equal and not 0.
    pub effect_size: Option<f64>,
}

/// Student's paired t-test on `differences`, `value_a - value_b` per query.
///
/// With mean `m` and standard deviation `s` (divisor `n - 1`): `t = m / (s / sqrt(n))` on `n - 1` degrees
/// of freedom, p two-sided, interval `m +- t(confidence) * s / sqrt(n)`, effect size `d_z = m / s`.
///
/// Without variance: if all differences are 0, the systems are the same, so `t = 0`, `p = 1` and `d_z = 0`. If all
/// differences are equal but not 0 (within `1e-12` of their size, which is rounding), `t`, `p` and `d_z` are undefined
/// and `None`. In both cases the interval has width 0.
///
/// # Errors
/// Fewer than two differences, a difference that is NaN or infinite, differences too large to square, a confidence
/// outside `(0, 1)`.
///
/// Sources: Student, "The probable error of a mean", Biometrika 6 (1908); J. Cohen, "Statistical power
/// analysis for the behavioral sciences" (1988) for d_z. Same numbers as `scipy.stats.ttest_rel`.
pub fn t_test_paired(differences: &[f64], confidence: f64) -> Result<TTest> {
    check_confidence(confidence)?;
    if differences.len() < 2 {
        return Err(too_few_values(0, differences.len(), 2));
    }
    check_finite(0, differences)?;
    let count = differences.len() as f64;
    let largest = largest_magnitude(differences);
    if !(largest * largest * 4.0 * count).is_finite() {
        return Err(overflow(0));
    }
    if spread(differences) <= EQUAL_WITHIN * largest {
        return Ok(without_variance(differences));
    }
    let mean = differences.iter().sum::<f64>() / count;
    let deviation = standard_deviation(differences, mean);
    let standard_error = deviation / count.sqrt();
    let statistic = mean / standard_error;
    let df = count - 1.0;
    let half_width = student_two_sided_quantile(1.0 - confidence, df) * standard_error;
    Ok(TTest {
        mean_difference: mean,
        interval: Interval {
            low: mean - half_width,
            high: mean + half_width,
        },
        statistic: Some(statistic),
        degrees_of_freedom: differences.len() - 1,
        p_value: Some(student_two_sided(statistic, df)),
        effect_size: Some(mean / deviation),
    })
}

fn without_variance(differences: &[f64]) -> TTest {
    let value = differences[0];
    let is_zero = value == 0.0;
    TTest {
        mean_difference: value,
        interval: Interval {
            low: value,
            high: value,
        },
        statistic: is_zero.then_some(0.0),
        degrees_of_freedom: differences.len() - 1,
        p_value: is_zero.then_some(1.0),
        effect_size: is_zero.then_some(0.0),
    }
}

fn spread(values: &[f64]) -> f64 {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest - lowest
}

/// Scaled by the largest deviation, so that the squares of tiny ones do not become 0.
fn standard_deviation(values: &[f64], mean: f64) -> f64 {
    let scale = values
        .iter()
        .fold(0.0_f64, |largest, value| largest.max((value - mean).abs()));
    let squares: f64 = values
        .iter()
        .map(|value| ((value - mean) / scale).powi(2))
        .sum();
    scale * (squares / (values.len() as f64 - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(have: f64, want: f64) {
        assert!(
            (have - want).abs() <= 1e-12 * want.abs(),
            "{have} is not {want}"
        );
    }

    /// Differences 1, 2, 3: mean 2, sd 1, t = 2 * sqrt(3) on 2 df, p = 1 - t / sqrt(2 + t^2).
    #[test]
    fn hand_worked_example() {
        let outcome = t_test_paired(&[1.0, 2.0, 3.0], 0.95).unwrap();
        let t = 2.0 * 3.0_f64.sqrt();
        assert_eq!(
            (outcome.mean_difference, outcome.degrees_of_freedom),
            (2.0, 2)
        );
        close(outcome.statistic.unwrap(), t);
        close(outcome.p_value.unwrap(), 1.0 - t / (2.0 + t * t).sqrt());
        close(outcome.effect_size.unwrap(), 2.0);
        let critical = 0.95 * (2.0 / (1.0 - 0.95_f64.powi(2))).sqrt();
        close(outcome.interval.high, 2.0 + critical / 3.0_f64.sqrt());
    }

    #[test]
    fn systems_that_never_differ_are_the_same() {
        let outcome = t_test_paired(&[0.0; 5], 0.95).unwrap();
        assert_eq!(
            (outcome.statistic, outcome.p_value, outcome.effect_size),
            (Some(0.0), Some(1.0), Some(0.0))
        );
        assert_eq!(
            outcome.interval,
            Interval {
                low: 0.0,
                high: 0.0
            }
        );
    }

    #[test]
    fn a_constant_difference_has_no_statistic() {
        let rounded = [0.3 - 0.2, 0.1, 0.9 - 0.8];
        let outcome = t_test_paired(&rounded, 0.95).unwrap();
        assert_eq!(
            (outcome.statistic, outcome.p_value, outcome.effect_size),
            (None, None, None)
        );
        assert_eq!(outcome.interval.low, outcome.interval.high);
    }

    #[test]
    fn tiny_differences_keep_their_statistic() {
        let tiny = t_test_paired(&[1e-200, 2e-200, 3e-200], 0.95).unwrap();
        close(tiny.statistic.unwrap(), 2.0 * 3.0_f64.sqrt());
    }

    #[test]
    fn bad_input_is_named() {
        let message = |differences: &[f64], confidence| {
            t_test_paired(differences, confidence)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message(&[1.0], 0.95),
            "sample 0 has 1 values; at least 2 are needed"
        );
        assert!(message(&[1.0, f64::NAN], 0.95).starts_with("value 1 of sample 0 is NaN"));
        assert!(message(&[1e300, 1.0], 0.95).contains("too large"));
        assert!(message(&[1.0, 2.0], 0.0).starts_with("confidence"));
    }

    proptest! {
        #[test]
        fn the_interval_excludes_zero_exactly_when_p_is_small(differences in prop::collection::vec(-1.0..1.2, 2..30)) {
            let outcome = t_test_paired(&differences, 0.9).unwrap();
            let p_value = outcome.p_value.unwrap();
            prop_assume!((p_value - 0.1).abs() > 1e-9);
            let excludes_zero = outcome.interval.low > 0.0 || outcome.interval.high < 0.0;
            prop_assert_eq!(excludes_zero, p_value < 0.1);
        }
    }
}
