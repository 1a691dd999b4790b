//! The file of a checkpoint: a line of JSON, the state in compressed pieces, each after its two lengths, and a hash of all that.

use std::hash::Hasher;
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZero;

use bytes::Bytes;
use twox_hash::XxHash3_64;
use zstd::bulk::{Compressor, Decompressor};

use super::{About, State};

/// Fast, and a third of the size.
const LEVEL: i32 = 1;
/// Bytes of the state that are a piece: as many as compress well, and few enough for several processors.
const PIECE: usize = 4 << 20;
const LENGTH_BYTES: usize = size_of::<u32>();
const HASH_BYTES: usize = 8;
/// More than the first line has, in bytes: a configuration of some kilobytes.
const LONGEST_ABOUT: u64 = 16 << 20;

/// Writes the whole file; gives back what it was written to.
pub(super) fn write<W: Write>(to: W, about: &About, state: State<'_>) -> std::io::Result<W> {
    let mut hashed = Hashed { to, hash: XxHash3_64::new() };
    hashed.write_all(&serde_json::to_vec(about)?)?;
    hashed.write_all(b"\n")?;
    let mut pieces = Pieces { to: hashed, piece: Vec::with_capacity(PIECE), compressor: Compressor::new(LEVEL)? };
    state(&mut pieces)?;
    pieces.flush()?;
    let Hashed { mut to, hash } = pieces.to;
    to.write_all(&hash.finish().to_le_bytes())?;
    Ok(to)
}

/// What a file is, and its pieces, or what is wrong with it.
pub(super) fn opened(bytes: &Bytes) -> Result<(About, Bytes), String> {
    let (held, hash) = bytes.split_last_chunk::<HASH_BYTES>().ok_or_else(cut)?;
    if XxHash3_64::oneshot(held).to_le_bytes() != *hash {
        return Err("its bytes are not those that were written".to_owned());
    }
    let end = held.iter().position(|&byte| byte == b'\n').ok_or_else(cut)?;
    let (line, rest) = held.split_at(end);
    let about = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    Ok((about, bytes.slice_ref(rest.get(1..).unwrap_or_default())))
}

fn cut() -> String {
    "it ends too early".to_owned()
}

/// The state of which these are the pieces, decompressed by all processors, or what is wrong with them.
pub(super) fn state_of(mut pieces: &[u8]) -> Result<Vec<u8>, String> {
    let mut compressed = Vec::new();
    while !pieces.is_empty() {
        let (length, rest) = length(pieces)?;
        let (bytes, rest) = length_and(rest)?;
        if length > PIECE {
            return Err(format!("a piece of {length} bytes"));
        }
        compressed.push((length, bytes));
        pieces = rest;
    }
    let mut state = vec![0; compressed.iter().map(|(length, _)| length).sum()];
    let mut rest = state.as_mut_slice();
    let mut places = Vec::with_capacity(compressed.len());
    for (length, bytes) in compressed {
        let (place, after) = rest.split_at_mut(length);
        places.push((bytes, place));
        rest = after;
    }
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let of_each = places.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = places.chunks_mut(of_each).map(|some| scope.spawn(|| decompress(some))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread failed".to_owned())))
    })?;
    Ok(state)
}

fn length(bytes: &[u8]) -> Result<(usize, &[u8]), String> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
    Ok((usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX), rest))
}

/// As many bytes as are announced, and the rest.
fn length_and(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (length, rest) = length(bytes)?;
    rest.split_at_checked(length).ok_or_else(cut)
}

fn decompress(pieces: &mut [(&[u8], &mut [u8])]) -> Result<(), String> {
    let mut decompressor = Decompressor::new().map_err(|error| error.to_string())?;
    for (bytes, place) in pieces {
        let length = decompressor.decompress_to_buffer(bytes, *place).map_err(|error| error.to_string())?;
        if length != place.len() {
            return Err(cut());
        }
    }
    Ok(())
}

/// What a file says that it is; the rest is not read.
pub(super) fn about(file: impl Read) -> std::io::Result<About> {
    let mut line = String::new();
    BufReader::new(file).take(LONGEST_ABOUT).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Compresses what it writes, piece by piece; each is there once it is full, or by a flush.
struct Pieces<W> {
    to: W,
    piece: Vec<u8>,
    compressor: Compressor<'static>,
}

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let compressed = self.compressor.compress(&self.piece)?;
        for length in [self.piece.len(), compressed.len()] {
            self.to.write_all(&u32::try_from(length).map_err(std::io::Error::other)?.to_le_bytes())?;
        }
        self.piece.clear();
        self.to.write_all(&compressed)
    }
}

/// Hashes what it writes.
struct Hashed<W> {
    to: W,
    hash: XxHash3_64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.write(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
