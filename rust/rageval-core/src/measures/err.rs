//! `err@k`: expected reciprocal rank, the expected value of `1/rank` at the rank where a user stops.
//!
//! `sum over ranks r of 1/r * R_r * product over i < r of (1 - R_i)` with `R = (2^g - 1) / 2^max_grade`. Grades above
//! `max_grade` (default 4, the value in gdeval) count as `max_grade`. Source: Chapelle et al., CIKM 2009.

use super::{Cutoff, Measure, Query, Statistic, Word};

pub(super) static ERR: Word = Word {
    name: "err",
    aliases: &["expected_reciprocal_rank"],
    cutoff: Cutoff::Optional,
    parameters: &["max_grade"],
    level: false,
    statistic: Statistic::Mean,
    listed: true,
    build: |parameters| {
        Ok(Box::new(Err {
            depth: parameters.depth(),
            max_grade: parameters.number("max_grade", 4.0, 1.0..=62.0)?,
        }))
    },
};

struct Err {
    depth: usize,
    max_grade: f64,
}

impl Measure for Err {
    fn value(&self, query: &Query<'_>) -> f64 {
        let (mut sum, mut goes_on) = (0.0, 1.0);
        for hit in query
            .hits
            .iter()
            .take_while(|hit| (hit.rank as usize) < self.depth)
        {
            if hit.relevance > 0 {
                let grade = f64::from(hit.relevance).min(self.max_grade);
                let stops = (grade.exp2() - 1.0) / self.max_grade.exp2();
                sum += goes_on * stops / f64::from(hit.rank + 1);
                goes_on *= 1.0 - stops;
            }
        }
        sum
    }
}
