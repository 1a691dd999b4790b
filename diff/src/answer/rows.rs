//! One finding for each function, in the order of pictures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::profile::CountKind;

use crate::compare::{Compared, Finding};

/// One finding a function: one that is significant or stands out before others, then self before total samples. Culprits
/// come first, each with its callers behind it, then all others in the order of findings.
///
/// The findings must be [explained](super::explain).
pub fn one_by_function(compared: &Compared) -> Vec<&Finding> {
    let rank = |finding: &Finding| (finding.is_shown_first(), finding.count_kind == CountKind::SelfCount);
    let mut best: BTreeMap<&Arc<str>, &Finding> = BTreeMap::new();
    for finding in compared.findings.iter().filter(|finding| finding.functions.is_none()) {
        let known = best.entry(&finding.function).or_insert(finding);
        if rank(finding) > rank(known) {
            *known = finding;
        }
    }
    let mut callers: BTreeMap<&str, Vec<&Arc<str>>> = BTreeMap::new();
    for finding in compared.findings.iter().filter(|finding| finding.is_shown_first()) {
        let cause = finding.cause.as_deref().filter(|cause| **cause != *finding.function);
        if let Some(cause) =
            cause.filter(|_| best.get(&finding.function).is_some_and(|row| std::ptr::eq(*row, finding)))
        {
            callers.entry(cause).or_default().push(&finding.function);
        }
    }
    let mut order: Vec<&Arc<str>> = Vec::new();
    let shown = compared.findings.iter().filter(|finding| finding.is_shown_first());
    for finding in shown.filter(|finding| finding.cause.is_none()) {
        order.push(&finding.function);
        order.extend(callers.get(&*finding.function).into_iter().flatten());
    }
    order.extend(compared.findings.iter().filter(|finding| finding.is_shown_first()).map(|finding| &finding.function));
    order.extend(compared.findings.iter().map(|finding| &finding.function));
    let mut seen = BTreeSet::new();
    let once = order.into_iter().filter(|name| seen.insert(Arc::clone(name)));
    once.filter_map(|name| best.get(name).copied()).collect()
}
