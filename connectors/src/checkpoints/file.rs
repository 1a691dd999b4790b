//! The file of a checkpoint: a line of JSON, the compressed state, a hash.

use std::hash::Hasher;
use std::io::{BufRead, BufReader, Read, Write};

use twox_hash::XxHash3_64;

use super::{About, State};

/// Fast, and a third of the size.
const LEVEL: i32 = 1;
const HASH_BYTES: usize = 8;
/// More than the first line has, in bytes: a configuration of some kilobytes.
const LONGEST_ABOUT: u64 = 16 << 20;

/// Writes the whole file; gives back what it was written to.
pub(super) fn write<W: Write>(to: W, about: &About, state: State<'_>) -> std::io::Result<W> {
    let mut hashed = Hashed { to, hash: XxHash3_64::new() };
    hashed.write_all(&serde_json::to_vec(about)?)?;
    hashed.write_all(b"\n")?;
    let mut compressed = zstd::stream::Encoder::new(hashed, LEVEL)?;
    state(&mut compressed)?;
    let Hashed { mut to, hash } = compressed.finish()?;
    to.write_all(&hash.finish().to_le_bytes())?;
    Ok(to)
}

/// The parts of a file, or what is wrong with it.
pub(super) fn opened(bytes: &[u8]) -> Result<(About, Vec<u8>), String> {
    let cut = || "it ends too early".to_owned();
    let (held, hash) = bytes.split_last_chunk::<HASH_BYTES>().ok_or_else(cut)?;
    if XxHash3_64::oneshot(held).to_le_bytes() != *hash {
        return Err("its bytes are not those that were written".to_owned());
    }
    let end = held.iter().position(|&byte| byte == b'\n').ok_or_else(cut)?;
    let (line, rest) = held.split_at(end);
    let about = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let state = zstd::stream::decode_all(rest.get(1..).unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok((about, state))
}

/// What a file says that it is; the rest is not read.
pub(super) fn about(file: impl Read) -> std::io::Result<About> {
    let mut line = String::new();
    BufReader::new(file).take(LONGEST_ABOUT).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
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
