//! Readers of run and qrels files. A bad line is an error with `file:line`; nothing is skipped in silence.
//!
//! Files are plain text, gzip or Zstandard, told apart by their first bytes; pipes are read too. Plain files are read
//! in blocks, each thread its own part, instead of being mapped: memory stays at a few megabytes whatever the file's
//! size, and a file that somebody truncates meanwhile is an error and not a crash.
//!
//! | what | layout | into |
//! |---|---|---|
//! | qrels | TREC's `query_id 0 doc_id relevance`, or BEIR's three columns with tabs and a header | [`read_qrels`], [`read_judgements`] |
//! | run | TREC's `query_id Q0 doc_id rank score tag` | [`evaluate_run`] (nothing is kept), [`read_run`] |
//!
//! Each has a twin whose name ends in `_text`, for text that is in memory already.

mod decompress;
mod line;
mod number;
mod qrels;
mod run;
mod run_row;
mod run_table;
mod source;
mod walk;

pub use qrels::{QrelsRow, read_judgements, read_judgements_text, read_qrels, read_qrels_text};
pub use run::{evaluate_run, evaluate_run_text};
pub use run_table::{RunTable, read_run, read_run_text};
