//! Leaving out what no sample refers to any more: locations, functions, strings.

use std::collections::{HashMap, HashSet};

use crate::formats::pprof::proto::Profile;

/// Drops locations, functions and strings that nothing refers to. Ids stay, strings are numbered anew in their old order.
/// Mappings stay, since the first of them names the program.
pub(super) fn prune(profile: &mut Profile) {
    let locations: HashSet<u64> = profile.sample.iter().flat_map(|sample| sample.location_id.iter().copied()).collect();
    profile.location.retain(|location| locations.contains(&location.id));
    let functions: HashSet<u64> = profile.location.iter().flat_map(|location| location.line.iter().map(|line| line.function_id)).collect();
    profile.function.retain(|function| functions.contains(&function.id));
    let mut used = HashSet::new();
    each_string(profile, |index| {
        used.insert(*index);
    });
    let strings = std::mem::take(&mut profile.string_table);
    let mut numbers = HashMap::new();
    for (text, index) in strings.into_iter().zip(0i64..) {
        if index == 0 || used.contains(&index) {
            // NB: a table in memory has fewer than 2^63 entries.
            numbers.insert(index, i64::try_from(profile.string_table.len()).unwrap_or(i64::MAX));
            profile.string_table.push(text);
        }
    }
    each_string(profile, |index| *index = numbers.get(index).copied().unwrap_or(0));
}

/// Calls `change` with every index of a string.
fn each_string(profile: &mut Profile, mut change: impl FnMut(&mut i64)) {
    for column in profile.sample_type.iter_mut().chain(&mut profile.period_type) {
        [&mut column.r#type, &mut column.unit].into_iter().for_each(&mut change);
    }
    for label in profile.sample.iter_mut().flat_map(|sample| &mut sample.label) {
        [&mut label.key, &mut label.str, &mut label.num_unit].into_iter().for_each(&mut change);
    }
    for mapping in &mut profile.mapping {
        [&mut mapping.filename, &mut mapping.build_id].into_iter().for_each(&mut change);
    }
    for function in &mut profile.function {
        [&mut function.name, &mut function.system_name, &mut function.filename].into_iter().for_each(&mut change);
    }
    let single = [&mut profile.drop_frames, &mut profile.keep_frames, &mut profile.default_sample_type];
    single.into_iter().chain(&mut profile.comment).for_each(change);
}
