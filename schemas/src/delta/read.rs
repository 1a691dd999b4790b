//! Bytes to profiles. Every number is checked before it is used, and memory is allocated only for as many entries as
//! the bytes can hold.

use std::sync::Arc;

use super::Take;
use super::bytes::{Reader, malformed, out_of_range, text};
use super::layout::{
    HAS_NODE, HAS_PROCESS_START, HAS_REQUESTS, HAS_STACKS, MAX_ENTRIES, MAX_LABELS, MAX_PROFILES, NO_VALUES,
    OWN_VALUES, SAME_VALUE, TEMPORALITIES, TYPES,
};
use super::names::SeenNames;
use super::tree::CallTree;
use crate::identity::{Build, Cohort, Hardware, Identity, NodeId, PodId, Region, Service};
use crate::profile::{
    Folded, FoldedFunction, MAX_SAMPLES, MAX_VALUE, Profile, ProfileType, Requests, Samples, Stack, Temporality,
};
use crate::rejected::{Reason, Rejection};
use crate::time::{Nanos, TimeRange};

/// What a label, an identity and a profile are counted as, or the reason why it is none.
const LABEL: usize = 48;
const IDENTITY: usize = 384;
const PART: usize = 384;

/// Reads what follows magic and version; see [`super::decode`].
///
/// # Errors
/// A fault outside the blocks refuses the whole record.
pub(super) fn decode(
    body: &[u8],
    has_tree: bool,
    seen: &mut SeenNames,
    take: &mut Take<'_>,
) -> Result<Vec<Result<Profile, Rejection>>, Rejection> {
    let mut reader = Reader::new(body);
    let labels = labels(&mut reader, take)?;
    let identities = identities(&mut reader, &labels, take)?;
    let names = seen.names(reader.bytes()?, take)?;
    let tree = if has_tree { Some(CallTree::read(&mut reader, names.len(), take)?) } else { None };
    let number = reader.entries(2, MAX_PROFILES)?;
    take(number * PART)?;
    let mut tables =
        Tables { labels, identities, names, tree, cohorts_left: MAX_LABELS, entries_left: MAX_ENTRIES, take };
    let mut parts = Vec::with_capacity(number);
    for _ in 0..number {
        parts.push(tables.part(reader.bytes()?));
    }
    if reader.left() > 0 {
        return Err(malformed("bytes after the last block"));
    }
    if parts.is_empty() {
        return Err(Rejection::new(Reason::Empty, "the record holds no profile"));
    }
    Ok(parts)
}

fn labels(reader: &mut Reader<'_>, take: &mut Take<'_>) -> Result<Vec<Arc<str>>, Rejection> {
    let number = reader.entries(1, MAX_LABELS)?;
    take(number * LABEL)?;
    let mut labels = Vec::with_capacity(number);
    for _ in 0..number {
        labels.push(text(reader.bytes()?)?.into());
    }
    Ok(labels)
}

/// One entry per identity; a bad one affects only the blocks that refer to it.
type Identities = Vec<Result<Arc<Identity>, Rejection>>;

fn identities(reader: &mut Reader<'_>, labels: &[Arc<str>], take: &mut Take<'_>) -> Result<Identities, Rejection> {
    let number = reader.entries(7, MAX_PROFILES)?;
    take(number * IDENTITY)?;
    let mut identities = Vec::with_capacity(number);
    for _ in 0..number {
        let mut own = [0; 6];
        for index in &mut own {
            *index = reader.number()?;
        }
        let flags = reader.byte()?;
        if flags & !(HAS_NODE | HAS_PROCESS_START) != 0 {
            return Err(malformed("unknown flags of an identity"));
        }
        let node = if flags & HAS_NODE == 0 { None } else { Some(reader.number()?) };
        let process_start = if flags & HAS_PROCESS_START == 0 { None } else { Some(Nanos(reader.signed()?)) };
        identities.push(identity(own, node, process_start, labels).map(Arc::new));
    }
    Ok(identities)
}

fn identity(
    own: [u64; 6],
    node: Option<u64>,
    process_start: Option<Nanos>,
    labels: &[Arc<str>],
) -> Result<Identity, Rejection> {
    let name = |index| match label(index, labels) {
        Ok(text) if text.is_empty() => {
            Err(Rejection::new(Reason::MissingIdentity, "columnar delta: an identity with an empty label"))
        }
        other => other,
    };
    let [service, build, region, cohort, hardware, pod] = own;
    Ok(Identity {
        service: Service::new(name(service)?),
        build: Build::new(name(build)?),
        region: Region::new(name(region)?),
        cohort: Cohort::new(name(cohort)?),
        hardware: Hardware::new(name(hardware)?),
        node: node.map(|node| name(node).map(NodeId::new)).transpose()?,
        pod: PodId::new(name(pod)?),
        process_start,
    })
}

fn label(index: u64, labels: &[Arc<str>]) -> Result<Arc<str>, Rejection> {
    let found = usize::try_from(index).ok().and_then(|index| labels.get(index));
    found.cloned().ok_or_else(|| out_of_range("label", index, labels.len()))
}

/// What blocks refer to, and how much they may still hold.
struct Tables<'t, 'c> {
    labels: Vec<Arc<str>>,
    identities: Identities,
    names: Arc<[Arc<str>]>,
    /// `None` in the version without stacks.
    tree: Option<CallTree>,
    cohorts_left: usize,
    entries_left: usize,
    take: &'t mut Take<'c>,
}

impl Tables<'_, '_> {
    fn part(&mut self, block: &[u8]) -> Result<Profile, Rejection> {
        let (mut kind, mut at) = (None, None);
        self.profile(block, &mut kind, &mut at).map_err(|fault| Rejection { profile_type: kind, at, ..fault })
    }

    /// Reads a block; type and event time are left in `kind` and `at` as soon as they are known.
    fn profile(
        &mut self,
        block: &[u8],
        kind: &mut Option<ProfileType>,
        at: &mut Option<Nanos>,
    ) -> Result<Profile, Rejection> {
        let mut reader = Reader::new(block);
        let identity = reader.number()?;
        let profile_type = by_byte(&TYPES, reader.byte()?, "profile type")?;
        *kind = Some(profile_type);
        let temporality = by_byte(&TEMPORALITIES, reader.byte()?, "temporality")?;
        let window = window(&mut reader)?;
        *at = Some(temporality.window(window).midpoint());
        let flags = reader.byte()?;
        let known = HAS_REQUESTS | if self.tree.is_some() { HAS_STACKS } else { 0 };
        if flags & !known != 0 {
            return Err(malformed(&format!("unknown flags {flags} of a block")));
        }
        let requests = if flags & HAS_REQUESTS == 0 { None } else { Some(requests(&mut reader)?) };
        let samples = if flags & HAS_STACKS == 0 {
            let content = u128::from_le_bytes(reader.array()?);
            Samples::Folded { content, cohorts: self.cohorts(&mut reader)? }
        } else {
            Samples::Stacks(self.stacks(&mut reader, temporality)?)
        };
        if reader.left() > 0 {
            return Err(malformed("bytes after the last cohort of a block"));
        }
        let identity = self.identity(identity)?;
        Ok(Profile { identity, profile_type, temporality, window, requests, names: Arc::clone(&self.names), samples })
    }

    fn identity(&self, index: u64) -> Result<Arc<Identity>, Rejection> {
        let found = usize::try_from(index).ok().and_then(|index| self.identities.get(index));
        found.cloned().unwrap_or_else(|| Err(out_of_range("identity", index, self.identities.len())))
    }

    fn cohorts(&mut self, reader: &mut Reader<'_>) -> Result<Vec<Folded>, Rejection> {
        let number = reader.entries(3, self.cohorts_left)?;
        self.cohorts_left -= number;
        (self.take)(number * size_of::<Folded>())?;
        let mut cohorts: Vec<Folded> = Vec::with_capacity(number);
        let mut whole = 0u64;
        for _ in 0..number {
            let cohort = Cohort::new(label(reader.number()?, &self.labels)?);
            if cohorts.last().is_some_and(|before| before.cohort >= cohort) {
                return Err(malformed("cohorts that do not ascend"));
            }
            let samples = reader.number()?;
            whole = whole.saturating_add(samples);
            if samples == 0 {
                return Err(malformed("a cohort without samples"));
            }
            at_most(whole, MAX_SAMPLES, "samples")?;
            cohorts.push(Folded { cohort, samples, functions: self.functions(reader, samples)? });
        }
        if cohorts.is_empty() { Err(without_samples()) } else { Ok(cohorts) }
    }

    /// The stacks of all cohorts. A snapshot without any tells that the process has no samples yet.
    fn stacks(&mut self, reader: &mut Reader<'_>, temporality: Temporality) -> Result<Vec<Stack>, Rejection> {
        let number = reader.entries(3, self.cohorts_left)?;
        self.cohorts_left -= number;
        let (mut stacks, mut before) = (Vec::new(), None);
        for _ in 0..number {
            let cohort = match reader.number()? {
                0 => None,
                index => Some(Cohort::new(label(index - 1, &self.labels)?)),
            };
            if before.is_some_and(|before| before >= cohort) {
                return Err(malformed("cohorts that do not ascend"));
            }
            self.stacks_of(reader, cohort.as_ref(), &mut stacks)?;
            before = Some(cohort);
        }
        if stacks.iter().any(|stack| stack.count == 0 && stack.value == 0) {
            return Err(malformed("a stack without samples"));
        }
        let sum = |of: fn(&Stack) -> u64| stacks.iter().fold(0u64, |sum, stack| sum.saturating_add(of(stack)));
        at_most(sum(|stack| stack.value), MAX_VALUE, "as values")?;
        match sum(|stack| stack.count) {
            0 if temporality == Temporality::Delta => Err(without_samples()),
            samples => at_most(samples, MAX_SAMPLES, "samples").map(|()| stacks),
        }
    }

    /// The columns of a cohort.
    fn stacks_of(
        &mut self,
        reader: &mut Reader<'_>,
        cohort: Option<&Cohort>,
        stacks: &mut Vec<Stack>,
    ) -> Result<(), Rejection> {
        let Some(tree) = &self.tree else { return Ok(()) };
        let number = reader.entries(2, self.entries_left)?;
        self.entries_left -= number;
        // NB: a list that grows makes room for up to as many again.
        (self.take)(number * 2 * size_of::<Stack>())?;
        stacks.reserve(number);
        let first = stacks.len();
        let mut expected = 0u64;
        reader.column(number, |distance| {
            let node = expected.saturating_add(distance);
            let frames = tree.frames(node, self.take)?;
            stacks.push(Stack { frames, count: 0, cohort: cohort.cloned(), value: 0 });
            expected = node + 1;
            Ok(())
        })?;
        let own = stacks.get_mut(first..).unwrap_or_default();
        let mut rows = own.iter_mut();
        reader.column(number, |count| {
            rows.next().into_iter().for_each(|stack| stack.count = count);
            Ok(())
        })?;
        match reader.byte()? {
            NO_VALUES => Ok(()),
            SAME_VALUE => {
                let each = reader.number()?;
                own.iter_mut().for_each(|stack| stack.value = stack.count.saturating_mul(each));
                Ok(())
            }
            OWN_VALUES => {
                let mut rows = own.iter_mut();
                reader.column(number, |value| {
                    rows.next().into_iter().for_each(|stack| stack.value = value);
                    Ok(())
                })
            }
            other => Err(malformed(&format!("unknown kind of values {other}"))),
        }
    }

    /// The three columns of a cohort.
    fn functions(&mut self, reader: &mut Reader<'_>, samples: u64) -> Result<Vec<FoldedFunction>, Rejection> {
        let number = reader.entries(3, self.entries_left)?;
        self.entries_left -= number;
        (self.take)(number * size_of::<FoldedFunction>())?;
        let mut functions = Vec::with_capacity(number);
        let mut expected = 0u64;
        reader.column(number, |distance| {
            let index = expected.saturating_add(distance);
            functions.push(FoldedFunction { name: self.name(index)?, own: 0, total: 0 });
            expected = index + 1;
            Ok(())
        })?;
        let mut whole = 0u64;
        let mut rows = functions.iter_mut();
        reader.column(number, |own| {
            whole = whole.saturating_add(own);
            if let Some(function) = rows.next() {
                function.own = own;
            }
            Ok(())
        })?;
        let mut rows = functions.iter_mut();
        reader.column(number, |callers| {
            let Some(function) = rows.next() else { return Ok(()) };
            function.total = function.own.saturating_add(callers);
            if function.total == 0 || function.total > samples {
                return Err(malformed("a function with no samples, or with more than its cohort has"));
            }
            Ok(())
        })?;
        if whole > samples {
            Err(malformed("functions with more samples than their cohort has"))
        } else {
            Ok(functions)
        }
    }

    fn name(&self, index: u64) -> Result<u32, Rejection> {
        let known = |name: &u32| usize::try_from(*name).is_ok_and(|name| name < self.names.len());
        let name = u32::try_from(index).ok().filter(known);
        name.ok_or_else(|| out_of_range("function", index, self.names.len()))
    }
}

#[cold]
fn without_samples() -> Rejection {
    Rejection::new(Reason::Empty, "the profile holds no sample")
}

fn at_most(sum: u64, limit: u64, of: &str) -> Result<(), Rejection> {
    if sum <= limit { Ok(()) } else { Err(Rejection::new(Reason::TooLarge, format!("{sum} {of}, at most {limit}"))) }
}

fn by_byte<T: Copy>(table: &[(T, u8)], byte: u8, what: &str) -> Result<T, Rejection> {
    let found = table.iter().find(|(_, known)| *known == byte);
    found.map(|(value, _)| *value).ok_or_else(|| malformed(&format!("unknown {what} {byte}")))
}

fn window(reader: &mut Reader<'_>) -> Result<TimeRange, Rejection> {
    let start = reader.signed()?;
    let end =
        start.checked_add_unsigned(reader.number()?).ok_or_else(|| malformed("a window beyond the end of time"))?;
    Ok(TimeRange { start: Nanos(start), end: Nanos(end) })
}

fn requests(reader: &mut Reader<'_>) -> Result<Requests, Rejection> {
    Ok(Requests { count: reader.number()?, window: window(reader)? })
}
