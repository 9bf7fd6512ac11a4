//! Ranks of judged documents, found by counting instead of sorting.
//!
//! The rank of a document is the number of documents above it. A query has few judged documents, so counting the scores
//! above theirs is cheaper than sorting the whole ranking, and identifiers are compared only at ties.

use std::cmp::Ordering;

use crate::measures::Hit;

/// How documents with equal scores are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// Scores as float32, ties by doc_id descending, bytewise: trec_eval.
    #[default]
    TrecEval,
    /// Scores as float64, ties by doc_id descending.
    Float64,
    /// Scores as float64, ties in the order of the run.
    Input,
    /// Scores as float64, ties as the library ranx orders them.
    Ranx,
    /// Scores as float32, tied documents in the order that is best for the system.
    Best,
    /// Scores as float32, tied documents in the order that is worst for the system.
    Worst,
}

impl Ties {
    /// For rules that break ties by position in the run instead of by id: each row's place among rows with an equal
    /// score. `None` for the other rules.
    #[must_use]
    pub fn places(self, scores: &[f64]) -> Option<Vec<u32>> {
        match self {
            Self::Input => Some((0..scores.len() as u32).collect()),
            Self::Ranx => Some(crate::ranx::positions(scores)),
            _ => None,
        }
    }

    /// The score that is compared. Negative zero becomes zero, so that the two tie as they do in C.
    #[inline]
    #[must_use]
    pub fn cast(self, score: f64) -> f64 {
        match self {
            Self::Float64 | Self::Input | Self::Ranx => score + 0.0,
            _ => f64::from(score as f32) + 0.0,
        }
    }
}

/// A judged document whose rank is being counted.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its score, as [`Ties::cast`] gives it.
    pub score: f64,
    /// Its relevance.
    pub relevance: i32,
    /// How the caller identifies it: its row in the ranking, or the number of its judgement.
    pub key: u32,
    /// How many documents have a higher score.
    above: u32,
    /// How many documents have this score, itself included.
    equal: u32,
}

impl Candidate {
    /// A judged document that was retrieved.
    #[must_use]
    pub fn new(score: f64, relevance: i32, key: u32) -> Self {
        Self {
            score,
            relevance,
            key,
            above: 0,
            equal: 0,
        }
    }
}

/// Orders the documents that share a score.
pub trait TieOrder {
    /// Writes into `offsets[i]` how many of the documents with score `score` stand above `tied[i]`.
    fn offsets(&mut self, score: f64, tied: &[Candidate], offsets: &mut Vec<u32>);
}

/// Up to this many candidates, counting is faster than sorting the scores.
const COUNTED: usize = 12;

/// Finds ranks, and reuses its buffers from query to query.
#[derive(Debug, Default)]
pub struct Ranker {
    sorted: Vec<f64>,
    offsets: Vec<u32>,
}

impl Ranker {
    /// Counts, for every candidate, the scores above and equal to its own, and puts candidates with equal scores next
    /// to each other, best first. Returns whether any candidate shares its score with another document.
    pub fn count(&mut self, scores: &[f64], candidates: &mut [Candidate]) -> bool {
        if scores.is_sorted_by(|a, b| a >= b) {
            locate(scores, candidates);
        } else if candidates.len() <= COUNTED {
            count_each(scores, candidates);
        } else {
            self.sorted.clear();
            self.sorted.extend_from_slice(scores);
            self.sorted.sort_unstable_by(|a, b| b.total_cmp(a));
            locate(&self.sorted, candidates);
        }
        candidates.sort_unstable_by_key(|candidate| (candidate.above, candidate.key));
        candidates.iter().any(|candidate| candidate.equal > 1)
    }

    /// Turns counted candidates into hits, by ascending rank.
    pub fn rank(
        &mut self,
        candidates: &mut [Candidate],
        ties: Ties,
        order: &mut impl TieOrder,
        hits: &mut Vec<Hit>,
    ) {
        hits.clear();
        for group in candidates.chunk_by_mut(|a, b| a.above == b.above) {
            if group[0].equal == 1 {
                hits.push(Hit {
                    rank: group[0].above,
                    relevance: group[0].relevance,
                });
            } else {
                self.rank_tied(group, ties, order, hits);
            }
        }
    }

    fn rank_tied(
        &mut self,
        group: &mut [Candidate],
        ties: Ties,
        order: &mut impl TieOrder,
        hits: &mut Vec<Hit>,
    ) {
        let (above, equal) = (group[0].above, group[0].equal);
        let first = hits.len();
        match ties {
            Ties::Best => {
                group.sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.relevance));
                hits.extend((above..).zip(group).map(|(rank, c)| Hit {
                    rank,
                    relevance: c.relevance,
                }));
            }
            Ties::Worst => {
                group.sort_unstable_by_key(|candidate| candidate.relevance);
                let start = above + equal.saturating_sub(group.len() as u32);
                hits.extend((start..).zip(group).map(|(rank, c)| Hit {
                    rank,
                    relevance: c.relevance,
                }));
            }
            Ties::TrecEval | Ties::Float64 | Ties::Input | Ties::Ranx => {
                self.offsets.clear();
                self.offsets.resize(group.len(), 0);
                order.offsets(group[0].score, group, &mut self.offsets);
                let ranked = group.iter().zip(&self.offsets);
                hits.extend(ranked.map(|(c, offset)| Hit {
                    rank: above + offset,
                    relevance: c.relevance,
                }));
                hits[first..].sort_unstable_by_key(|hit| hit.rank);
            }
        }
    }
}

fn locate(descending: &[f64], candidates: &mut [Candidate]) {
    for candidate in candidates {
        let above = descending.partition_point(|score| *score > candidate.score);
        let equal = descending[above..].partition_point(|score| *score == candidate.score);
        candidate.above = above as u32;
        candidate.equal = equal as u32;
    }
}

fn count_each(scores: &[f64], candidates: &mut [Candidate]) {
    for candidate in candidates {
        let own = candidate.score;
        let (above, equal) = scores.iter().fold((0u64, 0u64), |(above, equal), score| {
            (
                above + u64::from(*score > own),
                equal + u64::from(*score == own),
            )
        });
        candidate.above = above as u32;
        candidate.equal = equal as u32;
    }
}

/// Ties among documents whose scores and ids are in memory.
pub struct RowTies<'a, F> {
    scores: &'a [f64],
    id: F,
    ties: Ties,
    /// The rows of one tied group.
    rows: &'a mut Vec<u32>,
    places: Option<Vec<u32>>,
}

impl<'a, F> RowTies<'a, F> {
    /// Row `i` has the score `scores[i]`, as [`Ties::cast`] gives it, and the id `id(i)`. `rows` is a buffer to reuse.
    pub fn new(scores: &'a [f64], id: F, ties: Ties, rows: &'a mut Vec<u32>) -> Self {
        Self {
            scores,
            id,
            ties,
            rows,
            places: None,
        }
    }
}

impl<'b, F: Fn(u32) -> &'b [u8]> TieOrder for RowTies<'_, F> {
    fn offsets(&mut self, score: f64, tied: &[Candidate], offsets: &mut Vec<u32>) {
        self.rows.clear();
        self.rows.extend(
            (0u32..)
                .zip(self.scores)
                .filter(|(_, own)| **own == score)
                .map(|(row, _)| row),
        );
        if self.places.is_none() {
            self.places = self.ties.places(self.scores);
        }
        let id = &self.id;
        if let Some(places) = &self.places {
            self.rows.sort_unstable_by_key(|row| places[*row as usize]);
            search_each(self.rows, tied, offsets, |row, key| {
                places[row as usize].cmp(&places[key as usize])
            });
        } else {
            self.rows.sort_unstable_by(|a, b| id(*b).cmp(id(*a)));
            search_each(self.rows, tied, offsets, |row, key| id(key).cmp(id(row)));
        }
    }
}

/// Binary search of each candidate in its sorted group.
fn search_each(
    rows: &[u32],
    tied: &[Candidate],
    offsets: &mut [u32],
    compare: impl Fn(u32, u32) -> Ordering,
) {
    for (offset, candidate) in offsets.iter_mut().zip(tied) {
        *offset = rows.partition_point(|row| compare(*row, candidate.key) == Ordering::Less) as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranks(scores: &[f64], ids: &[&str], judged: &[(u32, i32)], ties: Ties) -> Vec<(u32, i32)> {
        let cast: Vec<f64> = scores.iter().map(|score| ties.cast(*score)).collect();
        let mut candidates: Vec<_> = judged
            .iter()
            .map(|(row, relevance)| Candidate::new(cast[*row as usize], *relevance, *row))
            .collect();
        let (mut ranker, mut hits, mut rows) = (Ranker::default(), Vec::new(), Vec::new());
        ranker.count(&cast, &mut candidates);
        let id = |row: u32| ids[row as usize].as_bytes();
        let mut order = RowTies::new(&cast, id, ties, &mut rows);
        ranker.rank(&mut candidates, ties, &mut order, &mut hits);
        hits.into_iter()
            .map(|hit| (hit.rank, hit.relevance))
            .collect()
    }

    #[test]
    fn ties_fall_by_id_descending_by_input_or_by_relevance() {
        // Scores 3, 2, 2, 2, 1; b and d are judged 1 and 2.
        let (scores, ids) = ([2.0, 3.0, 2.0, 2.0, 1.0], ["b", "a", "d", "c", "e"]);
        let judged = [(0, 1), (2, 2)];
        assert_eq!(
            ranks(&scores, &ids, &judged, Ties::TrecEval),
            [(1, 2), (3, 1)]
        );
        assert_eq!(ranks(&scores, &ids, &judged, Ties::Input), [(1, 1), (2, 2)]);
        assert_eq!(ranks(&scores, &ids, &judged, Ties::Best), [(1, 2), (2, 1)]);
        assert_eq!(ranks(&scores, &ids, &judged, Ties::Worst), [(2, 1), (3, 2)]);
    }

    #[test]
    fn float32_makes_ties_that_float64_does_not() {
        let (scores, ids) = ([1.000_000_01, 1.0], ["a", "b"]);
        assert_eq!(ranks(&scores, &ids, &[(0, 1)], Ties::TrecEval), [(1, 1)]);
        assert_eq!(ranks(&scores, &ids, &[(0, 1)], Ties::Float64), [(0, 1)]);
        assert_eq!(
            ranks(&[-0.0, 0.0], &["b", "a"], &[(1, 1)], Ties::Float64),
            [(1, 1)]
        );
    }

    /// Ranks by sorting rows with a comparison that spells the rule out.
    fn ranks_slowly(scores: &[f64], ids: &[&str], judged: &[(u32, i32)], ties: Ties) -> Vec<u32> {
        let relevance = |row: usize| {
            let found = judged.iter().find(|(judged, _)| *judged as usize == row);
            found.map(|(_, relevance)| *relevance)
        };
        let single = matches!(ties, Ties::TrecEval | Ties::Best | Ties::Worst);
        let score = |row: usize| {
            if single {
                f64::from(scores[row] as f32)
            } else {
                scores[row]
            }
        };
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| {
            score(b)
                .partial_cmp(&score(a))
                .unwrap()
                .then_with(|| match ties {
                    Ties::TrecEval | Ties::Float64 => ids[b].cmp(ids[a]),
                    Ties::Input | Ties::Ranx => a.cmp(&b),
                    Ties::Best => relevance(b).cmp(&relevance(a)),
                    // Documents without a judgement come first, then rising relevance.
                    Ties::Worst => relevance(a).cmp(&relevance(b)),
                })
        });
        let judged = order
            .into_iter()
            .enumerate()
            .filter(|(_, row)| relevance(*row).is_some());
        judged.map(|(rank, _)| rank as u32).collect()
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_sorting(
            rows in prop::collection::vec((-4..4i32, prop::option::weighted(0.4, 0..3i32)), 0..60),
            sorted in any::<bool>(),
            // ranx keeps the input order only below 16 rows; other tests compare it with ranx itself.
            ties in prop::sample::select(vec![Ties::TrecEval, Ties::Float64, Ties::Input, Ties::Best, Ties::Worst]),
        ) {
            let mut rows = rows;
            if sorted {
                rows.sort_by_key(|(score, _)| -score);
            }
            let scores: Vec<f64> = rows.iter().map(|(score, _)| f64::from(*score) * 0.1).collect();
            let ids: Vec<String> = (0..rows.len()).map(|row| format!("d{}", row * 7 % 61)).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let judged: Vec<(u32, i32)> =
                (0..).zip(&rows).filter_map(|(row, (_, relevance))| Some((row, (*relevance)?))).collect();
            let found: Vec<u32> = ranks(&scores, &ids, &judged, ties).into_iter().map(|hit| hit.0).collect();
            prop_assert_eq!(found, ranks_slowly(&scores, &ids, &judged, ties));
        }
    }

    #[test]
    fn counting_sorting_and_searching_agree() {
        let ids: Vec<String> = (0..97).map(|i| format!("d{i:02}")).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let scores: Vec<f64> = (0..97).map(|i| f64::from(i * 37 % 29)).collect();
        let all: Vec<(u32, i32)> = (0..97).map(|row| (row, 1)).collect();
        let together = ranks(&scores, &names, &all, Ties::TrecEval);
        assert_eq!(
            together.iter().map(|hit| hit.0).collect::<Vec<_>>(),
            (0..97).collect::<Vec<_>>()
        );
        let mut alone: Vec<_> = all
            .iter()
            .flat_map(|one| ranks(&scores, &names, &[*one], Ties::TrecEval))
            .collect();
        alone.sort_unstable();
        assert_eq!(alone, together);
    }
}
