//! The one error type: what is wrong, and where.
//!
//! Each variant is a case that a caller might handle differently. Everything else is in the message, including the
//! place.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// Why a function of this crate stopped.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused: a missing file, no permission, a folder, a failing disk.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file has invalid content.
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number from 1, or 0 if the message is about the whole file.
        line: u64,
        /// What is wrong and what was expected.
        message: String,
    },
    /// A row of a table or an entry of a mapping is invalid.
    Row {
        /// The table: `qrels`, `run`, or one of several, such as `runs[1]`.
        table: Cow<'static, str>,
        /// Row number from 0.
        row: usize,
        /// What is wrong.
        message: String,
    },
    /// An unknown measure, an invalid parameter or an invalid option.
    Usage(String),
    /// Numbers that a kernel cannot use: shapes that do not match, NaN, a setting out of range.
    Value(String),
    /// A result that does not fit in memory.
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

/// How many bytes of input an error message quotes.
const QUOTED: usize = 60;

/// Formats bytes from the input for a message: decoded lossily, escaped, cut at 60 bytes.
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(QUOTED)];
    let ellipsis = if cut.len() < bytes.len() { "..." } else { "" };
    format!(
        "'{}{ellipsis}'",
        String::from_utf8_lossy(cut).escape_debug()
    )
}
