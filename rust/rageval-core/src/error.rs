//! The one error type: what is wrong, and where.
//!
//! A variant is what a caller may want to tell apart; the rest is in the message, which names the place.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// Why a function of this crate stopped.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused: missing file, no permission, a folder, a failing disk.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file's content is wrong at a place.
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number from 1; 0 where the file as a whole is meant.
        line: u64,
        /// What is wrong and what was expected.
        message: String,
    },
    /// A row of a table, or an entry of a mapping, is wrong.
    Row {
        /// Which table: `qrels`, `run`, or which of several: `runs[1]`.
        table: Cow<'static, str>,
        /// Row number from 0.
        row: usize,
        /// What is wrong.
        message: String,
    },
    /// An unknown measure, a wrong parameter, a wrong option.
    Usage(String),
    /// Numbers with which a kernel cannot compute: shapes that do not fit, NaN, a setting out of range.
    Value(String),
    /// A result that does not fit into memory.
    Memory(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Malformed {
                path,
                line: 0,
                message,
            } => write!(f, "{}: {message}", path.display()),
            Self::Malformed {
                path,
                line,
                message,
            } => write!(f, "{}:{line}: {message}", path.display()),
            Self::Row {
                table,
                row,
                message,
            } => write!(f, "{table}, row {row}: {message}"),
            Self::Usage(message) | Self::Value(message) | Self::Memory(message) => {
                f.write_str(message)
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// How many bytes of foreign text an error message quotes.
const QUOTED: usize = 60;

/// Shows bytes of foreign origin in a message: lossily decoded, escaped, cut at 60 bytes.
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(QUOTED)];
    let ellipsis = if cut.len() < bytes.len() { "..." } else { "" };
    format!(
        "'{}{ellipsis}'",
        String::from_utf8_lossy(cut).escape_debug()
    )
}
