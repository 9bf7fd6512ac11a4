//! Ranking measures: one file per name, all computed from the same view of a query.
//!
//! A measure sees the ranks of the judged documents that were retrieved, how many documents were retrieved, and the
//! judgements; no measure needs more. For measures that trec_eval has, values and order of arithmetic are those of
//! trec_eval v9.0.8 (commit d95ca64).

mod average_precision;
mod bpref;
mod capped_recall;
mod counts;
mod dcg;
mod err;
mod f1;
mod geometric;
mod inferred;
mod interpolated;
mod judged;
mod normalized_gain;
mod parse;
mod precision;
mod r_precision;
mod rbp;
mod recall;
mod reciprocal_rank;
mod sets;
mod success;
mod target_rank;

use std::sync::LazyLock;

pub use parse::{Parameters, Value};

use crate::error::{Error, Result};

/// A judged document that was retrieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Rank from 0.
    pub rank: u32,
    /// Its relevance, which can be negative.
    pub relevance: i32,
}

/// What a measure sees of one query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Judged documents that were retrieved, by ascending rank.
    pub hits: &'a [Hit],
    /// How many documents were retrieved.
    pub retrieved: usize,
    /// All relevance values above 0 of the query's judgements, highest first.
    pub gains: &'a [i32],
    /// How many judgements are exactly 0.
    pub zeros: usize,
    /// The lowest relevance that counts as relevant (trec_eval's `-l`).
    pub level: i32,
}

impl Query<'_> {
    /// Ranks (from 0) of the relevant documents that were retrieved, ascending.
    pub fn relevant_ranks(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.hits
            .iter()
            .filter(|hit| hit.relevance >= self.level)
            .map(|hit| hit.rank as usize)
    }

    /// How many relevant documents there are: R.
    #[must_use]
    pub fn relevant(&self) -> usize {
        self.gains.partition_point(|&gain| gain >= self.level)
    }

    /// How many judged documents are not relevant. Documents with a negative relevance count as unjudged.
    #[must_use]
    pub fn nonrelevant(&self) -> usize {
        self.gains.len() - self.relevant() + self.zeros
    }

    /// How many relevant documents are among the first `cutoff` retrieved.
    #[must_use]
    pub fn relevant_within(&self, cutoff: usize) -> usize {
        self.relevant_ranks()
            .take_while(|&rank| rank < cutoff)
            .count()
    }

    /// How many relevant documents were retrieved.
    #[must_use]
    pub fn relevant_retrieved(&self) -> usize {
        self.relevant_ranks().count()
    }
}

/// A measure with its parameters fixed.
pub trait Measure: Send + Sync {
    /// The value for one query: 0 if the formula would divide by 0, and finite unless gains overflow.
    fn value(&self, query: &Query<'_>) -> f64;

    /// Whether it uses judged documents that are not relevant.
    fn needs_nonrelevant(&self) -> bool {
        false
    }

    /// The low and high ends of the values that a ranking has in its own order and in the orders of its ties that put
    /// relevant documents last and first. Which order gives which end depends on the measure: some values fall as
    /// relevant documents move up.
    fn range(&self, values: [f64; 3]) -> (f64, f64) {
        range(values)
    }
}

/// How values are combined into one number over all queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Arithmetic mean of ranks from 1, where lower is better. 0 means no rank and does not count.
    MeanRank,
    /// The values are logarithms; the aggregate is `exp` of their mean.
    GeometricMean,
    /// Sum, for counts.
    Sum,
}

impl Statistic {
    /// Aggregates values in the order given, as trec_eval does (it sums query by query, by ascending query id).
    /// Without values the aggregate is 0.
    #[must_use]
    pub fn aggregate(self, values: impl IntoIterator<Item = f64>) -> f64 {
        let counts = |value: &f64| self != Self::MeanRank || *value != 0.0;
        let (sum, n) = values
            .into_iter()
            .filter(counts)
            .fold((0.0, 0u64), |(sum, n), value| (sum + value, n + 1));
        match self {
            _ if n == 0 => 0.0,
            Self::Sum => sum,
            Self::Mean | Self::MeanRank => sum / n as f64,
            Self::GeometricMean => (sum / n as f64).exp(),
        }
    }
}

/// What `@` means for a measure name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cutoff {
    /// It takes no cutoff.
    Never,
    /// A cutoff is optional.
    Optional,
    /// A cutoff is required.
    Required,
    /// A recall level between 0 and 1 is required.
    Level,
}

/// A measure's names, its parameters, and how to build it.
pub struct Word {
    /// The canonical name.
    pub name: &'static str,
    /// Other names, from ir_measures, trec_eval, BEIR and common use. Case, `-` and `_` do not matter.
    pub aliases: &'static [&'static str],
    /// What `@` means.
    pub cutoff: Cutoff,
    /// Parameters of its own, besides `judged_only`, which every measure takes.
    pub parameters: &'static [&'static str],
    /// Whether a relevance level (`rel=2`) changes it.
    pub level: bool,
    /// How values are combined into one number.
    pub statistic: Statistic,
    /// False for measures that exist only for the drop-in and are not offered in specs.
    pub listed: bool,
    build: fn(&Parameters) -> Result<Box<dyn Measure>>,
}

static WORDS: &[&Word] = &[
    &dcg::NDCG,
    &dcg::DCG,
    &precision::PRECISION,
    &recall::RECALL,
    &capped_recall::CAPPED_RECALL,
    &f1::F1,
    &success::SUCCESS,
    &reciprocal_rank::RR,
    &average_precision::MAP,
    &r_precision::RPREC,
    &bpref::BPREF,
    &inferred::INFAP,
    &rbp::RBP,
    &err::ERR,
    &interpolated::IPREC,
    &geometric::GM_MAP,
    &judged::JUDGED,
    &counts::NUM_RET,
    &counts::NUM_REL,
    &counts::NUM_REL_RET,
    &sets::SET_PRECISION,
    &sets::SET_RECALL,
    &sets::SET_F,
    &target_rank::TARGET_RANK,
    &geometric::GM_BPREF,
    &interpolated::ELEVEN_POINTS,
    &r_precision::RPREC_MULT,
    &precision::RELATIVE_PRECISION,
    &sets::SET_RELATIVE_PRECISION,
    &sets::SET_MAP,
    &sets::UTILITY,
    &counts::NUM_Q,
    &counts::NUM_NONREL_JUDGED_RET,
    &normalized_gain::NDCG_REL,
    &normalized_gain::RNDCG,
    &normalized_gain::G,
    &normalized_gain::BIN_G,
];

/// Every measure name, documented ones first.
#[must_use]
pub fn words() -> &'static [&'static Word] {
    WORDS
}

/// A measure as the user wrote it, ready to compute.
pub struct Compiled {
    /// Canonical text: `ndcg(gain=exp)@10`.
    pub text: String,
    /// Its entry in [`words`].
    pub word: &'static Word,
    /// Its parameters.
    pub parameters: Parameters,
    measure: Box<dyn Measure>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compiled").field(&self.text).finish()
    }
}

impl Compiled {
    /// Reads a measure's name in any of its spellings: `ndcg@10`, `nDCG@10`, `ndcg_cut_10`, `P(rel=2)@5`.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name (with the closest known one) or an invalid parameter.
    pub fn parse(text: &str) -> Result<Self> {
        let (word, parameters) = parse::parse(text)?;
        let measure = (word.build)(&parameters)
            .map_err(|error| Error::Usage(format!("measure '{text}': {error}")))?;
        Ok(Self {
            text: parameters.canonical(word),
            word,
            parameters,
            measure,
        })
    }

    /// Whether it needs the ranks of judged documents that are not relevant.
    #[must_use]
    pub fn needs_nonrelevant(&self) -> bool {
        self.parameters.judged_only || self.measure.needs_nonrelevant()
    }

    /// The low and high ends of some values of one query, over different orders of its ties: [`Measure::range`].
    #[must_use]
    pub fn range(&self, values: [f64; 3]) -> (f64, f64) {
        self.measure.range(values)
    }

    /// The value for one query. `scratch` holds the rankings that `judged_only` rewrites.
    pub fn value(&self, query: &Query<'_>, scratch: &mut Vec<Hit>) -> f64 {
        let query = Query {
            level: self.parameters.level.unwrap_or(query.level),
            ..*query
        };
        if !self.parameters.judged_only {
            return self.measure.value(&query);
        }
        let retrieved = keep_judged(query.hits, scratch);
        self.measure.value(&Query {
            hits: scratch,
            retrieved,
            ..query
        })
    }
}

/// The lowest and the highest value.
fn range(values: [f64; 3]) -> (f64, f64) {
    let [a, b, c] = values;
    (a.min(b).min(c), a.max(b).max(c))
}

/// Moves judged documents up past the unjudged ones between them; returns how many there are.
pub fn keep_judged(hits: &[Hit], kept: &mut Vec<Hit>) -> usize {
    kept.clear();
    kept.extend(
        (0u32..)
            .zip(hits.iter().filter(|hit| hit.relevance >= 0))
            .map(|(rank, hit)| Hit { rank, ..*hit }),
    );
    kept.len()
}

/// `log2(rank + 2)`, rank from 0: the discount of DCG.
fn discount(rank: usize) -> f64 {
    static TABLE: LazyLock<Vec<f64>> =
        LazyLock::new(|| (0..1024).map(|rank| f64::from(rank + 2).log2()).collect());
    TABLE
        .get(rank)
        .copied()
        .unwrap_or_else(|| ((rank + 2) as f64).log2())
}

/// `numerator / denominator`, or 0 if the denominator is 0.
fn share(numerator: f64, denominator: f64) -> f64 {
    if denominator == 0.0 {
        0.0
    } else {
        numerator / denominator
    }
}
