//! `target_rank`: the rank, from 1, of the one relevant document; with a cutoff, up to it.
//!
//! 0 means "no rank": the document was not retrieved (within the cutoff), or the query has no relevant document or more
//! than one, so there is no single target. A lower rank is better, and no rank is worst of all. Over all orders of
//! ties, the low end is the best rank and the high end the worst, or 0 if some order pushes the document out.
//! Known-item search; source: Kantor and Voorhees, Information Retrieval 2 (2000).

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static TARGET_RANK: Word = Word {
    name: "target_rank",
    aliases: &[],
    cutoff: Cutoff::Optional,
    parameters: &[],
    level: true,
    statistic: Statistic::MeanRank,
    listed: true,
    build: |parameters| {
        Ok(Box::new(TargetRank {
            depth: parameters.depth(),
        }))
    },
};

struct TargetRank {
    depth: usize,
}

impl Measure for TargetRank {
    fn value(&self, query: &Query<'_>) -> f64 {
        if query.relevant() != 1 {
            return 0.0;
        }
        let target = query
            .relevant_ranks()
            .next()
            .filter(|rank| *rank < self.depth);
        target.map_or(0.0, |rank| (rank + 1) as f64)
    }

    fn range(&self, values: [f64; 3]) -> (f64, f64) {
        let ranks = values.map(|rank| if rank == 0.0 { f64::INFINITY } else { rank });
        let (best, worst) = super::range(ranks);
        let rank = |end: f64| if end.is_finite() { end } else { 0.0 };
        (rank(best), rank(worst))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compiled, Hit, Query, Statistic};

    fn value(text: &str, hits: &[(u32, i32)], gains: &[i32]) -> f64 {
        let hits: Vec<Hit> = hits
            .iter()
            .map(|&(rank, relevance)| Hit { rank, relevance })
            .collect();
        let query = Query {
            hits: &hits,
            retrieved: 10,
            gains,
            zeros: 1,
            level: 1,
        };
        Compiled::parse(text)
            .unwrap()
            .value(&query, &mut Vec::new())
    }

    #[test]
    fn the_rank_of_the_one_relevant_document() {
        assert_eq!(value("target_rank", &[(0, 0), (4, 1)], &[1]), 5.0);
        assert_eq!(value("target_rank@5", &[(4, 1)], &[1]), 5.0);
        assert_eq!(value("target_rank@4", &[(4, 1)], &[1]), 0.0);
        assert_eq!(value("target_rank", &[], &[1]), 0.0);
    }

    #[test]
    fn a_query_without_one_target_has_no_rank() {
        assert_eq!(value("target_rank", &[(2, 0)], &[]), 0.0);
        assert_eq!(value("target_rank", &[(2, 1)], &[2, 1]), 0.0);
        assert_eq!(value("target_rank(rel=2)", &[(2, 1), (6, 2)], &[2, 1]), 7.0);
    }

    #[test]
    fn no_rank_is_worse_than_any() {
        let measure = Compiled::parse("target_rank@9").unwrap();
        assert_eq!(measure.range([9.0, 3.0, 5.0]), (3.0, 9.0));
        assert_eq!(measure.range([0.0, 3.0, 5.0]), (3.0, 0.0));
        assert_eq!(measure.range([0.0, 3.0, 0.0]), (3.0, 0.0));
        assert_eq!(measure.range([0.0, 0.0, 0.0]), (0.0, 0.0));
    }

    #[test]
    fn the_mean_is_over_ranks_alone() {
        assert_eq!(Statistic::MeanRank.aggregate([2.0, 0.0, 5.0]), 3.5);
        assert_eq!(Statistic::MeanRank.aggregate([0.0, 0.0]), 0.0);
    }
}
