//! What is wrong with a message that is no profile.

use fleetdiff_schemas::rejected::{Reason, Rejection};

pub(super) fn out_of_range(kind: &str, index: i64, length: usize) -> Rejection {
    Rejection::new(Reason::IndexOutOfRange, format!("{kind} {index} in a table of {length}"))
}

#[cold]
pub(super) fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, format!("not a pprof profile: {what}"))
}
