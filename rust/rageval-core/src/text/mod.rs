//! Sentences and names of a text, and how far its words are found in other texts.
//!
//! Any string is taken: nothing here panics, and all of it is linear in the length of the text. Offsets count Unicode
//! code points, as Python's strings do.

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
pub use overlap::{Search, WordShare, word_support};
pub use segmentation::split_sentences;
