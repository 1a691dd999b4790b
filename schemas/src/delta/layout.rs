//! The limits of a record, and the bytes that encode profile types and temporalities.

use crate::profile::{ProfileType, Temporality};

/// Most texts in a table, and most cohorts in a record.
pub(super) const MAX_LABELS: usize = 1 << 20;
/// Most function names in a record.
pub(super) const MAX_NAMES: usize = 1 << 22;
/// Most profiles in a record, and most identities.
pub(super) const MAX_PROFILES: usize = 1 << 20;
/// Most functions and stacks over all blocks of a record: at least 24 bytes each in memory.
pub(super) const MAX_ENTRIES: usize = 1 << 24;
/// Most nodes of a call tree.
pub(super) const MAX_NODES: usize = 1 << 22;

pub(super) const HAS_NODE: u8 = 1;
pub(super) const HAS_PROCESS_START: u8 = 2;
pub(super) const HAS_REQUESTS: u8 = 1;
pub(super) const HAS_STACKS: u8 = 2;

/// Which values the stacks of a cohort have.
pub(super) const NO_VALUES: u8 = 0;
pub(super) const SAME_VALUE: u8 = 1;
pub(super) const OWN_VALUES: u8 = 2;

/// The bytes of profile types; never reused.
pub(super) const TYPES: [(ProfileType, u8); 7] = [
    (ProfileType::Cpu, 0),
    (ProfileType::OffCpu, 1),
    (ProfileType::Wall, 2),
    (ProfileType::Heap, 3),
    (ProfileType::Mutex, 4),
    (ProfileType::Block, 5),
    (ProfileType::LiveHeap, 6),
];

/// The bytes of temporalities; never reused.
pub(super) const TEMPORALITIES: [(Temporality, u8); 3] =
    [(Temporality::Delta, 0), (Temporality::Cumulative, 1), (Temporality::Gauge, 2)];
