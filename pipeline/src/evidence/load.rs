//! Whether a change may be nothing but the effect of load: the pods of one arm serve more requests than those of the other.
//!
//! What a request costs may follow load: from a cost that does not depend on requests (per request it falls in proportion to load) to
//! one that grows in proportion. So where pods of one build serve r times the requests, a function's share may differ by up to r while
//! the code is the same. Within one window that cannot be distinguished from a change of the build; what is larger can.

use serde::{Deserialize, Serialize};

use super::arm_facts::{ArmFacts, Load};
use super::gap::differ;

/// How much more the pods of the head serve than those of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadGap {
    /// ln of the ratio of requests per pod and second; 0 where they do not differ or are not known.
    pub(super) ln_ratio: f64,
    /// Variance of that, from how pods differ.
    pub(super) variance: f64,
}

impl LoadGap {
    /// Of head and base.
    pub fn of(arms: &[ArmFacts<'_>; 2]) -> Self {
        let Some([head, base]) = different_loads(arms) else { return Self::default() };
        Self { ln_ratio: libm::log(head.mean / base.mean), variance: head.variance_of_ln() + base.variance_of_ln() }
    }
}

/// The loads of head and base, if both are known and one is more than 4/3 of the other.
pub(super) fn different_loads([head, base]: &[ArmFacts<'_>; 2]) -> Option<[Load; 2]> {
    let (head, base) = (head.load()?, base.load()?);
    differ(head.mean, base.mean).then_some([head, base])
}
