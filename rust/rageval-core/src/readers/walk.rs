//! Reading a text in blocks, and cutting it into parts between queries.

use super::line::{self, PADDING};
use super::source::Source;
use crate::error::Result;

/// How much is read at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Bytes that a thread reads at a time; it reads more if a query needs more.
    pub block: usize,
    /// Approximate size of a task in bytes.
    pub chunk: u64,
    /// Bytes to read at a time when looking for the border between two tasks.
    pub border: usize,
    /// About how many bytes a table of rows may take that groups the rows of queries.
    pub table: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        if cfg!(fuzzing) {
            // Small enough that every border case occurs in a small input.
            return Self {
                block: 24,
                chunk: 60,
                border: 8,
                table: 200,
            };
        }
        Self {
            block: 1 << 19,
            chunk: 2 << 20,
            border: 1 << 16,
            table: 1 << 29,
        }
    }
}

/// What is at the start of a line.
pub(super) enum Head {
    /// A blank line; where the next line starts.
    Blank(usize),
    /// A query id, as (start, end). It is empty if the line starts with a control character, which ends the id.
    Query(usize, usize),
}

/// The query id of the line at `at`.
#[inline]
pub(super) fn read_head(buffer: &[u8], mut at: usize) -> Head {
    match line::next_field(buffer, &mut at) {
        Some((start, end)) => Head::Query(start, end),
        None if buffer[at] == b'\n' => Head::Blank(at + 1),
        None => Head::Query(at, at),
    }
}

/// A part of a text, read block by block.
pub(super) struct Walk<'a> {
    source: &'a Source,
    buffer: Vec<u8>,
    /// How many bytes of the buffer are text; the rest are newlines.
    filled: usize,
    /// The offset in the file at which the buffer starts.
    base: u64,
    end: u64,
    block: usize,
    /// Whether the text in the buffer is ASCII.
    pub ascii: bool,
}

impl<'a> Walk<'a> {
    /// Reads `start..end`, each a line start or an end of the text, into a buffer from earlier use.
    pub fn new(
        source: &'a Source,
        (start, end): (u64, u64),
        block: usize,
        buffer: Vec<u8>,
    ) -> Result<Self> {
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        let mut walk = Self {
            source,
            buffer,
            filled: 0,
            base: start,
            end,
            block: block.min(length),
            ascii: true,
        };
        walk.refill(0)?;
        Ok(walk)
    }

    /// Keeps the buffer's text from `keep` on and reads more after it; reads larger blocks if little was consumed.
    pub fn refill(&mut self, keep: usize) -> Result<()> {
        let rest = self.filled - keep;
        self.buffer.copy_within(keep..self.filled, 0);
        self.base += keep as u64;
        let room = (self.buffer.len().saturating_sub(PADDING)).max(self.block);
        let room = if rest > room / 2 {
            room.saturating_mul(2)
        } else {
            room
        };
        self.source
            .grow(&mut self.buffer, room.saturating_add(PADDING))?;
        let left = self.end - self.base - rest as u64;
        let wanted = usize::try_from(left).map_or(room - rest, |left| left.min(room - rest));
        self.filled = rest + wanted;
        self.source
            .read_exact_at(&mut self.buffer[rest..self.filled], self.base + rest as u64)?;
        self.buffer[self.filled..self.filled + PADDING].fill(b'\n');
        self.ascii = self.buffer[..self.filled].is_ascii();
        Ok(())
    }

    /// The text, followed by at least [`PADDING`] newlines.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[..self.filled + PADDING]
    }

    /// The buffer, for the next walk.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The offset in the file of a place in the buffer.
    pub fn offset(&self, at: usize) -> u64 {
        self.base + at.min(self.filled) as u64
    }

    /// Whether the buffer reaches the end of the text.
    pub fn is_last(&self) -> bool {
        self.base + self.filled as u64 >= self.end
    }

    /// Where the last complete line ends.
    pub fn complete(&self) -> usize {
        if self.is_last() {
            return self.filled;
        }
        memchr::memrchr(b'\n', &self.buffer[..self.filled]).map_or(0, |n| n + 1)
    }

    /// Where the last query starts, whose rows can continue after the buffer. The end of the text if nothing follows.
    pub fn whole_queries(&self) -> usize {
        let mut end = self.complete();
        if self.is_last() {
            return end;
        }
        let (mut last, mut query) = (end, None);
        while end > 0 {
            let start = memchr::memrchr(b'\n', &self.buffer[..end - 1]).map_or(0, |n| n + 1);
            if let Head::Query(from, to) = read_head(&self.buffer, start) {
                let id = &self.buffer[from..to];
                if *query.get_or_insert(id) != id {
                    return last;
                }
                last = start;
            }
            end = start;
        }
        if query.is_some() { 0 } else { last }
    }
}

/// Cuts a text between queries into parts of about a chunk each.
pub(super) fn cut(source: &Source, sizes: Sizes) -> Result<Vec<(u64, u64)>> {
    let mut parts = Vec::new();
    let mut start = source.start;
    while start < source.end {
        let end = if source.end - start <= sizes.chunk + sizes.chunk / 2 {
            source.end
        } else {
            find_border(source, start + sizes.chunk, sizes.border)?
        };
        parts.push((start, end));
        start = end;
    }
    Ok(parts)
}

/// The first line start after `offset` whose query differs from that of the line before it.
fn find_border(source: &Source, offset: u64, block: usize) -> Result<u64> {
    let mut walk = Walk::new(source, (offset, source.end), block, Vec::new())?;
    let mut query: Option<Vec<u8>> = None;
    // The line that contains `offset` may have started before it.
    let mut at = loop {
        match memchr::memchr(b'\n', &walk.buffer[..walk.filled]) {
            Some(found) => break found + 1,
            None if walk.is_last() => return Ok(source.end),
            None => walk.refill(walk.filled)?,
        }
    };
    loop {
        let complete = walk.complete();
        while at < complete {
            if let Head::Query(from, to) = read_head(&walk.buffer, at) {
                let id = &walk.buffer[from..to];
                match &query {
                    None => query = Some(id.to_vec()),
                    Some(known) if known != id => return Ok(walk.offset(at)),
                    Some(_) => {}
                }
            }
            at += memchr::memchr(b'\n', &walk.buffer[at..]).map_or(0, |n| n) + 1;
        }
        if walk.is_last() {
            return Ok(source.end);
        }
        walk.refill(at)?;
        at = 0;
    }
}
