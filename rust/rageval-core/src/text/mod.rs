//! Sentences, content words and names of a text, and how far its words are found in other texts.
//!
//! Any string is taken: nothing here panics, and all of it is linear in the length of the text. Offsets count Unicode
//! code points, as Python's strings do.

mod characters;
mod segmentation;

pub use segmentation::split_sentences;
