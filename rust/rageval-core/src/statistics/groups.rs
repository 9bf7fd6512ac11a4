//! Size, mean and quantiles by group.

use super::{StatisticsError, check_finite, largest_magnitude, quantile};

/// The summary of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSummary {
    /// The group's code.
    pub code: i64,
    /// How many values it has, at least 1.
    pub size: usize,
    /// Their mean.
    pub mean: f64,
    /// Their quantiles, one per probability asked for.
    pub quantiles: Vec<f64>,
}

/// Size, mean and quantiles of `values` by group, for the groups that occur, in ascending order of code.
///
/// `codes[i]` is the group of `values[i]`. Quantiles are interpolated linearly (numpy's default, Hyndman
/// and Fan's definition 7). Values are added in ascending order within a group, so that the summary does
/// not depend on the order of the rows. No rows give no groups.
///
/// # Errors
/// Codes and values of different length, a value that is NaN or infinite, values too large to add up, a
/// probability outside `[0, 1]`.
///
/// ```
/// use rageval_core::statistics::summarize_groups;
///
/// let groups = summarize_groups(&[7, 3, 7], &[1.0, 5.0, 2.0], &[0.5])?;
/// assert_eq!((groups[0].code, groups[0].mean), (3, 5.0));
/// assert_eq!((groups[1].size, groups[1].quantiles[0]), (2, 1.5));
/// # Ok::<(), rageval_core::statistics::StatisticsError>(())
/// ```
pub fn summarize_groups(
    codes: &[i64],
    values: &[f64],
    probabilities: &[f64],
) -> Result<Vec<GroupSummary>, StatisticsError> {
    if codes.len() != values.len() {
        let (have, need) = (codes.len(), values.len());
        return Err(StatisticsError::LengthMismatch {
            what: "codes",
            have,
            need,
        });
    }
    check_finite(0, values)?;
    if !(largest_magnitude(values) * values.len() as f64).is_finite() {
        return Err(StatisticsError::Overflow { row: 0 });
    }
    if let Some(&have) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(StatisticsError::Parameter {
            name: "quantiles",
            need: "between 0 and 1",
            have,
        });
    }
    let mut rows: Vec<(i64, f64)> = codes.iter().copied().zip(values.iter().copied()).collect();
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Ok(rows
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| summarize(group, probabilities))
        .collect())
}

fn summarize(group: &[(i64, f64)], probabilities: &[f64]) -> GroupSummary {
    let sorted: Vec<f64> = group.iter().map(|(_, value)| *value).collect();
    GroupSummary {
        code: group[0].0,
        size: sorted.len(),
        mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        quantiles: probabilities
            .iter()
            .map(|&p| quantile::linear(&sorted, p))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hand_worked_example() {
        let groups = summarize_groups(
            &[2, -1, 2, 2, 2],
            &[8.0, 0.5, 1.0, 2.0, 4.0],
            &[0.0, 0.5, 0.75],
        )
        .unwrap();
        assert_eq!(groups.len(), 2);
        assert_eq!(
            groups[0],
            GroupSummary {
                code: -1,
                size: 1,
                mean: 0.5,
                quantiles: vec![0.5; 3]
            }
        );
        assert_eq!(
            groups[1],
            GroupSummary {
                code: 2,
                size: 4,
                mean: 3.75,
                quantiles: vec![1.0, 3.0, 5.0]
            }
        );
    }

    #[test]
    fn no_rows_give_no_groups() {
        assert!(summarize_groups(&[], &[], &[0.5]).unwrap().is_empty());
    }

    #[test]
    fn bad_input_is_named() {
        let message = |codes: &[i64], values: &[f64], probabilities: &[f64]| {
            summarize_groups(codes, values, probabilities)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message(&[1], &[1.0, 2.0], &[]),
            "codes has 1 values; 2 are needed"
        );
        assert!(
            message(&[1, 2], &[1.0, f64::INFINITY], &[]).starts_with("value 1 of sample 0 is inf")
        );
        assert!(message(&[1, 2], &[f64::MAX, f64::MAX], &[]).contains("too large"));
        assert!(
            message(&[1], &[1.0], &[0.5, 1.5]).starts_with("quantiles must be between 0 and 1")
        );
    }

    proptest! {
        #[test]
        fn the_order_of_rows_does_not_matter(rows in prop::collection::vec((-3..3_i64, -1e3..1e3), 0..50)) {
            let summary = |rows: &[(i64, f64)]| {
                let (codes, values): (Vec<i64>, Vec<f64>) = rows.iter().copied().unzip();
                summarize_groups(&codes, &values, &[0.1, 0.9]).unwrap()
            };
            let reversed: Vec<(i64, f64)> = rows.iter().copied().rev().collect();
            prop_assert_eq!(summary(&rows), summary(&reversed));
        }

        #[test]
        fn groups_partition_the_rows(rows in prop::collection::vec((-3..3_i64, -1e3..1e3), 0..50)) {
            let (codes, values): (Vec<i64>, Vec<f64>) = rows.iter().copied().unzip();
            for group in summarize_groups(&codes, &values, &[0.0, 1.0]).unwrap() {
                let members: Vec<f64> = rows.iter().filter(|row| row.0 == group.code).map(|row| row.1).collect();
                prop_assert_eq!(group.size, members.len());
                prop_assert_eq!(group.quantiles[0], members.iter().copied().fold(f64::INFINITY, f64::min));
                let mean = members.iter().sum::<f64>() / members.len() as f64;
                prop_assert!((group.mean - mean).abs() < 1e-9);
            }
        }
    }
}
