//! Resampling and significance: bootstrap, permutation and t tests, Holm correction, grouped summaries.
//!
//! Every kernel takes finite values and says which one is not; all randomness comes from a seed and
//! is independent of the number of threads.

mod bootstrap;
mod distributions;
mod groups;
mod holm;
mod permutation;
mod quantile;
mod random;
mod student;

use std::fmt;

pub use bootstrap::{Bootstrap, IntervalMethod, bootstrap_means};
pub use groups::{GroupSummary, summarize_groups};
pub use holm::holm;
pub use permutation::{PermutationTest, permutation_test_paired};
pub use student::{TTest, t_test_paired};

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

/// What a statistics kernel refuses, naming the place.
#[derive(Debug, Clone, PartialEq)]
pub enum StatisticsError {
    /// A sample (row `row` of the input) has fewer values than the statistic needs.
    TooFewValues {
        /// Which sample, from 0.
        row: usize,
        /// How many values it has.
        have: usize,
        /// How many the statistic needs.
        need: usize,
    },
    /// A value is NaN or infinite.
    NotFinite {
        /// Which sample, from 0.
        row: usize,
        /// Which value of it, from 0.
        position: usize,
        /// The value.
        value: f64,
    },
    /// Values so large that their sum, or the sum of their squares, is not a finite number.
    Overflow {
        /// Which sample, from 0.
        row: usize,
    },
    /// More values in a sample than a resampling can index.
    TooManyValues {
        /// Which sample, from 0.
        row: usize,
    },
    /// Two inputs that belong together differ in length.
    LengthMismatch {
        /// What is too long or too short.
        what: &'static str,
        /// Its length.
        have: usize,
        /// The length it should have.
        need: usize,
    },
    /// A parameter is out of its range.
    Parameter {
        /// Its name.
        name: &'static str,
        /// What it must be.
        need: &'static str,
        /// What it is.
        have: f64,
    },
    /// A p-value is not in `[0, 1]`.
    NotAProbability {
        /// Which p-value, from 0.
        position: usize,
        /// The value.
        value: f64,
    },
}

impl fmt::Display for StatisticsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewValues { row, have, need } => {
                write!(
                    f,
                    "sample {row} has {have} values; at least {need} are needed"
                )
            }
            Self::NotFinite {
                row,
                position,
                value,
            } => write!(
                f,
                "value {position} of sample {row} is {value}; remove queries without a value first"
            ),
            Self::Overflow { row } => {
                write!(
                    f,
                    "the values of sample {row} are too large to add up in float64"
                )
            }
            Self::TooManyValues { row } => {
                write!(f, "sample {row} has more than {} values", u32::MAX)
            }
            Self::LengthMismatch { what, have, need } => {
                write!(f, "{what} has {have} values; {need} are needed")
            }
            Self::Parameter { name, need, have } => write!(f, "{name} must be {need}, not {have}"),
            Self::NotAProbability { position, value } => {
                write!(
                    f,
                    "p-value {position} is {value}; a p-value lies between 0 and 1"
                )
            }
        }
    }
}

impl std::error::Error for StatisticsError {}

fn check_finite(row: usize, values: &[f64]) -> Result<(), StatisticsError> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(position) => {
            let value = values[position];
            Err(StatisticsError::NotFinite {
                row,
                position,
                value,
            })
        }
    }
}

fn check_confidence(confidence: f64) -> Result<(), StatisticsError> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    Err(StatisticsError::Parameter {
        name: "confidence",
        need: "between 0 and 1, both excluded",
        have: confidence,
    })
}

fn check_count(name: &'static str, count: usize) -> Result<(), StatisticsError> {
    if (1..=MOST_RESAMPLES).contains(&count) {
        return Ok(());
    }
    Err(StatisticsError::Parameter {
        name,
        need: "between 1 and 100 million",
        have: count as f64,
    })
}

fn largest_magnitude(values: &[f64]) -> f64 {
    values
        .iter()
        .fold(0.0, |largest, value| largest.max(value.abs()))
}
