//! Sources of bytes: a file read at any offset, or memory (compressed files, pipes).

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use super::decompress::{HEAD, decompress, is_compressed};
use super::line::PADDING;
use crate::error::{Error, Result};

enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

/// A readable text, plain or decompressed.
pub(super) struct Source {
    bytes: Bytes,
    /// Its name in messages.
    pub path: PathBuf,
    /// Where the text starts: after a byte order mark, if there is one.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

impl Source {
    /// Opens a file: plain, gzip or Zstandard, recognised by its first bytes. Pipes work too.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error| io_error(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            let message = "is a folder, not a file".to_owned();
            return Err(malformed(path, 0, message));
        }
        if !metadata.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            return Self::from_memory(path, bytes);
        }
        let mut head = [0; HEAD];
        let n = read_at(&file, &mut head, 0).map_err(failed)?;
        if !is_compressed(&head[..n]) {
            return Self::text(path, Bytes::File(file), metadata.len());
        }
        // On some systems, reading at an offset moves the file's cursor.
        file.rewind().map_err(failed)?;
        Self::decompressed(path, file)
    }

    /// A text, plain or compressed, that is in memory.
    pub fn from_memory(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        if is_compressed(&bytes) {
            return Self::decompressed(path, bytes.as_slice());
        }
        let end = bytes.len() as u64;
        Self::text(path, Bytes::Memory(bytes), end)
    }

    fn decompressed(path: &Path, reader: impl Read) -> Result<Self> {
        let bytes = decompress(reader).map_err(|error| {
            let message =
                format!("cannot be decompressed ({error}); the file is damaged or truncated");
            malformed(path, 0, message)
        })?;
        let end = bytes.len() as u64;
        Self::text(path, Bytes::Memory(bytes), end)
    }

    fn text(path: &Path, bytes: Bytes, end: u64) -> Result<Self> {
        let mut source = Self {
            bytes,
            path: path.to_owned(),
            start: 0,
            end,
        };
        let mut mark = [0u8; 3];
        let n = source.read_at(&mut mark, 0)?;
        if n >= 2 && matches!(mark[..2], [0xFF, 0xFE] | [0xFE, 0xFF]) {
            let message = "is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)".to_owned();
            return Err(malformed(path, 1, message));
        }
        if mark[..n] == [0xEF, 0xBB, 0xBF] {
            source.start = 3;
        }
        Ok(source)
    }

    /// Fills `buffer` with the text from `offset` on, as far as it goes; returns how many bytes that is.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match &self.bytes {
            Bytes::Memory(bytes) => {
                let rest = usize::try_from(offset)
                    .ok()
                    .and_then(|offset| bytes.get(offset..))
                    .unwrap_or_default();
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            Bytes::File(file) => {
                read_at(file, buffer, offset).map_err(|error| io_error(&self.path, error))
            }
        }
    }

    /// Fills `buffer` with the text from `offset` on; all of it must be before [`Self::end`].
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buffer, offset)? == buffer.len() {
            return Ok(());
        }
        let message =
            "became shorter while it was being read; try again when it is no longer being written";
        Err(malformed(&self.path, 0, message.to_owned()))
    }

    /// The whole text followed by [`PADDING`], and its length without the padding.
    pub fn read_all(self) -> Result<(Vec<u8>, usize)> {
        let length = usize::try_from(self.end - self.start).unwrap_or(usize::MAX);
        if let Bytes::Memory(mut bytes) = self.bytes {
            bytes.drain(..self.start as usize);
            bytes.extend([b'\n'; PADDING]);
            return Ok((bytes, length));
        }
        let mut bytes = Vec::new();
        self.grow(&mut bytes, length.saturating_add(PADDING))?;
        self.read_exact_at(&mut bytes[..length], self.start)?;
        Ok((bytes, length))
    }

    /// Makes a buffer for this text at least `length` long, filled with newlines.
    pub fn grow(&self, buffer: &mut Vec<u8>, length: usize) -> Result<()> {
        let more = length.saturating_sub(buffer.len());
        buffer
            .try_reserve_exact(more)
            .map_err(|_| io_error(&self.path, io::ErrorKind::OutOfMemory.into()))?;
        buffer.resize(buffer.len() + more, b'\n');
        Ok(())
    }

    /// The number, from 1, of the line that contains `offset`.
    fn line_at(&self, offset: u64) -> Result<u64> {
        let mut block = vec![0; 1 << 16];
        let (mut at, mut line) = (self.start, 1);
        while at < offset {
            let wanted = usize::try_from(offset - at).map_or(block.len(), |n| n.min(block.len()));
            self.read_exact_at(&mut block[..wanted], at)?;
            line += memchr::memchr_iter(b'\n', &block[..wanted]).count() as u64;
            at += wanted as u64;
        }
        Ok(line)
    }

    /// An error at an offset.
    #[cold]
    pub fn error_at(&self, offset: u64, message: String) -> Error {
        match self.line_at(offset) {
            Ok(line) => malformed(&self.path, line, message),
            Err(error) => error,
        }
    }
}

pub(super) fn malformed(path: &Path, line: u64, message: String) -> Error {
    Error::Malformed {
        path: path.to_owned(),
        line,
        message,
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(unix)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
