//! Readers of run and qrels files. An invalid line is an error with `file:line`; nothing is skipped silently.
//!
//! Files are plain text, gzip or Zstandard, recognised by their first bytes; pipes work too. Plain files are not mapped
//! but read in blocks, each thread its own part. Memory stays at a few megabytes whatever the file's size, and a file
//! that another program truncates meanwhile is an error, not a crash.
//!
//! | what | layout | into |
//! |---|---|---|
//! | qrels | TREC's `query_id 0 doc_id relevance`, or BEIR's three columns with tabs and a header | [`read_qrels`], [`read_judgements`] |
//! | run | TREC's `query_id Q0 doc_id rank score tag` | [`evaluate_run`] (nothing is kept), [`read_run`] |
//!
//! Each function has a counterpart whose name ends in `_text`, for text that is already in memory.

mod decompress;
mod line;
mod number;
mod processor;
mod qrels;
mod run;
mod run_row;
mod run_table;
mod source;
mod walk;

pub use qrels::{QrelsRow, read_judgements, read_judgements_text, read_qrels, read_qrels_text};
pub use run::{evaluate_run, evaluate_run_text};
pub use run_table::{RunTable, read_run, read_run_text};
