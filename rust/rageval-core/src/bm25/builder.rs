//! Builds an index from batches of documents.

use std::fs::File;
use std::io::{BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::blocks;
use super::file::{Writer, failed};
use super::interner::Interner;
use super::runs::{RunReader, sort_run};
use super::splitting::{Alphabet, Splitter};
use crate::error::{Error, Result};
use crate::threads;

/// Words that are kept in memory before they are sorted and spilled: 256 MiB, and as much again for sorting.
const RUN: usize = 1 << 26;
/// Documents that a thread splits at a time.
const CHUNK: usize = 4096;
/// Postings that are merged and encoded at a time.
const GROUP: usize = 1 << 22;
const NO_MORE: usize = u32::MAX as usize - 1;

/// Gives for each piece of text the words that it stands for.
pub type Expand<'a> = dyn FnMut(&[&str]) -> Result<Vec<Vec<String>>> + 'a;

/// Where the finished index goes.
pub enum Output<'a> {
    /// To a file, which must not exist.
    File(&'a Path),
    /// To memory.
    Memory(&'a mut Vec<u8>),
}

/// Takes documents in batches and writes their index.
pub struct Builder {
    splitter: Splitter,
    vocabulary: Vocabulary,
    folder: Option<PathBuf>,
    threads: NonZeroUsize,
    run: usize,
    /// Words of the last documents, which are not yet in a run.
    tokens: Vec<u32>,
    /// The first document whose words are in `tokens`.
    first: usize,
    lengths: Vec<u32>,
    ids: Vec<u8>,
    id_ends: Vec<usize>,
    runs: Vec<PathBuf>,
}

/// Pieces of text, and the words that they stand for.
struct Vocabulary {
    /// The first ones are stop words.
    pieces: Interner,
    stop_words: u32,
    expansions: Option<Expansions>,
}

#[derive(Default)]
struct Expansions {
    /// Whether words are expanded too, not only pieces that are not ASCII.
    of_words: bool,
    words: Interner,
    /// The words of all pieces, and where those of each piece end.
    flat: Vec<u32>,
    ends: Vec<usize>,
}

/// A part of a batch: its own distinct pieces, and those of each document by their numbers.
#[derive(Default)]
struct Chunk {
    pieces: Interner,
    tokens: Vec<u32>,
    counts: Vec<u32>,
}

impl Builder {
    /// A builder without documents.
    ///
    /// `stop_words` are left out. With `stems`, `add` asks for the word that each word stands for; without, it asks
    /// only about pieces that are not ASCII, if the splitter gives any. Runs are spilled to files in `folder`, which
    /// are removed at the end; without a folder, everything stays in memory.
    #[must_use]
    pub fn new(
        splitter: Splitter,
        stop_words: &[String],
        stems: bool,
        folder: Option<&Path>,
        threads: Option<NonZeroUsize>,
    ) -> Self {
        let mut pieces = Interner::default();
        for word in stop_words {
            // Another piece could have the same text, such as two characters of Chinese.
            if splitter == Splitter::Words || word.is_ascii() {
                pieces.add(word.as_bytes());
            }
        }
        let stop_count = pieces.len();
        let expansions = (stems || splitter == Splitter::Pieces).then(|| Expansions {
            of_words: stems,
            ends: vec![0; stop_count + 1],
            ..Expansions::default()
        });
        Self {
            splitter,
            vocabulary: Vocabulary {
                pieces,
                stop_words: stop_count as u32,
                expansions,
            },
            folder: folder.map(Path::to_owned),
            threads: threads::resolve(threads),
            run: RUN,
            tokens: Vec::new(),
            first: 0,
            lengths: Vec::new(),
            ids: Vec::new(),
            id_ends: vec![0],
            runs: Vec::new(),
        }
    }

    /// Spills runs of this many words, for tests.
    #[cfg(test)]
    pub(super) fn with_run(mut self, run: usize) -> Self {
        self.run = run;
        self
    }

    /// How many documents were added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Adds documents. `expand` is asked about pieces that no document had before.
    ///
    /// # Errors
    /// A run cannot be written, `expand` fails, or there are too many documents or words.
    pub fn add<T: AsRef<str> + Sync, I: AsRef<[u8]>>(
        &mut self,
        ids: impl Iterator<Item = I>,
        texts: &[T],
        alphabet: &Alphabet,
        expand: &mut Expand,
    ) -> Result<()> {
        if self.lengths.len().saturating_add(texts.len()) > NO_MORE {
            return Err(Error::Memory(
                "an index holds at most 4 billion documents".into(),
            ));
        }
        let parts: Vec<&[T]> = texts.chunks(CHUNK).collect();
        let splitter = self.splitter;
        let chunks = threads::map(parts.len(), self.threads, |number| {
            Chunk::split(parts[number], splitter, alphabet)
        });
        let mut numbers = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            numbers.push(self.vocabulary.add(&chunk.pieces)?);
        }
        self.vocabulary.expand(expand)?;
        let vocabulary = &self.vocabulary;
        let translated = threads::map(chunks.len(), self.threads, |number| {
            vocabulary.translate(&chunks[number], &numbers[number])
        });
        drop(chunks);
        for (tokens, lengths) in translated {
            if !self.tokens.is_empty() && self.tokens.len() + tokens.len() > self.run {
                self.spill()?;
            }
            self.tokens.extend_from_slice(&tokens);
            self.lengths.extend_from_slice(&lengths);
        }
        for id in ids.take(texts.len()) {
            self.ids.extend_from_slice(id.as_ref());
            self.id_ends.push(self.ids.len());
        }
        if self.id_ends.len() != self.lengths.len() + 1 {
            return Err(Error::Value("there are fewer ids than texts".into()));
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let path = folder.join(format!("run-{:05}", self.runs.len()));
        let parts = self.sort();
        let written = File::create_new(&path).and_then(|mut file| {
            self.runs.push(path.clone());
            parts.iter().try_for_each(|part| file.write_all(part))
        });
        written.map_err(|error| failed(&path, error))?;
        self.tokens.clear();
        self.first = self.lengths.len();
        Ok(())
    }

    fn sort(&self) -> Vec<Vec<u8>> {
        let words = self.vocabulary.words().len();
        let lengths = &self.lengths[self.first..];
        sort_run(
            &self.tokens,
            lengths,
            self.first as u32,
            words,
            self.threads,
        )
    }

    /// Writes the index, with `note` behind it. `proceed` gets how many of how many words are done, now and then; if it
    /// fails, so does this.
    ///
    /// # Errors
    /// A file cannot be written, or `proceed` failed.
    pub fn finish(
        mut self,
        output: Output,
        note: &[u8],
        proceed: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let last = self.sort().concat();
        self.tokens = Vec::new();
        match output {
            Output::Memory(bytes) => self.write(
                bytes,
                Path::new("the index in memory"),
                &last,
                note,
                proceed,
            ),
            Output::File(path) => {
                let mut file = File::create_new(path).map_err(|error| failed(path, error))?;
                self.write(&mut file, path, &last, note, proceed)?;
                file.sync_all().map_err(|error| failed(path, error))
            }
        }
    }

    fn write(
        mut self,
        target: &mut dyn Write,
        path: &Path,
        last: &[u8],
        note: &[u8],
        proceed: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let mut writer = Writer::new(target, path);
        let mut readers = Vec::with_capacity(self.runs.len() + 1);
        for run in &self.runs {
            let file = File::open(run).map_err(|error| failed(run, error))?;
            let buffered = Box::new(BufReader::with_capacity(1 << 18, file));
            readers.push(RunReader::new(buffered).map_err(|error| failed(run, error))?);
        }
        readers.push(RunReader::new(Box::new(last)).map_err(|error| failed(path, error))?);
        let (starts, dfs) = self.merge(&mut readers, &mut writer, proceed)?;
        drop(readers);
        writer.end_section();
        for run in std::mem::take(&mut self.runs) {
            let _ = std::fs::remove_file(run);
        }
        writer.write_u64s(starts.iter().copied())?;
        writer.end_section();
        writer.write_u32s(dfs.iter().copied())?;
        writer.end_section();
        let words = self.vocabulary.words();
        let mut sorted: Vec<u32> = (0..words.len() as u32).collect();
        sorted.sort_unstable_by_key(|word| words.get(*word as usize));
        let mut end = 0;
        writer.write(&u64::to_le_bytes(end))?;
        writer.write_u64s(sorted.iter().map(|word| {
            end += words.get(*word as usize).len() as u64;
            end
        }))?;
        writer.end_section();
        for word in &sorted {
            writer.write(words.get(*word as usize))?;
        }
        writer.end_section();
        writer.write_u32s(sorted.into_iter())?;
        writer.end_section();
        let total = self.lengths.iter().map(|length| u64::from(*length)).sum();
        writer.write_u32s(self.rank().into_iter())?;
        writer.end_section();
        writer.write_u64s(self.id_ends.iter().map(|end| *end as u64))?;
        writer.end_section();
        writer.write(&self.ids)?;
        writer.end_section();
        writer.write(note)?;
        writer.finish([self.lengths.len() as u64, dfs.len() as u64, total])
    }

    /// Writes the lists of all words: what the runs have of each, one after another. Returns where each starts, and how
    /// many documents have the word.
    fn merge(
        &self,
        readers: &mut [RunReader],
        writer: &mut Writer,
        proceed: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<(Vec<u64>, Vec<u32>)> {
        let words = self.vocabulary.words().len();
        let (mut starts, mut dfs) = (vec![0], Vec::with_capacity(words));
        let (mut docs, mut frequencies) = (Vec::new(), Vec::new());
        while dfs.len() < words {
            proceed(dfs.len(), words)?;
            docs.clear();
            frequencies.clear();
            let mut ends = vec![0];
            let first = dfs.len();
            while docs.len() < GROUP && dfs.len() < words {
                for reader in readers.iter_mut() {
                    if reader.next.is_some_and(|(word, _)| word == dfs.len()) {
                        reader
                            .take(&mut docs, &mut frequencies)
                            .map_err(|error| failed(Path::new("a temporary file"), error))?;
                    }
                }
                dfs.push((docs.len() - ends[ends.len() - 1]) as u32);
                ends.push(docs.len());
            }
            let count = dfs.len() - first;
            let size = count.div_ceil(4 * self.threads.get()).max(1);
            let parts =
                threads::try_map(count.div_ceil(size), self.threads, |part, (): &mut ()| {
                    let mut encoded = (Vec::new(), Vec::with_capacity(size));
                    for word in part * size..count.min((part + 1) * size) {
                        let range = ends[word]..ends[word + 1];
                        let before = encoded.0.len();
                        blocks::encode(
                            &docs[range.clone()],
                            &frequencies[range],
                            &self.lengths,
                            &mut encoded.0,
                        )?;
                        encoded.1.push((encoded.0.len() - before) as u64);
                    }
                    Ok::<_, Error>(encoded)
                })?;
            for (bytes, sizes) in parts {
                writer.write(&bytes)?;
                for size in sizes {
                    starts.push(starts[starts.len() - 1] + size);
                }
            }
        }
        Ok((starts, dfs))
    }

    /// The place of each document among all ids in descending order of their bytes.
    fn rank(&self) -> Vec<u32> {
        let id = |doc: u32| &self.ids[self.id_ends[doc as usize]..self.id_ends[doc as usize + 1]];
        let count = self.lengths.len() as u32;
        let shared = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let same = (1..count)
            .map(|doc| shared(id(0), id(doc)))
            .min()
            .unwrap_or(0);
        let key = |doc: u32| {
            let mut word = [0; 8];
            let rest = &id(doc)[same.min(id(doc).len())..];
            let size = rest.len().min(8);
            word[..size].copy_from_slice(&rest[..size]);
            u64::from_be_bytes(word)
        };
        let mut order: Vec<(u64, u32)> = (0..count).map(|doc| (key(doc), doc)).collect();
        order.sort_unstable_by(|(a, first), (b, second)| {
            b.cmp(a)
                .then_with(|| id(*second).cmp(id(*first)))
                .then(first.cmp(second))
        });
        let mut ranks = vec![0; order.len()];
        for (rank, (_, doc)) in (0..).zip(order) {
            ranks[doc as usize] = rank;
        }
        ranks
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        for run in &self.runs {
            let _ = std::fs::remove_file(run);
        }
    }
}

impl Chunk {
    fn split<T: AsRef<str>>(texts: &[T], splitter: Splitter, alphabet: &Alphabet) -> Self {
        let (mut chunk, mut scratch) = (Self::default(), Vec::new());
        for text in texts {
            let before = chunk.tokens.len();
            splitter.split(text.as_ref(), alphabet, &mut scratch, |piece| {
                chunk.tokens.push(chunk.pieces.add(piece).0);
            });
            chunk.counts.push((chunk.tokens.len() - before) as u32);
        }
        chunk
    }
}

impl Vocabulary {
    fn words(&self) -> &Interner {
        self.expansions
            .as_ref()
            .map_or(&self.pieces, |found| &found.words)
    }

    /// Takes in the pieces of a chunk. Returns their numbers.
    fn add(&mut self, pieces: &Interner) -> Result<Vec<u32>> {
        if self.pieces.len() + pieces.len() > NO_MORE {
            return Err(Error::Memory(
                "an index holds at most 4 billion words".into(),
            ));
        }
        Ok((0..pieces.len())
            .map(|number| self.pieces.add(pieces.get(number)).0)
            .collect())
    }

    /// Finds what new pieces stand for.
    fn expand(&mut self, expand: &mut Expand) -> Result<()> {
        let Some(expansions) = &mut self.expansions else {
            return Ok(());
        };
        let new = expansions.ends.len() - 1..self.pieces.len();
        let asked: Vec<&str> = new
            .clone()
            .map(|number| self.pieces.get(number))
            .filter(|piece| expansions.of_words || !piece.is_ascii())
            .map(|piece| std::str::from_utf8(piece).unwrap_or(""))
            .collect();
        let found = if asked.is_empty() {
            Vec::new()
        } else {
            expand(&asked)?
        };
        if found.len() != asked.len() {
            return Err(Error::Value("not every piece of text got its words".into()));
        }
        let mut found = found.into_iter();
        for number in new {
            let piece = self.pieces.get(number);
            if expansions.of_words || !piece.is_ascii() {
                for word in found.next().unwrap_or_default() {
                    expansions
                        .flat
                        .push(expansions.words.add(word.as_bytes()).0);
                }
            } else {
                expansions.flat.push(expansions.words.add(piece).0);
            }
            expansions.ends.push(expansions.flat.len());
        }
        Ok(())
    }

    /// The words of a chunk's documents, and how many each has.
    fn translate(&self, chunk: &Chunk, numbers: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut tokens = Vec::with_capacity(chunk.tokens.len());
        let mut lengths = Vec::with_capacity(chunk.counts.len());
        let mut rest = &chunk.tokens[..];
        for &count in &chunk.counts {
            let (now, later) = rest.split_at(count as usize);
            let before = tokens.len();
            let pieces = now.iter().map(|token| numbers[*token as usize]);
            match &self.expansions {
                None => tokens.extend(pieces.filter(|piece| *piece >= self.stop_words)),
                Some(found) => {
                    for piece in pieces {
                        let piece = piece as usize;
                        tokens.extend_from_slice(
                            &found.flat[found.ends[piece]..found.ends[piece + 1]],
                        );
                    }
                }
            }
            lengths.push((tokens.len() - before) as u32);
            rest = later;
        }
        (tokens, lengths)
    }
}
