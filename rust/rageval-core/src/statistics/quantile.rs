//! Quantiles of a sorted sample.

/// The `probability` quantile of `sorted` (ascending, not empty), with linear interpolation.
///
/// Definition 7 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50
/// (1996): the value at position `probability * (n - 1)`. This is numpy's default. Like numpy, it interpolates from the
/// nearer neighbour, so the results are equal.
pub(crate) fn linear(sorted: &[f64], probability: f64) -> f64 {
    let last = sorted.len() - 1;
    let position = probability * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let (low, high, weight) = (sorted[below], sorted[above], position - below as f64);
    let step = high - low;
    if weight >= 0.5 {
        high - step * (1.0 - weight)
    } else {
        low + step * weight
    }
}

#[cfg(test)]
mod tests {
    use super::linear;

    #[test]
    fn interpolates_between_neighbours() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(linear(&sorted, 0.0), 1.0);
        assert_eq!(linear(&sorted, 0.5), 3.0);
        assert_eq!(linear(&sorted, 0.75), 5.0);
        assert_eq!(linear(&sorted, 1.0), 8.0);
    }

    #[test]
    fn one_value_is_every_quantile() {
        assert_eq!(linear(&[5.0], 0.3), 5.0);
    }
}
