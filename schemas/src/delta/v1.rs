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
//! So names without order or twice, functions twice and `own > total` cannot be written down; what else must hold
//! (`sum(own) <= samples`, `total <= samples`, at least one sample) is checked on reading.

mod names;
mod read;
mod write;

pub use names::SeenNames;
pub use read::decode;
pub use write::encode;

use crate::profile::{ProfileType, Temporality};

/// The version's byte.
pub const VERSION: u8 = 1;

/// Most texts in a table, and most cohorts in a record.
const MAX_LABELS: usize = 1 << 20;
/// Most function names in a record.
const MAX_NAMES: usize = 1 << 22;
/// Most profiles in a record, and most identities.
const MAX_PROFILES: usize = 1 << 20;
/// Most functions over all blocks of a record: 24 bytes each in memory.
const MAX_FUNCTIONS: usize = 1 << 24;

const HAS_NODE: u8 = 1;
const HAS_PROCESS_START: u8 = 2;
const HAS_REQUESTS: u8 = 1;

/// The bytes of profile types; never reused.
const TYPES: [(ProfileType, u8); 7] = [
    (ProfileType::Cpu, 0),
    (ProfileType::OffCpu, 1),
    (ProfileType::Wall, 2),
    (ProfileType::Heap, 3),
    (ProfileType::Mutex, 4),
    (ProfileType::Block, 5),
    (ProfileType::LiveHeap, 6),
];

/// The bytes of temporalities; never reused.
const TEMPORALITIES: [(Temporality, u8); 3] =
    [(Temporality::Delta, 0), (Temporality::Cumulative, 1), (Temporality::Gauge, 2)];
