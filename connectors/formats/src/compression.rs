//! Compression, recognised by its bytes: gzip (of several members too), zstd (of several frames too), or none.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::rejected::{Reason, Rejection};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Gives the bytes as they were before compression, at most `max_bytes` of them. What begins with neither magic number
/// is taken as it is.
///
/// # Errors
/// `too_large` if there are more than `max_bytes`; `truncated` if a compressed stream ends early; `malformed` if it is
/// not what its magic number says or fails its checksum.
///
/// ```
/// use fleetdiff_formats::compression::{decompress, gzip};
/// assert_eq!(decompress(&gzip(b"main 1"), 100).unwrap(), &b"main 1"[..]);
/// ```
pub fn decompress(bytes: &[u8], max_bytes: usize) -> Result<Cow<'_, [u8]>, Rejection> {
    if bytes.starts_with(&GZIP) {
        read_all("gzip", MultiGzDecoder::new(bytes), inflated(bytes), max_bytes).map(Cow::Owned)
    } else if bytes.starts_with(&ZSTD) {
        let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| broken("zstd", &error))?;
        read_all("zstd", decoder, 0, max_bytes).map(Cow::Owned)
    } else if bytes.len() > max_bytes {
        Err(too_large(max_bytes))
    } else {
        Ok(Cow::Borrowed(bytes))
    }
}

/// The first bytes as they were before compression, at most `length` of them; fewer if the stream cannot be read.
pub(crate) fn prefix(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut first = Vec::new();
    let at_most = u64::try_from(length).unwrap_or(u64::MAX);
    let read = if bytes.starts_with(&GZIP) {
        MultiGzDecoder::new(bytes).take(at_most).read_to_end(&mut first)
    } else if bytes.starts_with(&ZSTD) {
        let stream = zstd::stream::read::Decoder::with_buffer(bytes);
        stream.and_then(|stream| stream.take(at_most).read_to_end(&mut first))
    } else {
        bytes.take(at_most).read_to_end(&mut first)
    };
    // NB: what was read before the stream broke is still a prefix; the decoder will say what is wrong.
    drop(read);
    first
}

/// Compresses with gzip; equal bytes give equal bytes (no time, no name in the header).
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
    // NB: writing to a `Vec` has no error to give.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// How many bytes there will probably be: what the end of a gzip stream says of its last member. Deflate makes no byte of more than
/// 1,032, so a claim of more is none.
fn inflated(bytes: &[u8]) -> usize {
    let claimed = bytes.last_chunk().map_or(0, |length| index_of(u32::from_le_bytes(*length)));
    if claimed <= bytes.len().saturating_mul(1_032) { claimed } else { 0 }
}

/// Reads a stream to its end; `expected` is about how long it is, 0 if nobody knows.
fn read_all(kind: &str, stream: impl Read, expected: usize, max_bytes: usize) -> Result<Vec<u8>, Rejection> {
    let mut whole = Vec::with_capacity(expected.min(max_bytes));
    let one_more = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    stream.take(one_more).read_to_end(&mut whole).map_err(|error| broken(kind, &error))?;
    if whole.len() > max_bytes { Err(too_large(max_bytes)) } else { Ok(whole) }
}

fn too_large(max_bytes: usize) -> Rejection {
    Rejection::new(Reason::TooLarge, format!("more than {max_bytes} bytes after decompression"))
}

fn broken(kind: &str, error: &io::Error) -> Rejection {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        Rejection::new(Reason::Truncated, format!("the {kind} stream ends before its end"))
    } else {
        Rejection::new(Reason::Malformed, format!("the {kind} stream cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"main;serve;read 17\nmain;serve;write 4\nmain;serve;write;encode 11\n";

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    #[test]
    fn each_kind_is_recognised_by_its_bytes() {
        for packed in [TEXT.to_vec(), gzip(TEXT), zstd(TEXT)] {
            assert_eq!(decompress(&packed, TEXT.len()).unwrap(), TEXT);
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        for pack in [gzip, zstd] {
            let packed = [pack(TEXT), pack(b""), pack(TEXT)].concat();
            assert_eq!(decompress(&packed, 1000).unwrap(), [TEXT, TEXT].concat());
        }
    }

    #[test]
    fn what_a_stream_claims_reserves_no_more_than_it_can_hold() {
        let packed = gzip(TEXT);
        assert_eq!(inflated(&packed), TEXT.len());
        let whole = decompress(&packed, 1000).unwrap().into_owned();
        assert_eq!(whole.capacity(), TEXT.len());
        let mut liar = packed;
        if let Some(length) = liar.last_chunk_mut() {
            *length = u32::MAX.to_le_bytes();
        }
        assert_eq!(inflated(&liar), 0);
        assert_eq!(decompress(&liar, usize::MAX).unwrap_err().reason, Reason::Malformed);
    }

    #[test]
    fn every_cut_is_truncated() {
        for pack in [gzip, zstd] {
            let packed = pack(TEXT);
            for end in 4..packed.len() {
                assert_eq!(decompress(&packed[..end], 1000).unwrap_err().reason, Reason::Truncated, "cut at {end}");
            }
        }
    }

    #[test]
    fn a_byte_over_the_limit_is_too_large() {
        for packed in [TEXT.to_vec(), gzip(TEXT), zstd(TEXT)] {
            assert_eq!(decompress(&packed, TEXT.len() - 1).unwrap_err().reason, Reason::TooLarge);
        }
    }

    #[test]
    fn a_wrong_checksum_is_malformed() {
        let mut packed = gzip(TEXT);
        let checksum = packed.len() - 5;
        packed[checksum] ^= 1;
        assert_eq!(decompress(&packed, 1000).unwrap_err().reason, Reason::Malformed);
    }

    #[test]
    fn a_small_stream_that_unfolds_without_end_is_stopped() {
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(decompress(&bomb, 1 << 20).unwrap_err().reason, Reason::TooLarge);
    }
}
