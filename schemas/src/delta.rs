//! The columnar delta: profiles of many pods in one self-contained record, their stacks as one call tree, in columns.
//!
//! Numbers are LEB128 varints, those marked `+-` zigzag. A *text* is a length and UTF-8 bytes. A record is the magic bytes `FLDD`,
//! one byte of version, then:
//!
//! | part | content |
//! |---|---|
//! | labels | number, then texts: everything that identities and cohorts are made of |
//! | identities | number, then each: service, build, region, cohort, hardware, pod (label indexes), a byte of flags (1: node, 2: process start), node (label index), process start (`+-` ns) |
//! | names | length in bytes of what follows; number, then all lengths, then all bytes: function names, strictly ascending |
//! | call tree | number of nodes, then two columns: how many levels up from the node before its parent is (0: it is a child of that node), and name index. Nodes are numbered from 1 in this order; 0 is the root, which has no name. The children of a node ascend by name |
//! | blocks | number, then each profile: its length in bytes, then its block |
//!
//! A block: identity (index), type (byte), temporality (byte), window start (`+-` ns), window length (ns), flags (byte, 1: requests,
//! 2: stacks), requests (count, `+-` start, length), then either form of the samples.
//! - Stacks: number of cohorts; each, strictly ascending: 0 if the samples name none, else label index + 1; number of stacks, then
//!   two columns: node of the call tree (the first; then the distance from the one before, less 1) and samples; then a byte that says
//!   which values they have (0: none, 1: the same for each sample, which follows, 2: a column follows).
//! - Counts by function, of a profile that came without stacks: content hash (16 bytes, low first), number of cohorts; each, strictly
//!   ascending: label index, samples, number of functions, then three columns: name index (the first; then the distance from the
//!   one before, less 1), own, total less own.
//!
//! This layout cannot express unsorted or repeated names, repeated stacks of a node, repeated functions or `own > total`. The other
//! conditions (children that ascend, `sum(own) <= samples`, `total <= samples`, at least one sample) are checked on reading.
//!
//! Version 1 has no call tree and no stacks. Version 2 is written; both are read.
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
mod layout;
mod names;
mod read;
mod tree;
mod write;

pub use self::names::SeenNames;

use crate::profile::Profile;
use crate::rejected::{Reason, Rejection};

/// The first bytes of every record.
pub(crate) const MAGIC: [u8; 4] = *b"FLDD";

/// The first version, which has no stacks.
const WITHOUT_STACKS: u8 = 1;

/// The version that is written.
pub const VERSION: u8 = 2;

/// Writes profiles as one record. Equal profiles give equal bytes, whatever the order of their stacks and however equal stacks are
/// split.
///
/// Assumes profiles as decoders give them; a frame or entry whose name index lies beyond the names is left out.
pub fn encode(profiles: &[Profile]) -> Vec<u8> {
    let mut record = MAGIC.to_vec();
    record.push(VERSION);
    write::encode(profiles, &mut record);
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
        Some((&version @ (WITHOUT_STACKS | VERSION), body)) => read::decode(body, version >= VERSION, seen, take),
        Some((&version, _)) => {
            let detail = format!("version {version} of the columnar delta, this program reads 1 to {VERSION}");
            Err(Rejection::new(Reason::UnsupportedVersion, detail))
        }
    }
}
