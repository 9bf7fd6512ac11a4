//! Computes measures query by query, and merges their values.

use std::collections::HashSet;

use super::{Evaluation, Options, Part, Scratch, duplicate_message};
use crate::error::{Error, Result, quote};
use crate::hash::hash;
use crate::judgements::{Grades, JudgedQuery, Judgements};
use crate::measures::{Compiled, Query, keep_judged};
use crate::ranking::{Candidate, Ranker, RowTies, TieOrder, Ties};

/// Ranks and table entries are 32 bits wide, and one value is reserved for "none".
const MOST_DOCUMENTS: usize = u32::MAX as usize - 1;

/// Measures and options, ready for any number of runs.
pub struct Evaluator {
    measures: Vec<Compiled>,
    /// How rankings are read.
    pub options: Options,
    needs_nonrelevant: bool,
}

impl Evaluator {
    /// Prepares measures.
    ///
    /// # Errors
    /// [`Error::Usage`] if the relevance level is below 1 or there are no measures.
    pub fn new(measures: Vec<Compiled>, options: Options) -> Result<Self> {
        if options.level < 1 {
            return Err(Error::Usage(format!(
                "relevance level {} is below 1",
                options.level
            )));
        }
        if measures.is_empty() {
            return Err(Error::Usage(
                "no measures given; give at least one, such as 'ndcg@10'".to_owned(),
            ));
        }
        let needs_nonrelevant =
            options.judged_only || measures.iter().any(Compiled::needs_nonrelevant);
        Ok(Self {
            measures,
            options,
            needs_nonrelevant,
        })
    }

    /// The measures, in the order in which they were given.
    #[must_use]
    pub fn measures(&self) -> &[Compiled] {
        &self.measures
    }

    /// Whether a judged document of this relevance can change a value.
    #[inline]
    #[must_use]
    pub fn looks_at(&self, relevance: i32) -> bool {
        relevance > 0 || self.needs_nonrelevant
    }

    /// Computes all measures of one query from `scratch.scores` and `scratch.candidates`.
    pub fn measure(
        &self,
        index: usize,
        grades: &Grades,
        scratch: &mut Scratch,
        order: &mut impl TieOrder,
        part: &mut Part,
    ) {
        let retrieved = scratch.scores.len();
        let mut ranker = std::mem::take(&mut scratch.ranker);
        let mut candidates = std::mem::take(&mut scratch.candidates);
        let tied = ranker.count(&scratch.scores, &mut candidates);
        ranker.rank(&mut candidates, self.options.ties, order, &mut scratch.hits);
        part.queries.push(index);
        self.push_values(grades, retrieved, scratch, &mut part.values);
        if self.options.tie_range {
            self.push_range(
                grades,
                tied,
                &mut ranker,
                &mut candidates,
                order,
                scratch,
                part,
            );
        }
        candidates.clear();
        scratch.candidates = candidates;
        scratch.ranker = ranker;
    }

    #[allow(clippy::too_many_arguments)]
    fn push_range(
        &self,
        grades: &Grades,
        tied: bool,
        ranker: &mut Ranker,
        candidates: &mut [Candidate],
        order: &mut impl TieOrder,
        scratch: &mut Scratch,
        part: &mut Part,
    ) {
        let start = part.values.len() - self.measures.len();
        if !tied {
            part.low.extend_from_slice(&part.values[start..]);
            part.high.extend_from_slice(&part.values[start..]);
            return;
        }
        let retrieved = scratch.scores.len();
        ranker.rank(candidates, Ties::Worst, order, &mut scratch.hits);
        self.push_values(grades, retrieved, scratch, &mut part.low);
        ranker.rank(candidates, Ties::Best, order, &mut scratch.hits);
        self.push_values(grades, retrieved, scratch, &mut part.high);
        for (i, measure) in self.measures.iter().enumerate() {
            let at = start + i;
            let ends = measure.range([part.low[at], part.high[at], part.values[at]]);
            (part.low[at], part.high[at]) = ends;
        }
    }

    fn push_values(
        &self,
        grades: &Grades,
        retrieved: usize,
        scratch: &mut Scratch,
        values: &mut Vec<f64>,
    ) {
        let mut retrieved = retrieved;
        if retrieved > self.options.depth {
            retrieved = self.options.depth;
            scratch.hits.retain(|hit| (hit.rank as usize) < retrieved);
        }
        let mut hits = &scratch.hits;
        if self.options.judged_only {
            retrieved = keep_judged(&scratch.hits, &mut scratch.kept);
            hits = &scratch.kept;
        }
        let query = Query {
            hits,
            retrieved,
            gains: &grades.gains,
            zeros: grades.zeros,
            level: self.options.level,
        };
        values.extend(
            self.measures
                .iter()
                .map(|measure| measure.value(&query, &mut scratch.measured)),
        );
    }

    /// The values of an empty ranking.
    fn empty_values(&self, grades: &Grades) -> Vec<f64> {
        let query = Query {
            hits: &[],
            retrieved: 0,
            gains: &grades.gains,
            zeros: grades.zeros,
            level: self.options.level,
        };
        self.measures
            .iter()
            .map(|measure| measure.value(&query, &mut Vec::new()))
            .collect()
    }

    /// Merges parts, by ascending query id. `name` and `grades` describe one of the `judged` queries of the judgements,
    /// by index. Returns `None` if a query occurs twice, so that its rows must be grouped first.
    ///
    /// # Errors
    /// [`Error::Usage`] if a value is not finite, which takes exponential gains of relevance values above 1000.
    pub fn assemble<'a>(
        &self,
        parts: &[Part],
        judged: usize,
        name: impl Fn(usize) -> &'a [u8],
        no_relevant: impl Fn(usize) -> bool,
        empty: impl Fn(usize) -> Grades,
    ) -> Result<Option<Evaluation>> {
        const MISSING: (usize, usize) = (usize::MAX, 0);
        let mut place = vec![MISSING; judged];
        for (number, part) in parts.iter().enumerate() {
            for (row, &query) in part.queries.iter().enumerate() {
                if place[query] != MISSING {
                    return Ok(None);
                }
                place[query] = (number, row);
            }
        }
        let mut order: Vec<usize> = (0..judged)
            .filter(|&query| self.options.missing_as_empty || place[query] != MISSING)
            .collect();
        order.sort_unstable_by(|a, b| name(*a).cmp(name(*b)));
        let unjudged: HashSet<&[u8]> = parts
            .iter()
            .flat_map(|part| part.unjudged.iter().map(Vec::as_slice))
            .collect();
        let (m, n) = (self.measures.len(), order.len());
        let gather = |column: fn(&Part) -> &Vec<f64>| {
            let mut values = vec![0.0; m * n];
            for (to, &query) in order.iter().enumerate() {
                let (part, row) = place[query];
                let nothing;
                let own = match parts.get(part) {
                    Some(part) => &column(part)[row * m..][..m],
                    None => {
                        nothing = self.empty_values(&empty(query));
                        &nothing
                    }
                };
                for (measure, value) in own.iter().enumerate() {
                    values[measure * n + to] = *value;
                }
            }
            values
        };
        let evaluation = Evaluation {
            values: gather(|part| &part.values),
            low: self.options.tie_range.then(|| gather(|part| &part.low)),
            high: self.options.tie_range.then(|| gather(|part| &part.high)),
            missing: order.iter().map(|&query| place[query] == MISSING).collect(),
            no_relevant: order.iter().map(|&query| no_relevant(query)).collect(),
            judged_queries: judged,
            unjudged_queries: unjudged.len(),
            queries: order
                .into_iter()
                .map(|query| name(query).to_vec())
                .collect(),
        };
        self.refuse_overflow(&evaluation)?;
        Ok(Some(evaluation))
    }

    fn refuse_overflow(&self, evaluation: &Evaluation) -> Result<()> {
        let Some(place) = evaluation
            .values
            .iter()
            .position(|value| !value.is_finite())
        else {
            return Ok(());
        };
        let queries = evaluation.queries.len();
        Err(Error::Usage(format!(
            "measure '{}' has no finite value for query {}: its relevance values are too large for this gain",
            self.measures[place / queries].text,
            quote(&evaluation.queries[place % queries])
        )))
    }

    /// [`Self::assemble`] for this crate's judgements.
    ///
    /// # Errors
    /// The same as [`Self::assemble`].
    pub fn assemble_judged(
        &self,
        parts: &[Part],
        judgements: &Judgements,
    ) -> Result<Option<Evaluation>> {
        let grades = |query: usize| &judgements.query(query).grades;
        self.assemble(
            parts,
            judgements.query_ids().len(),
            |query| &judgements.query_ids()[query],
            |query| {
                grades(query)
                    .gains
                    .first()
                    .is_none_or(|best| *best < self.options.level)
            },
            |query| grades(query).clone(),
        )
    }

    /// Computes all measures of the judged query `index`. Row `i` of its `rows` retrieved documents has the id `doc(i)`
    /// and the score `score(i)`, which is not NaN.
    ///
    /// # Errors
    /// The row and the message, if a document occurs twice or there are more than 4 billion.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    pub(crate) fn evaluate_ranking<'d>(
        &self,
        judgements: &Judgements,
        index: usize,
        rows: usize,
        doc: impl Fn(usize) -> &'d [u8],
        score: impl Fn(usize) -> f64,
        scratch: &mut Scratch,
        part: &mut Part,
    ) -> std::result::Result<(), (usize, String)> {
        self.keep_rows(&judgements.query_ids()[index], rows, &doc, scratch)?;
        let judged = judgements.query(index);
        let mut kept = std::mem::take(&mut scratch.kept_rows);
        let mut tied = std::mem::take(&mut scratch.tied);
        let mut scores = std::mem::take(&mut scratch.tied_scores);
        let ties = self.options.ties;
        scratch.scores.clear();
        scratch
            .scores
            .extend(kept.iter().map(|&row| ties.cast(score(row))));
        let id = |row: usize| doc(kept[row]);
        self.find_judged(judgements, judged, &id, scratch);
        scores.clone_from(&scratch.scores);
        let mut order = RowTies::new(&scores, |row| id(row as usize), ties, &mut tied);
        self.measure(index, &judged.grades, scratch, &mut order, part);
        kept.clear();
        scratch.kept_rows = kept;
        scratch.tied = tied;
        scratch.tied_scores = scores;
        Ok(())
    }

    /// Lists in `scratch.kept_rows` the rows that count, which are not the query itself nor, with `keep_first`, repeat
    /// a document; and their hashes.
    #[inline(always)]
    fn keep_rows<'d>(
        &self,
        query: &[u8],
        rows: usize,
        doc: &impl Fn(usize) -> &'d [u8],
        scratch: &mut Scratch,
    ) -> std::result::Result<(), (usize, String)> {
        let Scratch {
            kept_rows: kept,
            hashes,
            seen,
            ..
        } = scratch;
        if rows > MOST_DOCUMENTS {
            let message = format!(
                "query {} has more than 4 billion documents, which is too many to rank",
                quote(query)
            );
            return Err((MOST_DOCUMENTS, message));
        }
        kept.clear();
        kept.extend((0..rows).filter(|&row| !self.options.drop_self || doc(row) != query));
        // Two loops of few instructions each take less time than one of many.
        hashes.clear();
        hashes.extend(kept.iter().map(|&row| hash(doc(row))));
        seen.reset(kept.len());
        let mut places = 0;
        for at in 0..hashes.len() {
            let (hash, row) = (hashes[at], kept[at]);
            let known = seen.find_or_insert(
                hash,
                places,
                |i| hashes[i] == hash && doc(kept[i]) == doc(row),
                |i| hashes[i],
            );
            if known.is_none() {
                (hashes[places], kept[places]) = (hash, row);
                places += 1;
            } else if !self.options.keep_first {
                return Err((row, duplicate_message(query, doc(row))));
            }
        }
        hashes.truncate(places);
        kept.truncate(places);
        Ok(())
    }

    /// Finds the judged documents in a ranking, or the ranking's documents in the judgements, whichever are fewer.
    #[inline(always)]
    fn find_judged<'d>(
        &self,
        judgements: &Judgements,
        judged: &JudgedQuery,
        id: &impl Fn(usize) -> &'d [u8],
        scratch: &mut Scratch,
    ) {
        let Scratch {
            candidates,
            hashes,
            scores,
            seen,
            ..
        } = scratch;
        let mut add = |row: usize, relevance| {
            if self.looks_at(relevance) {
                candidates.push(Candidate::new(scores[row], relevance, row as u32));
            }
        };
        if judged.len() > hashes.len() {
            for (row, hash) in hashes.iter().enumerate() {
                if let Some(relevance) = judgements.relevance(judged, *hash, id(row)) {
                    add(row, relevance);
                }
            }
            return;
        }
        for (hash, doc, relevance) in judgements.documents(judged) {
            if let Some(row) = seen.find(hash, |i| hashes[i] == hash && id(i) == doc) {
                add(row, relevance);
            }
        }
    }
}
