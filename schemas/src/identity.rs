//! Whose profile it is, as types, so that a region cannot be passed where a cohort is expected.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// The stable 64-bit hash of fleetdiff: xxh3-64 with seed 0.
///
/// Every hash that names a bucket, a function or a cell is this one.
///
/// ```
/// assert_eq!(fleetdiff_schemas::identity::stable_hash(b""), 0x2d06_8005_38d3_94c2);
/// ```
pub fn stable_hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

macro_rules! name_types {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a name as it was reported.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

name_types! {
    /// What is deployed: the unit within which builds are compared.
    Service,
    /// One version of a service.
    Build,
    /// Where a pod runs.
    Region,
    /// A group of requests (or of pods) that is tested separately.
    Cohort,
    /// The kind of machine under a pod; half of a stratum.
    Hardware,
    /// The replicate.
    PodId,
    /// The machine under a pod. Pods on the same machine are not independent.
    NodeId,
}

/// A merged dimension, written `*`.
pub const MERGED: &str = "*";

/// One of the 64 groups into which the pods of a fleet are hashed; the unit of dispersion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bucket(pub u8);

impl Bucket {
    /// Number of buckets.
    pub const COUNT: usize = 64;

    /// The bucket of a pod: the stable hash of its node, if one is known, else of its own id, mod 64.
    ///
    /// ```
    /// use fleetdiff_schemas::identity::Bucket;
    /// assert_eq!(Bucket::of(None, &"pod-1".into()), Bucket::of(Some(&"pod-1".into()), &"other".into()));
    /// ```
    pub fn of(node: Option<&NodeId>, pod: &PodId) -> Self {
        let name = node.map_or(pod.as_str(), NodeId::as_str);
        let low = stable_hash(name.as_bytes()) & 63;
        Self(u8::try_from(low).unwrap_or(0))
    }
}

/// Everything about the sender of a profile that does not change from sample to sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// What is deployed.
    pub service: Service,
    /// Its version.
    pub build: Build,
    /// Where it runs.
    pub region: Region,
    /// The cohort of samples that do not name one themselves.
    pub cohort: Cohort,
    /// The kind of machine.
    pub hardware: Hardware,
    /// The machine, where it is known.
    pub node: Option<NodeId>,
    /// The replicate.
    pub pod: PodId,
    /// When the process began, if the sender says so.
    pub process_start: Option<crate::time::Nanos>,
}

impl Identity {
    /// The bucket of this pod.
    pub fn bucket(&self) -> Bucket {
        Bucket::of(self.node.as_ref(), &self.pod)
    }
}
