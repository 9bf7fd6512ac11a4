//! Correction for multiple comparisons.

use crate::error::{Error, Result};

/// Holm's step-down adjusted p-values, in the order given.
///
/// With `p(1) <= ... <= p(m)`, the adjusted value of `p(i)` is `max over j <= i of min(1, (m - j + 1) * p(j))`. The
/// correction controls the family-wise error rate without assuming independence, and is never less powerful than
/// Bonferroni's `m * p`.
///
/// An empty slice gives an empty result.
///
/// # Errors
/// [`Error::Value`] for NaN and for values outside `[0, 1]`.
///
/// Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
/// of Statistics 6 (1979).
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>> {
    if let Some(position) = p_values.iter().position(|p| !(0.0..=1.0).contains(p)) {
        let value = p_values[position];
        return Err(Error::Value(format!(
            "p-value {position} is {value}; a p-value lies between 0 and 1"
        )));
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &position) in order.iter().enumerate() {
        let still_open = (p_values.len() - rank) as f64;
        largest = largest.max((still_open * p_values[position]).min(1.0));
        adjusted[position] = largest;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 4 * 0.005, 3 * 0.01, 2 * 0.03, then 1 * 0.04 raised to its predecessor.
    #[test]
    fn hand_worked_example() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]).unwrap();
        for (have, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((have - want).abs() < 1e-15);
        }
    }

    #[test]
    fn values_stop_at_one() {
        assert_eq!(holm(&[0.6, 0.9]).unwrap(), [1.0, 1.0]);
    }

    #[test]
    fn nothing_gives_nothing_and_one_is_left_alone() {
        assert!(holm(&[]).unwrap().is_empty());
        assert_eq!(holm(&[0.2]).unwrap(), [0.2]);
    }

    #[test]
    fn values_that_are_not_probabilities_are_named() {
        for bad in [f64::NAN, -0.1, 1.1] {
            let error = holm(&[0.5, bad]).unwrap_err();
            assert!(error.to_string().starts_with("p-value 1 is"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn adjusting_keeps_the_order_and_never_lowers(p_values in prop::collection::vec(0.0..=1.0, 0..30)) {
            let adjusted = holm(&p_values).unwrap();
            for (i, p) in p_values.iter().enumerate() {
                prop_assert!(*p <= adjusted[i] && adjusted[i] <= 1.0);
                for (j, q) in p_values.iter().enumerate() {
                    prop_assert!(p > q || adjusted[i] <= adjusted[j]);
                }
            }
        }
    }
}
