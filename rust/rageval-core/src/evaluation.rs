//! Measures over rankings: one pass computes all that was asked for.

use std::collections::HashSet;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result, quote};
use crate::hash::{IndexTable, hash};
use crate::judgements::{Grades, Judgements};
use crate::measures::{Compiled, Hit, Query, Statistic, keep_judged};
use crate::ranking::{Candidate, Ranker, RowTies, TieOrder, Ties};
use crate::threads::MOST_THREADS;

/// Rows that a thread takes at a time, about.
const ROWS_PER_TASK: usize = 1 << 15;

/// Ranks and table entries are 32 bits wide, and one value of these means "none".
const MOST_DOCUMENTS: usize = u32::MAX as usize - 1;

/// How rankings are read. The default is trec_eval's.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Order of documents with equal scores.
    pub ties: Ties,
    /// Look at the first so many documents only (`-M`), after ordering.
    pub depth: usize,
    /// Remove unjudged documents (`-J`), after `depth`.
    pub judged_only: bool,
    /// Remove a document whose id is the query's, as BEIR does.
    pub drop_self: bool,
    /// From which relevance on a document is relevant (`-l`); at least 1.
    pub level: i32,
    /// Score queries that are in the judgements and not in the run as an empty ranking (`-c`).
    pub missing_as_empty: bool,
    /// Keep the first of a document's several rows instead of refusing the run.
    pub keep_first: bool,
    /// Compute the lowest and highest value over all orders of tied documents.
    pub tie_range: bool,
    /// Threads; 0 means all cores.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ties: Ties::TrecEval,
            depth: usize::MAX,
            judged_only: false,
            drop_self: false,
            level: 1,
            missing_as_empty: false,
            keep_first: false,
            tie_range: false,
            threads: 0,
        }
    }
}

impl Options {
    pub(crate) fn thread_count(&self) -> usize {
        match self.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        }
    }
}

/// Values of all queries, by rising query id (bytewise).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Query ids.
    pub queries: Vec<Vec<u8>>,
    /// `values[measure * queries + query]`.
    pub values: Vec<f64>,
    /// Lowest values over all orders of ties, where asked for; the best rank for a measure that is a rank.
    pub low: Option<Vec<f64>>,
    /// Highest values over all orders of ties, where asked for; the worst rank, 0 for none, for a measure that is a rank.
    pub high: Option<Vec<f64>>,
    /// Whether the query is not in the run.
    pub missing: Vec<bool>,
    /// Whether the query has no relevant document.
    pub no_relevant: Vec<bool>,
    /// How many queries of the run have no judgements; they are not evaluated.
    pub unjudged_queries: usize,
}

impl Evaluation {
    /// One measure's values.
    #[must_use]
    pub fn of(&self, measure: usize) -> &[f64] {
        &self.values[measure * self.queries.len()..][..self.queries.len()]
    }

    /// One measure's aggregate, in trec_eval's order of arithmetic: missing queries come last.
    #[must_use]
    pub fn aggregate(&self, measure: usize, statistic: Statistic) -> f64 {
        let values = self.of(measure);
        let missing = self.missing.iter().filter(|missing| **missing).count();
        if missing == 0 || statistic != Statistic::GeometricMean {
            return statistic.aggregate(values.iter().copied());
        }
        let present = values
            .iter()
            .zip(&self.missing)
            .filter(|(_, missing)| !**missing);
        let sum = present.fold(0.0, |sum, (value, _)| sum + value);
        let floor = values
            .iter()
            .zip(&self.missing)
            .find(|(_, missing)| **missing)
            .map_or(0.0, |(value, _)| *value);
        ((sum + missing as f64 * floor) / values.len() as f64).exp()
    }
}

/// Buffers for one ranking after the other.
#[derive(Default)]
pub struct Scratch {
    /// Scores as cast, in the order of the run.
    pub scores: Vec<f64>,
    /// The judged documents among them.
    pub candidates: Vec<Candidate>,
    hits: Vec<Hit>,
    kept: Vec<Hit>,
    measured: Vec<Hit>,
    ranker: Ranker,
    tied: Vec<u32>,
    tied_scores: Vec<f64>,
    kept_rows: Vec<usize>,
    hashes: Vec<u64>,
    seen: IndexTable,
}

/// Which judged queries were met, by all threads together.
pub(crate) struct Met {
    queries: Vec<AtomicBool>,
    again: AtomicBool,
}

impl Met {
    pub(crate) fn new(judgements: &Judgements) -> Self {
        let queries = judgements.query_ids().iter();
        Self {
            queries: queries.map(|_| AtomicBool::new(false)).collect(),
            again: AtomicBool::new(false),
        }
    }

    pub(crate) fn enter(&self, query: usize) {
        if self.queries[query].swap(true, Ordering::Relaxed) {
            self.again.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a query came back, so that values of single rankings are in vain.
    pub(crate) fn again(&self) -> bool {
        self.again.load(Ordering::Relaxed)
    }
}

/// Values of some queries, in the order in which they were met.
#[derive(Default)]
pub struct Part {
    /// Index of each query in the judgements.
    pub queries: Vec<usize>,
    /// `values[query * measures + measure]`.
    values: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    /// Names of queries without judgements.
    pub unjudged: HashSet<Vec<u8>>,
}

impl Part {
    /// Whether no query was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.unjudged.is_empty()
    }
}

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
    /// [`Error::Usage`] for a relevance level below 1 or no measure at all.
    pub fn new(measures: Vec<Compiled>, options: Options) -> Result<Self> {
        if options.level < 1 {
            return Err(Error::Usage(format!(
                "relevance level {} is below 1",
                options.level
            )));
        }
        if measures.is_empty() {
            return Err(Error::Usage(
                "no measure is named; name at least one, such as 'ndcg@10'".to_owned(),
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

    /// The measures, in the order asked for.
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

    /// Values of an empty ranking.
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

    /// Brings parts together, by rising query id. `name` and `grades` tell about a query of the judgements by index,
    /// of which there are `judged`. None where a query was met twice, so that its rows must be brought together first.
    ///
    /// # Errors
    /// [`Error::Usage`] where a value is not finite, which takes exponential gains of relevance values over 1000.
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

    /// [`Self::assemble`] for judgements of this crate.
    ///
    /// # Errors
    /// As [`Self::assemble`].
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

    /// Evaluates a run given as rows; rows of a query may lie anywhere.
    ///
    /// # Errors
    /// [`Error::Row`] for a NaN score or a document that a query has twice; [`Error::Usage`] for over 4 billion rows, or
    /// as [`Self::assemble`].
    pub fn evaluate_rows<R: Rows>(&self, judgements: &Judgements, rows: &R) -> Result<Evaluation> {
        let together = self.evaluate_segments(judgements, rows, ROWS_PER_TASK, &|row| row)?;
        if let Some(evaluation) = together {
            return Ok(evaluation);
        }
        let order = group_by_query(rows)?;
        let at = |row: usize| order[row] as usize;
        self.evaluate_segments(judgements, rows, ROWS_PER_TASK, &at)?
            .ok_or_else(|| Error::Usage("a query's rows could not be brought together".to_owned()))
    }

    /// Evaluates the rows `at(0), at(1), ...`; adjacent ones of the same query are a ranking. None where a query comes
    /// back.
    fn evaluate_segments<R: Rows>(
        &self,
        judgements: &Judgements,
        rows: &R,
        rows_per_task: usize,
        at: &(impl Fn(usize) -> usize + Sync),
    ) -> Result<Option<Evaluation>> {
        let end_of_query = |row: usize| {
            (row + 1..rows.len())
                .find(|&next| !rows.same_query(at(next), at(next - 1)))
                .unwrap_or(rows.len())
        };
        let ranges = cut(rows.len(), rows_per_task, end_of_query);
        let threads = self.options.thread_count();
        let met = Met::new(judgements);
        let parts = run_tasks(threads, ranges.len(), |task, scratch: &mut Scratch| {
            let mut part = Part::default();
            let mut start = ranges[task].start;
            while start < ranges[task].end && !met.again() {
                let end = end_of_query(start);
                let query = rows.query(at(start));
                match judgements.find(query) {
                    None => drop(part.unjudged.insert(query.to_vec())),
                    Some(index) => {
                        met.enter(index);
                        let segment = (start..end).map(at);
                        self.evaluate_segment(
                            judgements, rows, index, segment, scratch, &mut part,
                        )?;
                    }
                }
                start = end;
            }
            Ok(part)
        });
        if met.again() {
            return Ok(None);
        }
        self.assemble_judged(&parts?, judgements)
    }

    fn evaluate_segment<R: Rows>(
        &self,
        judgements: &Judgements,
        rows: &R,
        index: usize,
        segment: impl Iterator<Item = usize>,
        scratch: &mut Scratch,
        part: &mut Part,
    ) -> Result<()> {
        let query = judgements.query_ids()[index].as_slice();
        let mut kept = std::mem::take(&mut scratch.kept_rows);
        kept.clear();
        self.start_query(scratch);
        for row in segment {
            let (doc, score) = (rows.doc(row), rows.score(row));
            let added = if score.is_nan() {
                Err(nan_message(query, doc))
            } else {
                let earlier = |i: usize| rows.doc(kept[i]);
                self.push_document(scratch, judgements, index, query, doc, score, earlier)
            };
            let added = added.map_err(|message| Error::Row {
                table: "run".into(),
                row,
                message,
            })?;
            if added {
                kept.push(row);
            }
        }
        let mut tied = std::mem::take(&mut scratch.tied);
        let mut scores = std::mem::take(&mut scratch.tied_scores);
        scores.clone_from(&scratch.scores);
        let id = |row: u32| rows.doc(kept[row as usize]);
        let mut order = RowTies::new(&scores, id, self.options.ties, &mut tied);
        let grades = &judgements.query(index).grades;
        self.measure(index, grades, scratch, &mut order, part);
        scratch.tied = tied;
        scratch.tied_scores = scores;
        scratch.kept_rows = kept;
        Ok(())
    }

    /// Makes `scratch` ready for the next ranking.
    pub fn start_query(&self, scratch: &mut Scratch) {
        scratch.seen.reset(scratch.scores.len());
        scratch.scores.clear();
        scratch.candidates.clear();
        scratch.hashes.clear();
    }

    /// Adds a document to the ranking in `scratch`. `earlier(i)` is the id of the i-th document added. False where the
    /// document does not count (the query itself, or a second row of a document with `keep_first`).
    ///
    /// # Errors
    /// The message, where the document is there already, or where there are over 4 billion.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub fn push_document<'d>(
        &self,
        scratch: &mut Scratch,
        judgements: &Judgements,
        index: usize,
        query: &[u8],
        doc: &[u8],
        score: f64,
        earlier: impl Fn(usize) -> &'d [u8],
    ) -> std::result::Result<bool, String> {
        if self.options.drop_self && doc == query {
            return Ok(false);
        }
        let (hash, row) = (hash(doc), scratch.scores.len());
        if row == MOST_DOCUMENTS {
            return Err(format!(
                "query {} has over 4 billion documents; that is more than ranks can number",
                quote(query)
            ));
        }
        let hashes = &scratch.hashes;
        let known = scratch.seen.find_or_insert(
            hash,
            row,
            |i| hashes[i] == hash && earlier(i) == doc,
            |i| hashes[i],
        );
        if known.is_some() {
            return if self.options.keep_first {
                Ok(false)
            } else {
                Err(duplicate_message(query, doc))
            };
        }
        scratch.hashes.push(hash);
        let score = self.options.ties.cast(score);
        scratch.scores.push(score);
        if let Some(relevance) = judgements.relevance(judgements.query(index), hash, doc)
            && self.looks_at(relevance)
        {
            scratch
                .candidates
                .push(Candidate::new(score, relevance, row as u32));
        }
        Ok(true)
    }
}

/// A run as rows.
pub trait Rows: Sync {
    /// How many rows.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A row's query id.
    fn query(&self, row: usize) -> &[u8];
    /// Whether two rows are of one query.
    #[inline]
    fn same_query(&self, a: usize, b: usize) -> bool {
        self.query(a) == self.query(b)
    }
    /// A row's document id.
    fn doc(&self, row: usize) -> &[u8];
    /// A row's score.
    fn score(&self, row: usize) -> f64;
}

/// Cuts `0..n` at ends of queries into ranges of at least `size` rows, but for the last one.
fn cut(n: usize, size: usize, end_of_query: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < n {
        let end = if n - start <= size {
            n
        } else {
            end_of_query(start + size - 1)
        };
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Row numbers such that rows of a query lie together, in their order within the query.
fn group_by_query<R: Rows>(rows: &R) -> Result<Vec<u32>> {
    let n = u32::try_from(rows.len())
        .map_err(|_| Error::Usage("the run has over 4 billion rows; split it".to_owned()))?;
    let mut first_seen = std::collections::HashMap::new();
    let groups: Vec<u32> = (0..rows.len())
        .map(|row| {
            let next = first_seen.len() as u32;
            *first_seen.entry(rows.query(row)).or_insert(next)
        })
        .collect();
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_by_key(|row| groups[*row as usize]);
    Ok(order)
}

/// What to say of a NaN score.
#[must_use]
pub fn nan_message(query: &[u8], doc: &[u8]) -> String {
    format!(
        "the score of document {} for query {} is NaN; NaN has no rank",
        quote(doc),
        quote(query)
    )
}

/// What to say of a document that a query has twice.
#[must_use]
pub fn duplicate_message(query: &[u8], doc: &[u8]) -> String {
    format!(
        "document {} is retrieved twice for query {}; remove one, or set duplicates to 'first'",
        quote(doc),
        quote(query)
    )
}

/// Runs numbered tasks on some threads, each with its own `S`; results come in the order of the tasks, and of several
/// errors the one of the first task.
pub(crate) fn run_tasks<S: Default, T: Send>(
    threads: usize,
    tasks: usize,
    task: impl Fn(usize, &mut S) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T>>>> = Mutex::new((0..tasks).map(|_| None).collect());
    let work = || {
        let mut state = S::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= tasks {
                return;
            }
            let result = task(number, &mut state);
            let failed = result.is_err();
            results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(result);
            if failed {
                next.store(tasks, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let others = threads.min(tasks).min(MOST_THREADS).saturating_sub(1);
        for _ in 0..others {
            // Where the system refuses a thread, those there are do its work.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
