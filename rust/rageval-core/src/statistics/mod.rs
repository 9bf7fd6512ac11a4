//! Resampling and significance: bootstrap, permutation and t tests, Holm correction, grouped summaries.
