//! Readers of run and qrels files. A bad line is an error with `file:line`; nothing is skipped in silence.
//!
//! Files are read in blocks, each thread its own range, instead of being mapped: memory stays at a few megabytes
//! whatever the file's size, and a file that somebody truncates meanwhile is an error and not a crash.

mod line;
mod number;
mod qrels;
mod run;
mod source;

pub use qrels::{QrelsRow, read_judgements, read_qrels};
pub use run::{RunTable, evaluate_run, read_run};
