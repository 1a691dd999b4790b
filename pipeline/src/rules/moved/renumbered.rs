//! Closures whose numbers moved because another was added or removed above them.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::Numbered;

use super::{Function, Functions, Group, How, apart, sum};

/// The groups: of the functions of one family that have rows, if one of them is new or gone, and costs rose by about as much as they fell.
pub(super) fn found(functions: &Functions<'_>) -> Vec<Group> {
    let mut families: BTreeMap<String, Vec<Function<'_>>> = BTreeMap::new();
    for function in functions.0.values() {
        let numbered = function.widest().and_then(|part| Numbered::of(part.name));
        if let Some(Numbered { family, .. }) = numbered {
            families.entry(family).or_default().push(*function);
        }
    }
    families
        .into_values()
        .filter(|family| is_shifted(family))
        .flat_map(|family| Group::by_kind(How::Renumbered, &family))
        .collect()
}

fn is_shifted(family: &[Function<'_>]) -> bool {
    let moved = |rises: bool| {
        let rows = family.iter().filter_map(Function::widest);
        sum(rows.filter(|part| (part.change() > 0.0) == rises).map(|part| (1.0, part)))
    };
    let (more, less) = (moved(true), moved(false));
    let is_both = more.0 > 0.0 && less.0 < 0.0;
    family.iter().any(Function::is_alone) && is_both && apart([more, less]).is_some()
}
