//! What every decoder is given and gives: [`Decode`], and the [`Options`] that hold for all of them.

use std::sync::Arc;

use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::Rejection;

use crate::identity::IdentityMapping;
use crate::labels::Labels;
use crate::names::{NameRules, Rewrites};
use crate::perf_data::Symbols;

/// Turns the bytes of one record into profiles.
pub trait Decode: Send {
    /// Gives the parts of one record, each a profile or the reason why it is none; at least one part.
    ///
    /// `labels` is what the transport knows, or why it does not know whose the record is. A format whose records
    /// carry their own identities ignores it. The bytes may be compressed.
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>>;
}

/// What holds for every format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Largest record after decompression in bytes. Default 256 MiB (a guess, far above the largest recorded profile).
    pub max_bytes: usize,
    /// Most bytes that are built from one record in memory; of a record of less than a quarter of that, 4 times its bytes,
    /// but at least 128 MiB. Default 512 MiB (a guess: twice the largest record).
    pub max_built_bytes: usize,
    /// The label of a sample that names its cohort. Default `cohort`.
    pub cohort_label: Arc<str>,
    /// Which rules take off function names what changes though the function does not. Default all.
    pub name_rules: NameRules,
    /// Rewrites of function names, after the rules. Default none.
    pub rewrites: Rewrites,
    /// Which attributes say whose a profile is, for formats that carry attributes and no identity.
    pub identity: IdentityMapping,
    /// What profiles of contention are if nothing says whether they are of holding a lock (mutex) or of waiting (block).
    /// Default mutex (a guess: who holds a lock can be changed).
    pub contention: ProfileType,
    /// Where functions are looked up, for formats that know addresses alone. Default nowhere: who decodes what others send opens no files
    /// that they name.
    pub symbols: Symbols,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            max_built_bytes: 512 << 20,
            cohort_label: "cohort".into(),
            name_rules: NameRules::default(),
            rewrites: Rewrites::default(),
            identity: IdentityMapping::default(),
            contention: ProfileType::Mutex,
            symbols: Symbols::default(),
        }
    }
}
