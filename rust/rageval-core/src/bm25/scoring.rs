//! The five formulas of BM25, step by step as the Python library bm25s computes them with numpy 2.
//!
//! Kamphuis, de Vries, Boytsov and Lin, "Which BM25 do you mean?", ECIR 2020. Lengths and counts are exact in float64;
//! the numerators of `atire` and `bm25+` are float32, because numpy keeps the type of an array that meets a Python
//! number.

use super::blocks::{BLOCK, Block};
use crate::error::{Error, Result};

/// A formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Lucene's, whose inverse document frequency is never negative.
    Lucene,
    /// The original one, with an inverse document frequency of at least 0.
    Robertson,
    /// That of ATIRE.
    Atire,
    /// BM25+.
    Plus,
    /// BM25L.
    Long,
}

impl Method {
    /// Reads `lucene`, `robertson`, `atire`, `bm25+` or `bm25l`.
    ///
    /// # Errors
    /// The name is none of these.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "lucene" => Ok(Self::Lucene),
            "robertson" => Ok(Self::Robertson),
            "atire" => Ok(Self::Atire),
            "bm25+" => Ok(Self::Plus),
            "bm25l" => Ok(Self::Long),
            _ => Err(Error::Value(format!(
                "method must be lucene, robertson, atire, bm25+ or bm25l, not '{name}'"
            ))),
        }
    }
}

/// The formula and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The formula.
    pub method: Method,
    /// How much repetitions of a word count.
    pub k1: f64,
    /// How much long documents are penalised.
    pub b: f64,
    /// What BM25+ and BM25L add for each word that a document has.
    pub delta: f64,
}

/// Term frequencies and lengths up to which term components are looked up.
const FREQUENCIES: usize = 8;
const LENGTHS: usize = 512;

/// The formula for one corpus.
pub(super) struct Formula {
    settings: Settings,
    documents: f64,
    mean_length: f64,
    /// The term components of small frequencies and lengths: `[frequency - 1][length]`.
    table: Box<[f64; FREQUENCIES * LENGTHS]>,
}

/// A word of a query in one corpus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    idf: f64,
    /// What a document without the word gets, for BM25+ and BM25L; contributions are above that.
    pub(super) absent: f32,
    /// `absent` as subtracted from contributions.
    subtracted: f64,
}

impl Formula {
    pub(super) fn new(settings: Settings, documents: u64, words: u64) -> Self {
        let mut formula = Self {
            settings,
            documents: documents as f64,
            mean_length: words as f64 / documents as f64,
            table: Box::new([0.0; FREQUENCIES * LENGTHS]),
        };
        for cell in 0..FREQUENCIES * LENGTHS {
            formula.table[cell] =
                formula.compute((cell / LENGTHS + 1) as f64, (cell % LENGTHS) as f64);
        }
        formula
    }

    /// The weight of a word that `df` documents have.
    pub(super) fn weight(&self, df: u32) -> Weight {
        let (n, df) = (self.documents, f64::from(df));
        let idf = match self.settings.method {
            Method::Lucene => (1.0 + (n - df + 0.5) / (df + 0.5)).ln(),
            Method::Robertson => {
                let odds = (n - df + 0.5) / (df + 0.5);
                if odds < 1.0 { 1.0_f64.ln() } else { odds.ln() }
            }
            Method::Atire => (n / df).ln(),
            Method::Long => ((n + 1.0) / (df + 0.5)).ln(),
            Method::Plus => ((n + 1.0) / df).ln(),
        };
        let absent = match self.settings.method {
            Method::Plus | Method::Long => (idf * self.compute(0.0, self.mean_length)) as f32,
            _ => 0.0,
        };
        Weight {
            idf: f64::from(idf as f32),
            absent,
            subtracted: f64::from(absent),
        }
    }

    /// What a word contributes to the score of a document that has it `frequency` times.
    #[inline]
    pub(super) fn contribution(&self, weight: Weight, frequency: u32, length: u32) -> f32 {
        let (row, column) = (frequency.wrapping_sub(1) as usize, length as usize);
        let component = if row < FREQUENCIES && column < LENGTHS {
            self.table[row * LENGTHS + column]
        } else {
            self.compute(f64::from(frequency), f64::from(length))
        };
        (weight.idf * component - weight.subtracted) as f32
    }

    /// What a word contributes to the scores of the documents of a block.
    #[inline(always)]
    pub(super) fn contribute(&self, weight: Weight, block: &Block, into: &mut [f32; BLOCK]) {
        let postings = block
            .more
            .iter()
            .zip(&block.lengths)
            .zip(into)
            .take(block.len);
        let [more, length] = block.widths;
        if 1 << more <= FREQUENCIES && 1 << length <= LENGTHS {
            for ((more, length), into) in postings {
                let cell = *more as usize * LENGTHS + *length as usize;
                let component = self.table[cell % (FREQUENCIES * LENGTHS)];
                *into = (weight.idf * component - weight.subtracted) as f32;
            }
        } else {
            for ((more, length), into) in postings {
                *into = self.contribution(weight, more.wrapping_add(1), *length);
            }
        }
    }

    fn compute(&self, tf: f64, length: f64) -> f64 {
        let Settings {
            method,
            k1,
            b,
            delta,
        } = self.settings;
        let tf = f64::from(tf as f32);
        let norm = (1.0 - b) + b * length / self.mean_length;
        // The product in float32: a frequency is an exact float32, and so is the result of the product's rounding.
        let numerator = || f64::from(tf as f32 * (k1 + 1.0) as f32);
        match method {
            Method::Lucene | Method::Robertson => tf / (k1 * norm + tf),
            Method::Atire => numerator() / (tf + k1 * norm),
            Method::Plus => numerator() / (k1 * norm + tf) + delta,
            Method::Long => {
                let c = tf / norm;
                ((k1 + 1.0) * (c + delta)) / (k1 + c + delta)
            }
        }
    }
}

/// The sum of float32 numbers in the order in which numpy adds them.
pub(super) fn sum_pairwise(values: &[f32]) -> f32 {
    const BLOCK: usize = 128;
    if values.len() < 8 {
        values.iter().fold(-0.0, |sum, value| sum + value)
    } else if values.len() <= BLOCK {
        let mut sums = [0.0_f32; 8];
        let mut chunks = values.chunks_exact(8);
        if let Some(first) = chunks.next() {
            sums.copy_from_slice(first);
        }
        for chunk in chunks.by_ref() {
            sums.iter_mut()
                .zip(chunk)
                .for_each(|(sum, value)| *sum += value);
        }
        let [a, b, c, d, e, f, g, h] = sums;
        let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
        chunks
            .remainder()
            .iter()
            .fold(sum, |sum, value| sum + value)
    } else {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % 8);
        sum_pairwise(first) + sum_pairwise(second)
    }
}
