//! Profiles to bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bytes::{put, put_bytes, put_len, put_signed};
use super::layout::{
    HAS_NODE, HAS_PROCESS_START, HAS_REQUESTS, HAS_STACKS, NO_VALUES, OWN_VALUES, SAME_VALUE, TEMPORALITIES, TYPES,
};
use super::tree::Paths;
use crate::identity::{Cohort, Identity, NodeId};
use crate::profile::{Folded, FoldedFunction, Profile, Requests, Samples, Stack};

/// Appends what follows magic and version.
pub(super) fn encode(profiles: &[Profile], out: &mut Vec<u8>) {
    let mut labels = Labels::default();
    let mut identities: Vec<&Identity> = profiles.iter().map(|profile| profile.identity.as_ref()).collect();
    identities.sort_unstable();
    identities.dedup();
    let mut table = Vec::new();
    for identity in &identities {
        put_identity(&mut table, identity, &mut labels);
    }
    let names = Names::of(profiles);
    let parts: Vec<Part<'_>> = profiles.iter().map(|profile| Part::of(profile, &names)).collect();
    let tree = Paths::of(parts.iter().flat_map(Part::paths).cloned().collect());
    let mut blocks = Vec::new();
    for part in &parts {
        let identity = identities.binary_search(&part.profile.identity.as_ref()).unwrap_or_default();
        put_bytes(&mut blocks, &block(part, identity, &tree, &mut labels));
    }
    labels.put(out);
    put_len(out, identities.len());
    out.append(&mut table);
    put_bytes(out, &names.section());
    tree.put(out);
    put_len(out, parts.len());
    out.append(&mut blocks);
}

/// A profile whose names are those of the record.
struct Part<'a> {
    profile: &'a Profile,
    form: Form<'a>,
}

enum Form<'a> {
    /// Samples and values by frames, of each cohort.
    Stacks(BTreeMap<Option<&'a Cohort>, BTreeMap<Vec<u32>, [u64; 2]>>),
    /// Counts by function.
    Folded(u128, Vec<(&'a Folded, Vec<FoldedFunction>)>),
}

impl<'a> Part<'a> {
    fn of(profile: &'a Profile, names: &Names<'_>) -> Self {
        let places = names.places(profile);
        let form = match &profile.samples {
            Samples::Stacks(stacks) => Form::Stacks(together(stacks, &places)),
            Samples::Folded { content, cohorts } => {
                Form::Folded(*content, cohorts.iter().map(|cohort| (cohort, renamed(cohort, &places))).collect())
            }
        };
        Self { profile, form }
    }

    fn paths(&self) -> impl Iterator<Item = &Vec<u32>> {
        let cohorts = match &self.form {
            Form::Stacks(cohorts) => Some(cohorts.values()),
            Form::Folded(..) => None,
        };
        cohorts.into_iter().flatten().flat_map(BTreeMap::keys)
    }
}

/// Equal stacks as one.
fn together<'a>(
    stacks: &'a [Stack],
    places: &[Option<u32>],
) -> BTreeMap<Option<&'a Cohort>, BTreeMap<Vec<u32>, [u64; 2]>> {
    let mut cohorts: BTreeMap<_, BTreeMap<Vec<u32>, [u64; 2]>> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.count > 0 || stack.value > 0) {
        let frames = stack.frames.iter().filter_map(|&frame| place_of(places, frame)).collect();
        let [count, value] = cohorts.entry(stack.cohort.as_ref()).or_default().entry(frames).or_default();
        *count = count.saturating_add(stack.count);
        *value = value.saturating_add(stack.value);
    }
    cohorts
}

fn place_of(places: &[Option<u32>], name: u32) -> Option<u32> {
    usize::try_from(name).ok().and_then(|name| places.get(name).copied().flatten())
}

/// The texts of identities and cohorts, in the order of first use.
#[derive(Default)]
struct Labels<'a> {
    index: BTreeMap<&'a str, usize>,
    list: Vec<&'a str>,
}

impl<'a> Labels<'a> {
    fn index_of(&mut self, text: &'a str) -> usize {
        *self.index.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() - 1
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_len(out, self.list.len());
        for text in &self.list {
            put_bytes(out, text.as_bytes());
        }
    }
}

/// The function names that at least one profile uses, ascending.
struct Names<'a>(Vec<&'a str>);

impl<'a> Names<'a> {
    fn of(profiles: &'a [Profile]) -> Self {
        let mut names = Vec::new();
        for profile in profiles {
            let used = used_names(profile);
            names.extend(profile.names.iter().zip(used).filter(|(_, used)| *used).map(|(name, _)| &**name));
        }
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    /// The place in this table of each name of a profile.
    fn places(&self, profile: &Profile) -> Vec<Option<u32>> {
        let place = |name: &Arc<str>| u32::try_from(self.0.binary_search(&&**name).ok()?).ok();
        profile.names.iter().map(place).collect()
    }

    fn section(&self) -> Vec<u8> {
        let mut section = Vec::new();
        put_len(&mut section, self.0.len());
        for name in &self.0 {
            put_len(&mut section, name.len());
        }
        for name in &self.0 {
            section.extend_from_slice(name.as_bytes());
        }
        section
    }
}

fn put_identity<'a>(out: &mut Vec<u8>, identity: &'a Identity, labels: &mut Labels<'a>) {
    let Identity { service, build, region, cohort, hardware, node, pod, process_start } = identity;
    let texts = [service.as_str(), build.as_str(), region.as_str(), cohort.as_str(), hardware.as_str(), pod.as_str()];
    for text in texts {
        put_len(out, labels.index_of(text));
    }
    let node_flag = if node.is_some() { HAS_NODE } else { 0 };
    let start_flag = if process_start.is_some() { HAS_PROCESS_START } else { 0 };
    out.push(node_flag | start_flag);
    if let Some(node) = node.as_ref().map(NodeId::as_str) {
        put_len(out, labels.index_of(node));
    }
    if let Some(start) = process_start {
        put_signed(out, start.0);
    }
}

/// Which of the names of a profile its samples use.
fn used_names(profile: &Profile) -> Vec<bool> {
    let mut used = vec![false; profile.names.len()];
    let mut mark = |name: u32| {
        if let Some(used) = usize::try_from(name).ok().and_then(|name| used.get_mut(name)) {
            *used = true;
        }
    };
    match &profile.samples {
        Samples::Stacks(stacks) => stacks.iter().flat_map(|stack| &stack.frames).for_each(|&frame| mark(frame)),
        Samples::Folded { cohorts, .. } => {
            cohorts.iter().flat_map(|part| &part.functions).for_each(|function| mark(function.name));
        }
    }
    used
}

fn block<'a>(part: &Part<'a>, identity: usize, tree: &Paths, labels: &mut Labels<'a>) -> Vec<u8> {
    let profile = part.profile;
    let mut out = Vec::new();
    put_len(&mut out, identity);
    out.push(TYPES.iter().find(|(kind, _)| *kind == profile.profile_type).map_or(u8::MAX, |(_, byte)| *byte));
    out.push(TEMPORALITIES.iter().find(|(kind, _)| *kind == profile.temporality).map_or(u8::MAX, |(_, byte)| *byte));
    put_window(&mut out, profile.window);
    let requests = if profile.requests.is_some() { HAS_REQUESTS } else { 0 };
    out.push(requests | if matches!(part.form, Form::Stacks(_)) { HAS_STACKS } else { 0 });
    if let Some(requests) = profile.requests {
        put_requests(&mut out, requests);
    }
    match &part.form {
        Form::Stacks(cohorts) => {
            put_len(&mut out, cohorts.len());
            for (cohort, stacks) in cohorts {
                put_len(&mut out, cohort.map_or(0, |cohort| labels.index_of(cohort.as_str()) + 1));
                put_stacks(&mut out, stacks, tree);
            }
        }
        Form::Folded(content, cohorts) => {
            out.extend_from_slice(&content.to_le_bytes());
            put_len(&mut out, cohorts.len());
            for (cohort, functions) in cohorts {
                put_len(&mut out, labels.index_of(cohort.cohort.as_str()));
                put(&mut out, cohort.samples);
                put_functions(&mut out, functions);
            }
        }
    }
    out
}

fn put_window(out: &mut Vec<u8>, window: crate::time::TimeRange) {
    put_signed(out, window.start.0);
    put(out, window.end.max(window.start).0.abs_diff(window.start.0));
}

fn put_requests(out: &mut Vec<u8>, requests: Requests) {
    put(out, requests.count);
    put_window(out, requests.window);
}

/// The columns of the stacks of a cohort, ascending by node.
fn put_stacks(out: &mut Vec<u8>, stacks: &BTreeMap<Vec<u32>, [u64; 2]>, tree: &Paths) {
    put_len(out, stacks.len());
    let mut expected = 0;
    // NB: nodes are numbered as paths ascend.
    for node in stacks.keys().filter_map(|path| tree.node(path)) {
        put_len(out, node - expected);
        expected = node + 1;
    }
    for [count, _] in stacks.values() {
        put(out, *count);
    }
    let each = stacks.values().next().map_or(0, |[count, value]| value.checked_div(*count).unwrap_or(0));
    if stacks.values().all(|[_, value]| *value == 0) {
        out.push(NO_VALUES);
    } else if stacks.values().all(|[count, value]| count.checked_mul(each) == Some(*value)) {
        out.push(SAME_VALUE);
        put(out, each);
    } else {
        out.push(OWN_VALUES);
        stacks.values().for_each(|[_, value]| put(out, *value));
    }
}

/// The functions of a cohort by their place in the record's table, ascending.
fn renamed(cohort: &Folded, places: &[Option<u32>]) -> Vec<FoldedFunction> {
    let place =
        |function: &FoldedFunction| place_of(places, function.name).map(|name| FoldedFunction { name, ..*function });
    let mut functions: Vec<_> = cohort.functions.iter().filter_map(place).collect();
    functions.sort_unstable();
    functions
}

fn put_functions(out: &mut Vec<u8>, functions: &[FoldedFunction]) {
    put_len(out, functions.len());
    let mut expected = 0u64;
    for function in functions {
        put(out, u64::from(function.name).saturating_sub(expected));
        expected = u64::from(function.name) + 1;
    }
    for function in functions {
        put(out, function.own);
    }
    for function in functions {
        put(out, function.total.saturating_sub(function.own));
    }
}
