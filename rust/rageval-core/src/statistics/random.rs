//! The random stream behind every resampling: xoshiro256++ in eight parallel lanes.
//!
//! A stream is identified by `(seed, stream)`. Kernels give each block of resamples its own stream, so their results do
//! not depend on the number of threads.
//!
//! Sources: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47
//! (2021), for xoshiro256++ and its seeding by SplitMix64; D. Lemire, "Fast random integer generation
//! in an interval", ACM TOMACS 29 (2019), for bounded integers without bias.

const LANES: usize = 8;
/// Indices drawn from one step of the lanes.
const DRAWS: usize = 2 * LANES;
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function: a bijection of 64-bit words that scatters neighbours.
fn scatter(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Eight independent xoshiro256++ generators stepped together, so that the compiler can vectorise.
#[derive(Clone)]
pub(crate) struct Generator {
    state: [[u64; LANES]; 4],
}

impl Generator {
    /// The generator of stream number `stream` for `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let family = scatter(seed.wrapping_add(GOLDEN_GAMMA));
        let mut counter = scatter(family.wrapping_add(stream));
        let mut state = [[0; LANES]; 4];
        for lane in 0..LANES {
            for word in &mut state {
                counter = counter.wrapping_add(GOLDEN_GAMMA);
                word[lane] = scatter(counter);
            }
        }
        Self { state }
    }

    /// The next word of each lane.
    #[inline(always)]
    fn words(&mut self) -> [u64; LANES] {
        let [s0, s1, s2, s3] = &mut self.state;
        let mut words = [0; LANES];
        for lane in 0..LANES {
            words[lane] = s0[lane]
                .wrapping_add(s3[lane])
                .rotate_left(23)
                .wrapping_add(s0[lane]);
            let shifted = s1[lane] << 17;
            s2[lane] ^= s0[lane];
            s3[lane] ^= s1[lane];
            s1[lane] ^= s2[lane];
            s0[lane] ^= s3[lane];
            s2[lane] ^= shifted;
            s3[lane] = s3[lane].rotate_left(45);
        }
        words
    }

    /// Fills `bytes` with random bits.
    pub(crate) fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8 * LANES) {
            for (bytes, word) in chunk.chunks_mut(8).zip(self.words()) {
                bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            }
        }
    }

    /// Fills `indices` with independent draws, uniform on `0..bound` without bias.
    ///
    /// `bound` must not be 0; otherwise every index would be 0.
    #[inline(always)]
    pub(crate) fn fill_indices(&mut self, bound: u32, indices: &mut [u32]) {
        let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        let before = self.clone();
        if self.fill_unchecked(bound, indices) < threshold {
            *self = before;
            self.fill_rejecting(bound, threshold, indices);
        }
    }

    /// Draws without rejection; returns the smallest low half of a product, which shows whether a draw should have been
    /// rejected.
    #[inline(always)]
    fn fill_unchecked(&mut self, bound: u32, indices: &mut [u32]) -> u32 {
        let mut smallest = [u32::MAX; DRAWS];
        let (chunks, rest) = indices.as_chunks_mut();
        for chunk in chunks {
            *chunk = self.draw(bound, &mut smallest);
        }
        if !rest.is_empty() {
            let drawn = self.draw(bound, &mut smallest);
            rest.copy_from_slice(&drawn[..rest.len()]);
        }
        smallest.into_iter().min().unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn draw(&mut self, bound: u32, smallest: &mut [u32; DRAWS]) -> [u32; DRAWS] {
        let mut drawn = halves(self.words());
        for (index, low) in drawn.iter_mut().zip(smallest) {
            let product = u64::from(*index) * u64::from(bound);
            *low = (*low).min(product as u32);
            *index = (product >> 32) as u32;
        }
        drawn
    }

    #[cold]
    fn fill_rejecting(&mut self, bound: u32, threshold: u32, indices: &mut [u32]) {
        let mut filled = 0;
        while filled < indices.len() {
            for half in halves(self.words()) {
                let product = u64::from(half) * u64::from(bound);
                if product as u32 >= threshold && filled < indices.len() {
                    indices[filled] = (product >> 32) as u32;
                    filled += 1;
                }
            }
        }
    }
}

#[inline(always)]
fn halves(words: [u64; LANES]) -> [u32; DRAWS] {
    let mut halves = [0; DRAWS];
    for (lane, word) in words.into_iter().enumerate() {
        halves[2 * lane] = word as u32;
        halves[2 * lane + 1] = (word >> 32) as u32;
    }
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The authors' C code, started from the state 1, 2, 3, 4.
    #[test]
    fn words_are_those_of_xoshiro256_plus_plus() {
        let mut generator = Generator {
            state: [[1; LANES], [2; LANES], [3; LANES], [4; LANES]],
        };
        let lane: Vec<u64> = (0..4).map(|_| generator.words()[3]).collect();
        assert_eq!(
            lane,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn streams_and_lanes_differ() {
        let mut firsts: Vec<u64> = (0..50)
            .flat_map(|n| Generator::new(n / 10, n % 10).words())
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 50 * LANES);
    }

    #[test]
    fn rejecting_and_unchecked_draws_agree_where_nothing_is_rejected() {
        let (mut fast, mut slow) = ([0; 37], [0; 37]);
        Generator::new(1, 2).fill_unchecked(1000, &mut fast);
        Generator::new(1, 2).fill_rejecting(1000, 0, &mut slow);
        assert_eq!(fast, slow);
    }

    #[test]
    fn a_bound_that_rejects_half_the_draws_stays_uniform() {
        let bound = (1 << 31) + 1;
        let mut indices = vec![0; 40_000];
        Generator::new(7, 0).fill_indices(bound, &mut indices);
        assert!(indices.iter().all(|&index| index < bound));
        let odd = indices.iter().filter(|&&index| index % 2 == 1).count() as f64;
        let high = indices.iter().filter(|&&index| index >= bound / 2).count() as f64;
        assert!((odd / 40_000.0 - 0.5).abs() < 0.01);
        assert!((high / 40_000.0 - 0.5).abs() < 0.01);
    }

    #[test]
    fn every_index_is_drawn_equally_often() {
        let mut indices = vec![0; 70_000];
        Generator::new(3, 1).fill_indices(7, &mut indices);
        for index in 0..7 {
            let count = indices.iter().filter(|&&drawn| drawn == index).count();
            assert!((count as f64 - 10_000.0).abs() < 400.0, "{index}: {count}");
        }
    }
}
