//! The order in which the library ranx puts documents with equal scores.
//!
//! ranx sorts with numba's `argsort`: a quicksort with a median of three and Hoare's partition, and insertion sort for
//! up to 15 elements. It is not stable, so ties follow neither ids nor input order. It is deterministic, however, and
//! the same steps give the same order. Observed with ranx 0.3.21 and numba 0.68.

/// A range with at least this many elements is partitioned.
const PARTITIONED: usize = 16;

/// Rows by descending score, in the order in which ranx puts them.
#[must_use]
pub fn order(scores: &[f64]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..scores.len() as u32).collect();
    let mut ranges = vec![(0, rows.len())];
    while let Some((start, end)) = ranges.pop() {
        let part = &mut rows[start..end];
        if part.len() < PARTITIONED {
            insert_each(scores, part);
        } else {
            let pivot = partition(scores, part);
            ranges.push((start, start + pivot));
            ranges.push((start + pivot + 1, end));
        }
    }
    rows
}

/// The place of each row in [`order`].
#[must_use]
pub fn positions(scores: &[f64]) -> Vec<u32> {
    let mut positions = vec![0; scores.len()];
    for (place, row) in (0u32..).zip(order(scores)) {
        positions[row as usize] = place;
    }
    positions
}

fn before(scores: &[f64], a: u32, b: u32) -> bool {
    scores[a as usize] > scores[b as usize]
}

fn insert_each(scores: &[f64], rows: &mut [u32]) {
    for end in 1..rows.len() {
        let mut at = end;
        while at > 0 && before(scores, rows[at], rows[at - 1]) {
            rows.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Partitions around the median of the first, middle and last element; returns the pivot's place.
fn partition(scores: &[f64], rows: &mut [u32]) -> usize {
    let last = rows.len() - 1;
    let middle = last / 2;
    for (a, b) in [(0, middle), (middle, last), (0, middle)] {
        if before(scores, rows[b], rows[a]) {
            rows.swap(a, b);
        }
    }
    rows.swap(last, middle);
    let pivot = rows[last];
    // `right` is one past the element that it looks at, so it can move below the first one.
    let (mut left, mut right) = (0, last);
    loop {
        while left < last && before(scores, rows[left], pivot) {
            left += 1;
        }
        while right > 0 && before(scores, pivot, rows[right - 1]) {
            right -= 1;
        }
        if left + 1 >= right {
            break;
        }
        rows.swap(left, right - 1);
        left += 1;
        right -= 1;
    }
    rows.swap(left, last);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rankings_keep_the_input_order_of_ties() {
        assert_eq!(order(&[1.0, 2.0, 1.0, 2.0, 3.0]), [4, 1, 3, 0, 2]);
        assert_eq!(positions(&[1.0, 2.0, 1.0, 2.0, 3.0]), [3, 1, 4, 2, 0]);
        assert_eq!(order(&[]), [0u32; 0]);
    }

    #[test]
    fn long_rankings_are_sorted_permutations() {
        let scores: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 101)).collect();
        let rows = order(&scores);
        assert!(
            rows.windows(2)
                .all(|pair| scores[pair[0] as usize] >= scores[pair[1] as usize])
        );
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
    }
}
