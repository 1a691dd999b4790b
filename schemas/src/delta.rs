//! The columnar delta: profiles of many pods in one self-contained record, counts by function in columns.
//!
//! A record is the magic bytes `FLDD`, one byte of version, then what that version defines. Each version is a module.
//! [`current`] is the version that is written; all versions remain readable.
//!
//! ```
//! # use fleetdiff_schemas::{delta, identity::Identity, profile::*, time::*};
//! # use std::sync::Arc;
//! # let identity = Arc::new(Identity { service: "shop".into(), build: "2".into(), region: "eu".into(), cohort: "web".into(),
//! #     hardware: "m7g".into(), node: None, pod: "pod-1".into(), process_start: None });
//! let profile = Profile {
//!     identity,
//!     profile_type: ProfileType::Cpu,
//!     temporality: Temporality::Delta,
//!     window: TimeRange { start: Nanos::from_seconds(10), end: Nanos::from_seconds(20) },
//!     requests: None,
//!     names: Arc::new(["main".into(), "work".into()]),
//!     samples: Samples::Stacks(vec![Stack { frames: vec![0, 1], count: 7, cohort: None, value: 0 }]),
//! };
//! let record = delta::encode(&[profile]);
//! let read = delta::decode(&record).unwrap();
//! assert_eq!(read[0].as_ref().unwrap().total(), 7);
//! ```

mod bytes;
pub mod v1;

pub use v1 as current;
pub use v1::SeenNames;

use crate::profile::Profile;
use crate::rejected::{Reason, Rejection};

/// The first bytes of every record.
pub(crate) const MAGIC: [u8; 4] = *b"FLDD";

/// Writes profiles as one record of the [`current`] version. Stacks are folded to counts by function and their content
/// hash is kept. Equal profiles give equal bytes.
///
/// Assumes profiles as decoders give them; an entry whose name index lies beyond the names is left out.
pub fn encode(profiles: &[Profile]) -> Vec<u8> {
    let mut record = MAGIC.to_vec();
    record.push(current::VERSION);
    current::encode(profiles, &mut record);
    record
}

/// Reads a record of any version. A bad profile does not affect the others. All profiles share one table of names.
///
/// # Errors
/// The whole record is refused as `malformed` if it is not a columnar delta, `unsupported_version`, `truncated`,
/// `empty` without profiles, `too_large` beyond the limits of its version, or for what is wrong with its tables.
pub fn decode(record: &[u8]) -> Result<Vec<Result<Profile, Rejection>>, Rejection> {
    decode_after(record, &mut SeenNames::default(), &mut |_| Ok(()))
}

/// Asked for so many bytes before they are taken; refuses them with a rejection.
pub type Take<'t> = dyn FnMut(usize) -> Result<(), Rejection> + 't;

/// Reads a record like [`decode`], sharing tables of names with the records that `seen` has seen before. What is built of it is
/// asked for first.
///
/// # Errors
/// Those of [`decode`] and of `take`.
pub fn decode_after(
    record: &[u8],
    seen: &mut SeenNames,
    take: &mut Take<'_>,
) -> Result<Vec<Result<Profile, Rejection>>, Rejection> {
    let (magic, rest) = record.split_at(record.len().min(MAGIC.len()));
    if !MAGIC.starts_with(magic) {
        return Err(Rejection::new(Reason::Malformed, "not a columnar delta: it does not begin with FLDD"));
    }
    match rest.split_first() {
        None => Err(Rejection::new(Reason::Truncated, "the record ends before its version")),
        Some((&v1::VERSION, body)) => v1::decode(body, seen, take),
        Some((&version, _)) => {
            let detail =
                format!("version {version} of the columnar delta, this program reads 1 to {}", current::VERSION);
            Err(Rejection::new(Reason::UnsupportedVersion, detail))
        }
    }
}
