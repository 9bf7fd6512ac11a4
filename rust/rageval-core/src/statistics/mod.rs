//! Resampling and significance: bootstrap, permutation and t-tests, Holm's correction.
//!
//! Every kernel requires finite values and names the first one that is not. All randomness comes from a seed and does
//! not depend on the number of threads.

mod bootstrap;
mod bounded_mean;
mod distributions;
mod gamma_sums;
mod holm;
mod permutation;
mod permutation_unpaired;
mod quantile;
mod random;
mod student;

pub use bootstrap::{Bootstrap, IntervalMethod, bootstrap_means};
pub use bounded_mean::{BoundedSample, bound_means};
pub use distributions::{student_two_sided, student_two_sided_quantile};
pub use holm::holm;
pub use permutation::{PermutationTest, permutation_test_paired};
pub use permutation_unpaired::permutation_test_unpaired;
pub use student::{TTest, t_test_paired};

use crate::error::{Error, Result};

/// More resamples or permutations than this are a mistake, not a wish for precision.
const MOST_RESAMPLES: usize = 100_000_000;

/// The ends of a confidence interval, `low <= high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

fn too_few_values(row: usize, have: usize, need: usize) -> Error {
    Error::Value(format!(
        "sample {row} has {have} values; at least {need} are needed"
    ))
}

fn overflow(row: usize) -> Error {
    Error::Value(format!(
        "the values of sample {row} are too large to add up in float64"
    ))
}

fn check_finite(row: usize, values: &[f64]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(position) => {
            let value = values[position];
            Err(Error::Value(format!(
                "value {position} of sample {row} is {value}; remove queries without a value first"
            )))
        }
    }
}

fn check_confidence(confidence: f64) -> Result<()> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    Err(Error::Value(format!(
        "confidence must be between 0 and 1 (exclusive), not {confidence}"
    )))
}

fn check_count(name: &str, count: usize) -> Result<()> {
    if (1..=MOST_RESAMPLES).contains(&count) {
        return Ok(());
    }
    Err(Error::Value(format!(
        "{name} must be between 1 and 100 million, not {count}"
    )))
}

fn largest_magnitude(values: &[f64]) -> f64 {
    values
        .iter()
        .fold(0.0, |largest, value| largest.max(value.abs()))
}
