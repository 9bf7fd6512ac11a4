//! trec_eval's experimental gain measures, for the drop-in: `ndcg_rel`, `Rndcg`, `G`, `binG`.
//!
//! Gains are relevance values. Source: the descriptions that `trec_eval -h -m all_trec` prints.

use super::{Cutoff, Hit, Measure, Query, Statistic, Word, discount, share};

struct GainMeasure {
    value: fn(&Query<'_>) -> f64,
}

impl Measure for GainMeasure {
    fn value(&self, query: &Query<'_>) -> f64 {
        (self.value)(query)
    }
}

macro_rules! gain_measure {
    ($word:ident, $name:literal, $value:expr) => {
        pub(super) static $word: Word = Word {
            name: $name,
            aliases: &[],
            cutoff: Cutoff::Never,
            parameters: &[],
            level: false,
            statistic: Statistic::Mean,
            listed: false,
            build: |_| Ok(Box::new(GainMeasure { value: $value })),
        };
    };
}

gain_measure!(NDCG_REL, "ndcg_rel", ndcg_rel);
gain_measure!(RNDCG, "rndcg", rndcg);
gain_measure!(G, "g", gain);
gain_measure!(BIN_G, "bing", binary_gain);

fn graded(hits: &[Hit]) -> impl Iterator<Item = (usize, f64)> + '_ {
    hits.iter()
        .filter(|hit| hit.relevance > 0)
        .map(|hit| (hit.rank as usize, f64::from(hit.relevance)))
}

/// The ideal ranking's DCG, computed rank by rank.
struct IdealDcg<'a> {
    gains: &'a [i32],
    ranks: usize,
    sum: f64,
}

impl<'a> IdealDcg<'a> {
    fn new(gains: &'a [i32]) -> Self {
        Self {
            gains,
            ranks: 0,
            sum: 0.0,
        }
    }

    fn up_to(&mut self, ranks: usize) -> f64 {
        while self.ranks < ranks.min(self.gains.len()) {
            self.sum += f64::from(self.gains[self.ranks]) / discount(self.ranks);
            self.ranks += 1;
        }
        self.sum
    }
}

/// nDCG averaged over the ranks of relevant documents; those that were not retrieved get the nDCG at the end.
fn ndcg_rel(query: &Query<'_>) -> f64 {
    let mut ideal = IdealDcg::new(query.gains);
    let (mut sum, mut dcg, mut found) = (0.0, 0.0, 0usize);
    for (rank, gain) in graded(query.hits) {
        dcg += gain / discount(rank);
        sum += dcg / ideal.up_to(rank + 1);
        found += 1;
    }
    sum += share(
        query.gains.len().saturating_sub(found) as f64 * dcg,
        ideal.up_to(usize::MAX),
    );
    share(sum, query.gains.len() as f64)
}

/// nDCG averaged over the ranks at which the ideal ranking's gain changes.
fn rndcg(query: &Query<'_>) -> f64 {
    if query.relevant() == 0 {
        return 0.0;
    }
    let mut ideal = IdealDcg::new(query.gains);
    let mut hits = graded(query.hits).peekable();
    let (mut sum, mut points, mut dcg) = (0.0, 0u32, 0.0);
    let changes = (1..=query.gains.len()).filter(|&i| query.gains.get(i) != query.gains.get(i - 1));
    for change in changes {
        while let Some((rank, gain)) = hits.next_if(|(rank, _)| *rank < change) {
            dcg += gain / discount(rank);
        }
        sum += dcg / ideal.up_to(change);
        points += 1;
    }
    if query.retrieved > query.gains.len() + 1 {
        for (rank, gain) in hits {
            dcg += gain / discount(rank);
        }
        sum += dcg / ideal.up_to(usize::MAX);
        points += 1;
    }
    sum / f64::from(points)
}

/// Gain discounted by how much more an ideal ranking would have gained by then.
fn gain(query: &Query<'_>) -> f64 {
    let total: f64 = query.gains.iter().map(|gain| f64::from(*gain)).sum();
    let (mut sum, mut gathered) = (0.0, 0.0);
    let (mut cost, mut ranks) = (0.0, 0usize);
    for (rank, gain) in graded(query.hits) {
        while ranks <= rank {
            cost += query.gains.get(ranks).map_or(1.0, |gain| f64::from(*gain));
            ranks += 1;
        }
        gathered += gain;
        sum += gain / (2.0 + cost - gathered).log2();
    }
    share(sum, total)
}

/// The same, with every gain 0 or 1.
fn binary_gain(query: &Query<'_>) -> f64 {
    let ranks = query.relevant_ranks().enumerate();
    let sum = ranks.fold(0.0, |sum, (found, rank)| {
        sum + 1.0 / ((2 + rank - found) as f64).log2()
    });
    share(sum, query.relevant() as f64)
}
