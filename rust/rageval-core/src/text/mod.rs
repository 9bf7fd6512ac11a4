//! Sentences and names of a text, and how many of its words occur in other texts.
//!
//! Any string is accepted: nothing here panics, and every function is linear in the length of the text. Offsets count
//! Unicode code points, as Python's strings do.

mod abbreviations;
mod characters;
mod function_words;
mod names;
mod overlap;
mod runs;
mod segmentation;
mod stemming;
mod words;
mod wrapping;

pub use names::names;
pub use overlap::{Search, SentenceSupport, WordShare, sentence_support, word_support};
pub use segmentation::split_sentences;
