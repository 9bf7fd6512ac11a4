//! Gzip and Zstandard files, read whole. Several members or frames in a row are one text.

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// How many bytes of a file show how it is compressed.
pub(super) const HEAD: usize = 4;

const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTANDARD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// A frame without text, which parallel and seekable writers insert. The lower half of its first byte is arbitrary.
const SKIPPABLE: [u8; 3] = [0x2A, 0x4D, 0x18];

enum Format {
    Gzip,
    Zstandard,
}

fn format_of(head: &[u8]) -> Option<Format> {
    if head.starts_with(&GZIP) {
        return Some(Format::Gzip);
    }
    let skippable = head.first().is_some_and(|first| first & 0xF0 == 0x50)
        && head.get(1..HEAD) == Some(&SKIPPABLE[..]);
    (head.starts_with(&ZSTANDARD) || skippable).then_some(Format::Zstandard)
}

/// Whether a file that starts with these bytes is compressed.
pub(super) fn is_compressed(head: &[u8]) -> bool {
    format_of(head).is_some()
}

/// The text of a compressed file. Checksums are verified.
///
/// # Errors
/// Any error of reading; [`io::ErrorKind::InvalidData`] and similar for a damaged or truncated file.
pub(super) fn decompress(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(reader);
    let mut text = Vec::new();
    match format_of(reader.fill_buf()?) {
        Some(Format::Gzip) => {
            flate2::bufread::MultiGzDecoder::new(reader).read_to_end(&mut text)?;
        }
        Some(Format::Zstandard) => {
            while !reader.fill_buf()?.is_empty() {
                read_frame(&mut reader, &mut text)?;
            }
        }
        None => return Err(io::ErrorKind::InvalidData.into()),
    }
    Ok(text)
}

fn read_frame(reader: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<()> {
    let mut frame = match StreamingDecoder::new(&mut *reader) {
        Ok(frame) => frame,
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
            length,
            ..
        })) => return skip(reader, u64::from(length)),
        Err(error) => return Err(io::Error::other(error)),
    };
    frame.read_to_end(text)?;
    let decoder = frame.into_frame_decoder();
    let stored = decoder.get_checksum_from_data();
    if stored.is_some() && stored != decoder.get_calculated_checksum() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its checksum does not match its content",
        ));
    }
    Ok(())
}

fn skip(reader: &mut impl Read, length: u64) -> io::Result<()> {
    if io::copy(&mut reader.take(length), &mut io::sink())? == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
