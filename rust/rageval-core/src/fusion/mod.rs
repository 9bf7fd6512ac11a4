//! One ranking from several, and the order of a ranking.
//!
//! Nothing is copied: a result gives the run and row of each document. Documents are ordered as in trec_eval: scores as
//! float32, descending, ties by document id descending, bytewise. So cutting a ranking at a depth keeps the documents
//! that an evaluation at that depth uses.

mod normalization;
mod pool;
mod stretches;

use std::num::NonZeroUsize;

pub use normalization::Normalization;
use pool::Pool;
use stretches::{Stretch, find_stretches};

use crate::error::{Error, Result, quote};
use crate::evaluation::Rows;
use crate::threads;

/// How several runs are combined into one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a document's score is the sum of
    /// `weight / (k + rank)` over the runs that contain it, with ranks from 1 in the order of the run's rows. Scores
    /// are not used.
    ReciprocalRank {
        /// How strongly the differences between the first ranks are reduced; 60 in the paper. Finite, at least 0.
        k: f64,
    },
    /// The sum of `weight * normalised score` (CombSUM with weights: Fox and Shaw, TREC-2, 1994).
    WeightedSum(Normalization),
}

/// Settings of [`fuse`].
#[derive(Clone, Debug, PartialEq)]
pub struct Fusion {
    /// How the runs are combined.
    pub method: Method,
    /// One weight per run; finite, at least 0, not all 0.
    pub weights: Vec<f64>,
    /// The most documents to keep per query; at least 1.
    pub depth: usize,
    /// The most threads to use; `None` means one per core. The result does not depend on it.
    pub threads: Option<NonZeroUsize>,
}

/// A document of a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retrieved {
    /// The number of a run that contains it.
    pub run: u32,
    /// Its row in that run, which gives the ids of the query and the document.
    pub row: u32,
    /// Its score.
    pub score: f64,
}

/// Fuses runs. Rows are grouped by query, in the order in which queries first appear, run by run; best first.
///
/// The rows of a query need not be adjacent; their order is the ranking. A run need not contain every query.
///
/// # Errors
/// [`Error::Usage`] for weights, a `k` or a depth out of range; [`Error::Row`] for a score that is NaN or infinite, a
/// document that occurs twice in a query of a run, and scores that cannot be normalised or whose sum is not finite.
///
/// ```
/// use rageval_core::evaluation::Rows;
/// use rageval_core::fusion::{Fusion, Method, fuse};
///
/// struct Ranking([&'static str; 2]);
///
/// impl Rows for Ranking {
///     fn len(&self) -> usize {
///         self.0.len()
///     }
///     fn query(&self, _: usize) -> &[u8] {
///         b"q"
///     }
///     fn doc(&self, row: usize) -> &[u8] {
///         self.0[row].as_bytes()
///     }
///     fn score(&self, row: usize) -> f64 {
///         -(row as f64)
///     }
/// }
///
/// let runs = [Ranking(["a", "b"]), Ranking(["b", "c"])];
/// let fusion = Fusion {
///     method: Method::ReciprocalRank { k: 60.0 },
///     weights: vec![1.0, 1.0],
///     depth: 2,
///     threads: None,
/// };
/// let fused = fuse(&runs, &fusion)?;
/// assert_eq!((fused[0].run, fused[0].row), (0, 1)); // b
/// assert_eq!(fused[0].score, 1.0 / 62.0 + 1.0 / 61.0);
/// assert_eq!((fused[1].run, fused[1].row), (0, 0)); // a: 1 / 61, and c has 1 / 62
/// # Ok::<(), rageval_core::error::Error>(())
/// ```
pub fn fuse<R: Rows>(runs: &[R], fusion: &Fusion) -> Result<Vec<Retrieved>> {
    fusion.check(runs.len())?;
    let name = |run: u32| format!("runs[{run}]");
    each_query(runs, fusion.threads, |stretches, pool| {
        let ranking = fusion.fuse_query(runs, stretches, pool);
        ranking.map_err(|problem| problem.at(runs, name))
    })
}

/// The rows of a run in the order of its rankings: grouped by query, in the order in which queries first appear; best
/// first, at most `depth` (at least 1) documents per query. Rows can come in any order.
///
/// # Errors
/// [`Error::Usage`] for a depth of 0; [`Error::Row`] for a score that is NaN or infinite, or a document that occurs
/// twice in a query.
pub fn rank_documents<R: Rows>(
    run: &R,
    depth: usize,
    threads: Option<NonZeroUsize>,
) -> Result<Vec<Retrieved>> {
    check_depth(depth)?;
    let runs = std::slice::from_ref(run);
    each_query(runs, threads, |stretches, pool| {
        let ranking = rank_query(run, stretches, depth, pool);
        ranking.map_err(|problem| problem.at(runs, |_| "run".to_owned()))
    })
}

fn rank_query<R: Rows>(
    run: &R,
    stretches: &[Stretch],
    depth: usize,
    pool: &mut Pool,
) -> std::result::Result<Vec<Retrieved>, Problem> {
    pool.clear(stretches.iter().map(Stretch::len).sum());
    for row in stretches.iter().flat_map(Stretch::rows) {
        let score = finite_score(run, 0, row)?;
        pool.add(std::slice::from_ref(run), 0, row, 0.0, score)?;
    }
    Ok(pool.best(depth, |entry| run.doc(entry.row as usize)))
}

impl Fusion {
    fn check(&self, runs: usize) -> Result<()> {
        let usage = |message: String| Err(Error::Usage(message));
        let (weights, given) = (&self.weights, self.weights.len());
        if given != runs {
            return usage(format!(
                "there are {given} weights for {runs} runs; give one per run"
            ));
        }
        if let Some(wrong) = weights
            .iter()
            .find(|weight| !(weight.is_finite() && **weight >= 0.0))
        {
            return usage(format!(
                "weights must be finite and at least 0, not {wrong}"
            ));
        }
        if runs > 0 && weights.iter().all(|weight| *weight == 0.0) {
            return usage("all weights are 0; at least one must be above 0".to_owned());
        }
        match self.method {
            Method::ReciprocalRank { k } if !(k.is_finite() && k >= 0.0) => {
                usage(format!("k must be finite and at least 0, not {k}"))
            }
            _ => check_depth(self.depth),
        }
    }

    fn fuse_query<R: Rows>(
        &self,
        runs: &[R],
        stretches: &[Stretch],
        pool: &mut Pool,
    ) -> std::result::Result<Vec<Retrieved>, Problem> {
        pool.clear(stretches.iter().map(Stretch::len).sum());
        // What the runs so far give to a document that none of them contains.
        let mut absent_so_far = 0.0;
        let mut values = Vec::new();
        for ranking in stretches.chunk_by(|a, b| a.run == b.run) {
            let run = ranking[0].run;
            let rows = || ranking.iter().flat_map(Stretch::rows);
            let scores = rows().map(|row| finite_score(&runs[run as usize], run, row));
            values.clear();
            for score in scores {
                values.push(score?);
            }
            let absent = self.give_values(&mut values).map_err(|message| Problem {
                run,
                row: ranking[0].start,
                fault: Fault::Ranking(message),
            })?;
            let weight = self.weights[run as usize];
            for (row, value) in rows().zip(&values) {
                pool.add(runs, run, row, absent_so_far, weight * value)?;
            }
            pool.add_to_absent(run, weight * absent);
            absent_so_far += weight * absent;
        }
        if let Some(entry) = pool.find_not_finite() {
            let (run, row) = (entry.run, entry.row);
            return Err(Problem {
                run,
                row,
                fault: Fault::Sum(entry.score),
            });
        }
        Ok(pool.best(self.depth, |entry| {
            runs[entry.run as usize].doc(entry.row as usize)
        }))
    }

    /// Replaces a ranking's scores by the values to weight and add up; returns the value of a document outside the
    /// ranking.
    fn give_values(&self, scores: &mut [f64]) -> std::result::Result<f64, String> {
        match self.method {
            Method::WeightedSum(normalization) => normalization.apply(scores),
            Method::ReciprocalRank { k } => {
                let ranks = (1_u32..).map(f64::from);
                scores
                    .iter_mut()
                    .zip(ranks)
                    .for_each(|(score, rank)| *score = 1.0 / (k + rank));
                Ok(0.0)
            }
        }
    }
}

fn check_depth(depth: usize) -> Result<()> {
    match depth {
        0 => Err(Error::Usage("depth must be at least 1".to_owned())),
        _ => Ok(()),
    }
}

/// The results of `task` for the stretches of each query, in order.
fn each_query<R: Rows>(
    runs: &[R],
    threads: Option<NonZeroUsize>,
    task: impl Fn(&[Stretch], &mut Pool) -> Result<Vec<Retrieved>> + Sync,
) -> Result<Vec<Retrieved>> {
    let stretches = find_stretches(runs)?;
    let queries: Vec<&[Stretch]> = stretches.chunk_by(|a, b| a.query == b.query).collect();
    let rankings = threads::try_map(queries.len(), threads::resolve(threads), |query, pool| {
        task(queries[query], pool)
    })?;
    Ok(rankings.concat())
}

fn finite_score<R: Rows>(run: &R, number: u32, row: u32) -> std::result::Result<f64, Problem> {
    let score = run.score(row as usize);
    if score.is_finite() {
        return Ok(score);
    }
    Err(Problem {
        run: number,
        row,
        fault: Fault::Score(score),
    })
}

/// What is wrong with a row.
struct Problem {
    run: u32,
    row: u32,
    fault: Fault,
}

enum Fault {
    Score(f64),
    Duplicate,
    /// The scores of the row's ranking.
    Ranking(String),
    Sum(f64),
}

impl Problem {
    #[cold]
    fn at<R: Rows>(self, runs: &[R], name: impl Fn(u32) -> String) -> Error {
        let (run, row) = (&runs[self.run as usize], self.row as usize);
        let (query, doc) = (quote(run.query(row)), quote(run.doc(row)));
        let message = match self.fault {
            Fault::Score(score) => {
                format!(
                    "the score of document {doc} for query {query} is {score}; it must be finite"
                )
            }
            Fault::Duplicate => {
                format!("document {doc} is retrieved twice for query {query}; remove one")
            }
            Fault::Ranking(message) => format!("the scores for query {query}: {message}"),
            Fault::Sum(score) => format!(
                "document {doc} gets the fused score {score} for query {query}; scores or weights are too large"
            ),
        };
        Error::Row {
            table: name(self.run).into(),
            row,
            message,
        }
    }
}

#[cfg(test)]
mod tests;
