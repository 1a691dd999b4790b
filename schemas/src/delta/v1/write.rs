//! Profiles to bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::bytes::{put, put_bytes, put_len, put_signed};
use super::layout::{HAS_NODE, HAS_PROCESS_START, HAS_REQUESTS, TEMPORALITIES, TYPES};
use crate::fold::fold_stacks;
use crate::identity::{Identity, NodeId};
use crate::profile::{Folded, FoldedFunction, Profile, Requests, Samples, content_hash};

/// Appends what follows magic and version.
pub fn encode(profiles: &[Profile], out: &mut Vec<u8>) {
    let parts: Vec<Part<'_>> = profiles.iter().map(Part::of).collect();
    let mut labels = Labels::default();
    let mut identities: Vec<&Identity> = parts.iter().map(|part| part.profile.identity.as_ref()).collect();
    identities.sort_unstable();
    identities.dedup();
    let mut table = Vec::new();
    for identity in &identities {
        put_identity(&mut table, identity, &mut labels);
    }
    let names = Names::of(&parts);
    let mut blocks = Vec::new();
    for part in &parts {
        let identity = identities.binary_search(&part.profile.identity.as_ref()).unwrap_or_default();
        put_bytes(&mut blocks, &block(part, identity, &names, &mut labels));
    }
    labels.put(out);
    put_len(out, identities.len());
    out.append(&mut table);
    put_bytes(out, &names.section());
    put_len(out, parts.len());
    out.append(&mut blocks);
}

/// A profile in folded form.
struct Part<'a> {
    profile: &'a Profile,
    content: u128,
    cohorts: Cow<'a, [Folded]>,
}

impl<'a> Part<'a> {
    fn of(profile: &'a Profile) -> Self {
        let (content, cohorts) = match &profile.samples {
            Samples::Folded { content, cohorts } => (*content, Cow::Borrowed(cohorts.as_slice())),
            Samples::Stacks(stacks) => {
                let folded = fold_stacks(&profile.names, stacks, &profile.identity.cohort);
                (content_hash(&profile.names, stacks), Cow::Owned(folded))
            }
        };
        Self { profile, content, cohorts }
    }

    fn name(&self, index: u32) -> Option<&'a Arc<str>> {
        usize::try_from(index).ok().and_then(|index| self.profile.names.get(index))
    }
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

/// The function names that at least one block uses, ascending.
struct Names<'a>(Vec<&'a str>);

impl<'a> Names<'a> {
    fn of(parts: &[Part<'a>]) -> Self {
        let mut names = Vec::new();
        for part in parts {
            let functions = part.cohorts.iter().flat_map(|cohort| &cohort.functions);
            names.extend(functions.filter_map(|function| part.name(function.name)).map(|name| &**name));
        }
        names.sort_unstable();
        names.dedup();
        Self(names)
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

fn block<'a>(part: &'a Part<'_>, identity: usize, names: &Names<'_>, labels: &mut Labels<'a>) -> Vec<u8> {
    let profile = part.profile;
    let mut out = Vec::new();
    put_len(&mut out, identity);
    out.push(TYPES.iter().find(|(kind, _)| *kind == profile.profile_type).map_or(u8::MAX, |(_, byte)| *byte));
    out.push(TEMPORALITIES.iter().find(|(kind, _)| *kind == profile.temporality).map_or(u8::MAX, |(_, byte)| *byte));
    put_window(&mut out, profile.window);
    put_requests(&mut out, profile.requests);
    out.extend_from_slice(&part.content.to_le_bytes());
    put_len(&mut out, part.cohorts.len());
    for cohort in part.cohorts.iter() {
        put_len(&mut out, labels.index_of(cohort.cohort.as_str()));
        put(&mut out, cohort.samples);
        put_columns(&mut out, &renamed(part, cohort, names));
    }
    out
}

fn put_window(out: &mut Vec<u8>, window: crate::time::TimeRange) {
    put_signed(out, window.start.0);
    put(out, window.end.max(window.start).0.abs_diff(window.start.0));
}

fn put_requests(out: &mut Vec<u8>, requests: Option<Requests>) {
    out.push(if requests.is_some() { HAS_REQUESTS } else { 0 });
    if let Some(requests) = requests {
        put(out, requests.count);
        put_window(out, requests.window);
    }
}

/// The functions of a cohort by their place in the record's table, ascending.
fn renamed(part: &Part<'_>, cohort: &Folded, names: &Names<'_>) -> Vec<FoldedFunction> {
    let place = |function: &FoldedFunction| {
        let place = names.0.binary_search(&&**part.name(function.name)?).ok()?;
        u32::try_from(place).ok().map(|name| FoldedFunction { name, ..*function })
    };
    let mut functions: Vec<_> = cohort.functions.iter().filter_map(place).collect();
    functions.sort_unstable();
    functions
}

fn put_columns(out: &mut Vec<u8>, functions: &[FoldedFunction]) {
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
