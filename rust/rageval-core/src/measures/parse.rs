//! Reads measure names: ours, ir_measures', trec_eval's and BEIR's.

use std::fmt::Write as _;

use super::{Cutoff, Word, words};
use crate::error::{Error, Result};

/// A parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

/// Everything in a measure's name except its word.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The k of `@k`.
    pub cutoff: Option<usize>,
    /// The recall level of `iprec@0.1`, or the multiple of `Rprec_mult_0.20`.
    pub recall: Option<f64>,
    /// `rel=2`: the lowest relevance that counts as relevant.
    pub level: Option<i32>,
    /// `judged_only=true`: unjudged documents are removed first.
    pub judged_only: bool,
    /// The word's own parameters, by name.
    pub own: Vec<(&'static str, Value)>,
}

impl Parameters {
    /// A numeric parameter, or its default.
    pub(super) fn number(
        &self,
        name: &str,
        default: f64,
        bounds: std::ops::RangeInclusive<f64>,
    ) -> Result<f64> {
        let value = match self.own.iter().find(|(own, _)| *own == name) {
            None => return Ok(default),
            Some((_, Value::Number(value))) => *value,
            Some((_, Value::Text(text))) => {
                return Err(Error::Usage(format!("{name}={text} is not a number")));
            }
        };
        if bounds.contains(&value) {
            return Ok(value);
        }
        Err(Error::Usage(format!(
            "{name}={value} is not between {} and {}",
            bounds.start(),
            bounds.end()
        )))
    }

    /// A parameter that must be one of some words; the first is the default.
    pub(super) fn choice(&self, name: &str, choices: &[&'static str]) -> Result<&'static str> {
        let value = match self.own.iter().find(|(own, _)| *own == name) {
            None => return Ok(choices[0]),
            Some((_, Value::Text(text))) => text.clone(),
            Some((_, Value::Number(number))) => number.to_string(),
        };
        choices
            .iter()
            .find(|choice| **choice == value)
            .copied()
            .ok_or_else(|| {
                Error::Usage(format!(
                    "{name}={value} is not known; write one of {}",
                    choices.join(", ")
                ))
            })
    }

    /// The cutoff; without one, there is no limit.
    pub(super) fn depth(&self) -> usize {
        self.cutoff.unwrap_or(usize::MAX)
    }

    /// `word(parameters)@cutoff`, parameters by name.
    pub(super) fn canonical(&self, word: &Word) -> String {
        let mut pairs: Vec<String> = self
            .own
            .iter()
            .map(|(name, value)| match value {
                Value::Number(number) => format!("{name}={number}"),
                Value::Text(text) => format!("{name}={text}"),
            })
            .collect();
        if self.judged_only {
            pairs.push("judged_only=true".to_owned());
        }
        if let Some(level) = self.level {
            pairs.push(format!("rel={level}"));
        }
        pairs.sort();
        let mut text = word.name.to_owned();
        if !pairs.is_empty() {
            let _ = write!(text, "({})", pairs.join(","));
        }
        if let Some(cutoff) = self.cutoff {
            let _ = write!(text, "@{cutoff}");
        } else if let Some(recall) = self.recall {
            let _ = write!(text, "@{recall}");
        }
        text
    }
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

fn find(name: &str) -> Option<&'static Word> {
    let folded = fold(name);
    words()
        .iter()
        .copied()
        .find(|word| fold(word.name) == folded || word.aliases.iter().any(|a| fold(a) == folded))
}

/// Splits `text` into a known word and its parameters.
pub(super) fn parse(text: &str) -> Result<(&'static Word, Parameters)> {
    let trimmed = text.trim();
    let (word, arguments, cutoff) = split(trimmed)?;
    let (mut parameters, mut given) = (Parameters::default(), Vec::new());
    for pair in arguments
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
    {
        let key =
            read_parameter(word, pair, &mut parameters).map_err(|error| wrap(text, &error))?;
        if given.contains(&key) {
            return Err(wrap(text, &Error::Usage(format!("'{key}' is given twice"))));
        }
        given.push(key);
    }
    read_cutoff(word, cutoff, &mut parameters).map_err(|error| wrap(text, &error))?;
    Ok((word, parameters))
}

fn wrap(text: &str, error: &Error) -> Error {
    Error::Usage(format!("measure '{text}': {error}"))
}

/// (word, text in parentheses, text after `@`).
fn split(text: &str) -> Result<(&'static Word, &str, Option<&str>)> {
    let (head, cutoff) = match text.rsplit_once('@') {
        Some((head, cutoff)) => (head.trim(), Some(cutoff.trim())),
        None => (text, None),
    };
    let (name, arguments) = match head.split_once('(') {
        None => (head, ""),
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')').ok_or_else(|| {
                Error::Usage(format!(
                    "measure '{text}': the parenthesis is not closed; write name(key=value)@cutoff"
                ))
            })?;
            (name.trim(), inner)
        }
    };
    if let Some(word) = find(name) {
        return Ok((word, arguments, cutoff));
    }
    if let (None, "", Some((word, suffix))) = (cutoff, arguments, split_suffix(name)) {
        return Ok((word, "", Some(suffix)));
    }
    Err(unknown(text, name, cutoff))
}

/// trec_eval's `P_5`, `ndcg_cut.10`, `iprec_at_recall_0.10`: a number after `_` or `.`.
fn split_suffix(name: &str) -> Option<(&'static Word, &str)> {
    let start = name
        .find(|c: char| c.is_ascii_digit())
        .filter(|&start| start > 1)?;
    let (head, number) = name.split_at(start);
    let head = head.strip_suffix(['_', '.'])?;
    number.parse::<f64>().ok()?;
    find(head).map(|word| (word, number))
}

/// Reads `key=value`; returns the key under its name here.
fn read_parameter(
    word: &'static Word,
    pair: &str,
    parameters: &mut Parameters,
) -> Result<&'static str> {
    let (key, value) = pair
        .split_once('=')
        .ok_or_else(|| Error::Usage(format!("'{pair}' is not a parameter; write key=value")))?;
    let (key, value) = (key.trim(), value.trim().trim_matches(['\'', '"']));
    match key {
        "rel" if word.level => {
            parameters.level = Some(read_level(value)?);
            Ok("rel")
        }
        "judged_only" => {
            parameters.judged_only = read_flag(key, value)?;
            Ok("judged_only")
        }
        _ => {
            let own = word
                .parameters
                .iter()
                .copied()
                .find(|own| *own == key || (*own == "gain" && key == "dcg"));
            let own = own.ok_or_else(|| unknown_parameter(word, key))?;
            parameters.own.push((own, read_value(own, value)));
            Ok(own)
        }
    }
}

fn read_value(name: &str, value: &str) -> Value {
    match (name, value) {
        ("gain", "exp-log2") => Value::Text("exp".to_owned()),
        ("gain", "log2") => Value::Text("linear".to_owned()),
        _ => value
            .parse()
            .ok()
            .filter(|v: &f64| v.is_finite())
            .map_or_else(|| Value::Text(value.to_owned()), Value::Number),
    }
}

fn read_level(value: &str) -> Result<i32> {
    value
        .parse()
        .ok()
        .filter(|level| *level >= 1)
        .ok_or_else(|| Error::Usage(format!("rel={value} is not a whole number from 1")))
}

fn read_flag(key: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::Usage(format!(
            "{key}={value} is neither true nor false"
        ))),
    }
}

fn unknown_parameter(word: &Word, key: &str) -> Error {
    let mut known = word.parameters.to_vec();
    known.extend(word.level.then_some("rel"));
    known.push("judged_only");
    Error::Usage(format!(
        "no parameter '{key}'; '{}' takes {}",
        word.name,
        known.join(", ")
    ))
}

fn read_cutoff(word: &Word, text: Option<&str>, parameters: &mut Parameters) -> Result<()> {
    match (word.cutoff, text) {
        (Cutoff::Never | Cutoff::Optional, None) => {}
        (Cutoff::Never, Some(_)) => {
            return Err(Error::Usage(format!("'{}' takes no cutoff", word.name)));
        }
        (Cutoff::Required, None) => {
            return Err(Error::Usage(format!(
                "needs a cutoff; write '{}@10'",
                word.name
            )));
        }
        (Cutoff::Level, None) => {
            return Err(Error::Usage(format!(
                "needs a level; write '{}@0.1'",
                word.name
            )));
        }
        (Cutoff::Optional | Cutoff::Required, Some(text)) => {
            let cutoff = text.parse().ok().filter(|k| *k >= 1);
            let cutoff = cutoff.ok_or_else(|| {
                Error::Usage(format!("cutoff '{text}' is not a whole number from 1"))
            })?;
            parameters.cutoff = Some(cutoff);
        }
        (Cutoff::Level, Some(text)) => {
            let bound = if word.name == "iprec" { 1.0 } else { 1e6 };
            let level = text
                .parse()
                .ok()
                .filter(|level: &f64| (0.0..=bound).contains(level));
            let level = level.ok_or_else(|| {
                Error::Usage(format!("level '{text}' is not between 0 and {bound}"))
            })?;
            // Negative zero is zero.
            parameters.recall = Some(level + 0.0);
        }
    }
    Ok(())
}

fn unknown(text: &str, name: &str, cutoff: Option<&str>) -> Error {
    let folded = fold(name);
    let nearest = words()
        .iter()
        .filter(|word| word.listed)
        .flat_map(|word| {
            std::iter::once(&word.name)
                .chain(word.aliases)
                .map(move |alias| (word, alias))
        })
        .map(|(word, alias)| (distance(&folded, &fold(alias)), word))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= 1.max(folded.len() / 3) && *distance < folded.len());
    match nearest {
        None => Error::Usage(format!("unknown measure '{text}'")),
        Some((_, word)) => {
            let at = match (word.cutoff, cutoff) {
                (Cutoff::Never, _) | (Cutoff::Optional, None) => String::new(),
                (_, Some(cutoff)) => format!("@{cutoff}"),
                (Cutoff::Level, None) => "@0.1".to_owned(),
                (Cutoff::Required, None) => "@10".to_owned(),
            };
            Error::Usage(format!(
                "unknown measure '{text}'; did you mean '{}{at}'?",
                word.name
            ))
        }
    }
}

/// Edit distance that counts a swap of neighbours as one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::Compiled;

    fn canonical(text: &str) -> String {
        Compiled::parse(text).unwrap().text
    }

    #[test]
    fn all_spellings_of_a_measure_are_one_measure() {
        for (spelling, expected) in [
            ("ndcg@10", "ndcg@10"),
            ("nDCG@10", "ndcg@10"),
            ("NDCG@10", "ndcg@10"),
            ("ndcg_cut_10", "ndcg@10"),
            ("ndcg_cut.10", "ndcg@10"),
            ("nDCG(dcg='exp-log2')@10", "ndcg(gain=exp)@10"),
            ("recip_rank", "rr"),
            ("MRR@10", "rr@10"),
            ("P_5", "precision@5"),
            ("P(rel=2)@5", "precision(rel=2)@5"),
            ("Recall@100", "recall@100"),
            ("recall_100", "recall@100"),
            ("AP", "map"),
            ("map_cut_100", "map@100"),
            ("iprec_at_recall_0.10", "iprec@0.1"),
            ("IPrec@0.1", "iprec@0.1"),
            ("iprec@-0.0", "iprec@0"),
            ("Rprec", "rprec"),
            ("R_cap@10", "capped_recall@10"),
            ("RBP(p=0.8)", "rbp(p=0.8)"),
            ("set_P", "set_precision"),
            ("infAP", "infap"),
            ("11pt_avg", "11pt_avg"),
            ("Rprec_mult_0.20", "rprec_mult@0.2"),
            (
                "precision( judged_only = true , rel=2 )@ 10",
                "precision(judged_only=true,rel=2)@10",
            ),
        ] {
            assert_eq!(canonical(spelling), expected, "{spelling}");
        }
    }

    #[test]
    fn wrong_names_are_told_what_was_meant() {
        for (text, expected) in [
            (
                "ncdg@10",
                "unknown measure 'ncdg@10'; did you mean 'ndcg@10'?",
            ),
            (
                "recal@5",
                "unknown measure 'recal@5'; did you mean 'recall@5'?",
            ),
            (
                "precision",
                "measure 'precision': needs a cutoff; write 'precision@10'",
            ),
            (
                "ndcg@0",
                "measure 'ndcg@0': cutoff '0' is not a whole number from 1",
            ),
            (
                "ndcg@ten",
                "measure 'ndcg@ten': cutoff 'ten' is not a whole number from 1",
            ),
            (
                "ndcg(gian=exp)@10",
                "measure 'ndcg(gian=exp)@10': no parameter 'gian'; 'ndcg' takes gain, judged_only",
            ),
            (
                "precision(rel=1,rel=2)@5",
                "measure 'precision(rel=1,rel=2)@5': 'rel' is given twice",
            ),
            (
                "ndcg(gain=exp,dcg=log2)",
                "measure 'ndcg(gain=exp,dcg=log2)': 'gain' is given twice",
            ),
            ("rbp(p=2)", "measure 'rbp(p=2)': p=2 is not between 0 and 1"),
            (
                "ndcg(gain=exp@10",
                "measure 'ndcg(gain=exp@10': the parenthesis is not closed; write name(key=value)@cutoff",
            ),
            ("zzzzzz", "unknown measure 'zzzzzz'"),
            ("", "unknown measure ''"),
        ] {
            assert_eq!(Compiled::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
