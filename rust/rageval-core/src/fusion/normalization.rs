//! Scores of different scales brought to one.

/// How the scores that a run gives a query's documents become comparable with those of other runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalization {
    /// `(score - lowest) / (highest - lowest)`: from 0 to 1 (Lee, SIGIR 1997). Equal scores are all 1. A document that
    /// the run does not have gets 0, as its last one does.
    #[default]
    MinMax,
    /// `(score - mean) / standard deviation`, that of all scores and not an estimate (ZMUV: Montague and Aslam, CIKM
    /// 2001). Equal scores are all 0. A document that the run does not have gets what its last one gets, for a
    /// mean score would lift it above documents that were retrieved.
    ZScore,
    /// `score / highest`. A document that the run does not have gets 0.
    Max,
    /// Scores as they are. A document that the run does not have gets 0.
    None,
}

impl Normalization {
    /// Normalises the scores of one ranking, of which there is at least one and all are finite; answers what a document
    /// that is not in it gets.
    pub(super) fn apply(self, scores: &mut [f64]) -> Result<f64, String> {
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        match self {
            Self::MinMax if highest == lowest => scores.fill(1.0),
            Self::MinMax => {
                let range = highest - lowest;
                scores
                    .iter_mut()
                    .for_each(|score| *score = (*score - lowest) / range);
            }
            Self::ZScore => return Ok(standardize(scores, lowest)),
            Self::Max if highest <= 0.0 => {
                return Err(format!(
                    "the highest is {highest}, and 'max' divides by one above 0; use 'min_max'"
                ));
            }
            Self::Max => scores.iter_mut().for_each(|score| *score /= highest),
            Self::None => {}
        }
        Ok(0.0)
    }
}

/// Answers the value of `lowest`.
fn standardize(scores: &mut [f64], lowest: f64) -> f64 {
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let variance = scores
        .iter()
        .map(|score| (score - mean).powi(2))
        .sum::<f64>()
        / n;
    let deviation = variance.sqrt();
    if deviation == 0.0 || scores.iter().all(|score| *score == lowest) {
        scores.fill(0.0);
        return 0.0;
    }
    scores
        .iter_mut()
        .for_each(|score| *score = (*score - mean) / deviation);
    (lowest - mean) / deviation
}
