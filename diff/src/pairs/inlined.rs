//! Functions that one side lacks because their callers contain them there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Inlined;
use super::around::{Around, Function, NONE};
use crate::sides::{Side, Sides};

/// The least part of what a function did that its callers must do on the other side.
const FOUND: f64 = 0.7;

/// What callers do more of on one side, by caller and what they call, as a share of all samples; less what was found to be another function's.
type Used = BTreeMap<(Arc<str>, Arc<str>), f64>;

/// Those that the other side has inlined, by the side that has them. `renamed` are not among them.
pub(super) fn found(
    around: &Sides<Around<'_>>,
    renamed: &BTreeMap<Arc<str>, Arc<str>>,
    least: u64,
) -> Sides<Vec<Inlined>> {
    let mut found: Sides<Vec<Inlined>> = Sides::default();
    let to_base: BTreeMap<&str, &str> = renamed.iter().map(|(base, head)| (&**head, &**base)).collect();
    let to_head: BTreeMap<&str, &str> = renamed.iter().map(|(base, head)| (&**base, &**head)).collect();
    for (side, here, there, names) in
        [(Side::Base, &around.base, &around.head, &to_head), (Side::Head, &around.head, &around.base, &to_base)]
    {
        let alone = here.alone(there, least);
        let gone: BTreeSet<&str> =
            alone.iter().map(|(name, _)| *name).filter(|name| !names.contains_key(name)).collect();
        let mut used = Used::new();
        for (name, function) in alone.iter().filter(|(name, _)| gone.contains(name)) {
            let Some((caller, _)) = function.callers.iter().max_by_key(|(_, samples)| **samples) else { continue };
            let is_head = matches!(side, Side::Head);
            if is_inlined(function, here, there, names, &mut used) {
                let into = if is_head { caller } else { names.get(caller).unwrap_or(caller) };
                found.of(side).push(Inlined { function: (*name).into(), into: (*into).into() });
            }
        }
    }
    found
}

/// Whether the callers do on the other side what the function does here. Then that much of what they do there is used.
fn is_inlined(
    function: &Function<'_>,
    here: &Around<'_>,
    there: &Around<'_>,
    names: &BTreeMap<&str, &str>,
    used: &mut Used,
) -> bool {
    let whole = here.share(function.total);
    if whole <= 0.0 || function.callers.contains_key(NONE) {
        return false;
    }
    let there_name = |name: &str| -> Arc<str> { names.get(name).copied().unwrap_or(name).into() };
    let mut takes = Vec::new();
    for (caller, samples) in &function.callers {
        for (callee, below) in &function.callees {
            // What a function calls is taken to be the same whoever calls it.
            let needed = here.share(*samples) * here.share(*below) / whole;
            let now = (there_name(caller), there_name(callee));
            let of = |around: &Around<'_>, caller: &str, callee: &str| {
                around.get(caller).and_then(|caller| caller.callees.get(callee)).map_or(0.0, |own| around.share(*own))
            };
            let more = of(there, &now.0, &now.1) - of(here, caller, callee) - used.get(&now).copied().unwrap_or(0.0);
            takes.push((now, needed.min(more.max(0.0))));
        }
    }
    let got: f64 = takes.iter().map(|(_, got)| got).sum();
    let is_inlined = got >= FOUND * whole;
    if is_inlined {
        for (now, got) in takes {
            *used.entry(now).or_default() += got;
        }
    }
    is_inlined
}
