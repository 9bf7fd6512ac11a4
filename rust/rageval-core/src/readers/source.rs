//! Where bytes come from: a file read at any offset, or memory (compressed files, pipes).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

/// A readable text, plain or decompressed.
pub(super) struct Source {
    bytes: Bytes,
    /// Its name for messages.
    pub path: PathBuf,
    /// Where the text starts: behind a byte order mark.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

impl Source {
    /// Opens a file: plain, gzip or Zstandard, told apart by their first bytes; pipes too.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(malformed(
                path,
                0,
                "is a folder; a file is expected".to_owned(),
            ));
        }
        if !metadata.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            return Self::from_memory(path, bytes);
        }
        let mut head = [0u8; 4];
        let n = read_at(&file, &mut head, 0).map_err(failed)?;
        if is_compressed(&head[..n]) {
            let bytes = decompress(file, &head[..n]).map_err(|error| {
                malformed(
                    path,
                    0,
                    format!("cannot be decompressed ({error}); the file is damaged or truncated"),
                )
            })?;
            return Self::text(path, Bytes::Memory(bytes));
        }
        Self::text(path, Bytes::File(file))
    }

    /// A text, plain or compressed, that is in memory.
    pub fn from_memory(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        if !is_compressed(&bytes) {
            return Self::text(path, Bytes::Memory(bytes));
        }
        let head: [u8; 4] = bytes
            .get(..4)
            .and_then(|head| head.try_into().ok())
            .unwrap_or_default();
        let plain = decompress(bytes.as_slice(), &head)
            .map_err(|error| malformed(path, 0, format!("cannot be decompressed: {error}")))?;
        Self::text(path, Bytes::Memory(plain))
    }

    fn text(path: &Path, bytes: Bytes) -> Result<Self> {
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let end = match &bytes {
            Bytes::File(file) => file.metadata().map_err(failed)?.len(),
            Bytes::Memory(bytes) => bytes.len() as u64,
        };
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

    /// Fills `buffer` from `offset` on, as far as there is text; returns how many bytes that is.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match &self.bytes {
            Bytes::Memory(bytes) => {
                let rest = bytes.get(offset as usize..).unwrap_or_default();
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            Bytes::File(file) => read_at(file, buffer, offset).map_err(|source| Error::Io {
                path: self.path.clone(),
                source,
            }),
        }
    }

    /// The whole text.
    pub fn read_all(self) -> Result<Vec<u8>> {
        if let Bytes::Memory(mut bytes) = self.bytes {
            bytes.drain(..self.start as usize);
            return Ok(bytes);
        }
        let mut bytes = vec![0; (self.end - self.start) as usize];
        let n = self.read_at(&mut bytes, self.start)?;
        bytes.truncate(n);
        Ok(bytes)
    }

    /// The number, from 1, of the line in which `offset` lies.
    pub fn line_at(&self, offset: u64) -> Result<u64> {
        let mut block = vec![0; 1 << 20];
        let (mut at, mut line) = (self.start, 1);
        while at < offset {
            let wanted = block.len().min((offset - at) as usize);
            let n = self.read_at(&mut block[..wanted], at)?;
            if n == 0 {
                break;
            }
            line += memchr::memchr_iter(b'\n', &block[..n]).count() as u64;
            at += n as u64;
        }
        Ok(line)
    }

    /// An error at an offset.
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

fn is_compressed(head: &[u8]) -> bool {
    head.starts_with(&[0x1F, 0x8B]) || head.starts_with(&[0x28, 0xB5, 0x2F, 0xFD])
}

fn decompress(reader: impl Read, head: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if head.starts_with(&[0x1F, 0x8B]) {
        flate2::read::MultiGzDecoder::new(io::BufReader::new(reader)).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let mut reader = io::BufReader::new(reader);
    while !io::BufRead::fill_buf(&mut reader)?.is_empty() {
        let mut frame =
            ruzstd::decoding::StreamingDecoder::new(&mut reader).map_err(io::Error::other)?;
        frame.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
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
