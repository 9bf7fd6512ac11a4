//! Scores on different scales made comparable.

/// How the scores of a run for a query are made comparable with those of other runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalization {
    /// `(score - lowest) / (highest - lowest)`: from 0 to 1 (Lee, SIGIR 1997). Equal scores are all 1. A document that
    /// is not in the run gets 0, like the run's last one.
    #[default]
    MinMax,
    /// `(score - mean) / standard deviation`, with the standard deviation of these scores, not an estimate (ZMUV:
    /// Montague and Aslam, CIKM 2001). Equal scores are all 0. A document that is not in the run gets the value of the
    /// run's last one, because a mean score would lift it above documents that were retrieved.
    ZScore,
    /// `score / highest`. A document that is not in the run gets 0.
    Max,
    /// Scores unchanged. A document that is not in the run gets 0.
    None,
}

impl Normalization {
    /// Normalises the scores of one ranking, which must not be empty and must be finite. Returns the value of a
    /// document that is not in the ranking.
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
                    "the highest is {highest}, but 'max' needs one above 0; use 'min_max'"
                ));
            }
            Self::Max => scores.iter_mut().for_each(|score| *score /= highest),
            Self::None => {}
        }
        Ok(0.0)
    }
}

/// Returns the value of `lowest`.
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
