//! Version 1 of the columnar delta.
//!
//! Numbers are LEB128 varints, those marked `+-` zigzag. A *text* is a length and UTF-8 bytes. After magic and version:
//!
//! | part | content |
//! |---|---|
//! | labels | number, then texts: everything that identities and cohorts are made of |
//! | identities | number, then each: service, build, region, cohort, hardware, pod (label indexes), a byte of flags (1: node, 2: process start), node (label index), process start (`+-` ns) |
//! | names | length in bytes of what follows; number, then all lengths, then all bytes: function names, strictly ascending |
//! | blocks | number, then each profile: its length in bytes, then its block |
//!
//! A block: identity (index), type (byte), temporality (byte), window start (`+-` ns), window length (ns), flags (byte,
//! 1: requests), requests (count, `+-` start, length), content hash (16 bytes, low first), number of cohorts; each
//! cohort, names strictly ascending: label index, samples, number of functions, then three columns: name index (the
//! first; then the distance from the one before, less 1), own, total less own.
//!
//! This layout cannot express unsorted or repeated names, repeated functions or `own > total`. The other conditions
//! (`sum(own) <= samples`, `total <= samples`, at least one sample) are checked on reading.

mod layout;
mod names;
mod read;
mod write;

pub use names::SeenNames;
pub use read::decode;
pub use write::encode;

/// The version's byte.
pub const VERSION: u8 = 1;
