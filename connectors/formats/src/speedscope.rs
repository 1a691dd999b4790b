//! The JSON of speedscope, which py-spy, rbspy and others write: `sampled` and `evented` profiles over one table of frames.
//!
//! The profiles of a file are those of the threads of one process, so they are one profile here; one that is broken is
//! refused by itself. A function is its name and, where the file says it, its source file: `run (pool.py)`.
//!
//! Weights are samples only in some files (`counts`):
//!
//! | `unit` | sampled | evented |
//! |---|---|---|
//! | `none` | weights are counts, if they are whole | so are the lengths between events |
//! | a time | an entry is a sample, if all weights are one period, or if the labels' unit is `count` | refused |
//! | `bytes` | refused | refused |
//!
//! The format has no place for a period: entries of unlike length may each stand for one tick of an uneven clock or for
//! many that were added up, and the file does not say which. The format names no time either: the labels must.

mod counts;
mod observe;

use std::borrow::Cow;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::Deserialize;

use self::counts::Counting;
use super::collected::{Collected, Collector};
use super::json::{self, Lists};
use super::labels::{Contents, one_profile};
use super::{Decode, Labels, Options, Unit};

pub(super) use observe::observe;

/// Decodes speedscope files.
#[derive(Debug)]
pub struct Decoder(Collector);

impl Decoder {
    /// A decoder that reads at most [`Options::max_bytes`] a record.
    pub fn new(options: &Options) -> Self {
        Self(Collector::new(options))
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let mut broken = Vec::new();
        let whole = one_profile(labels, None, |_, unit| {
            let text = self.0.text(bytes)?;
            let file: File<'_> = json::read("speedscope file", &text)?;
            let collected = self.0.begin();
            contents(&file, unit, collected, &mut broken)
        });
        let Ok(labels) = labels else { return vec![whole] };
        // Nothing but broken profiles: each says why, and no more is to be said.
        let nothing_else = !broken.is_empty() && matches!(&whole, Err(fault) if fault.reason == Reason::Empty);
        let broken = broken.into_iter().map(|fault| Err(labels.rejection(fault.reason, fault.detail)));
        Some(whole).filter(|_| !nothing_else).into_iter().chain(broken).collect()
    }
}

/// The file.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    shared: Shared<'a>,
    #[serde(borrow)]
    profiles: Vec<Part<'a>>,
}

#[derive(Deserialize)]
struct Shared<'a> {
    #[serde(borrow)]
    frames: Vec<Frame<'a>>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    file: Option<String>,
}

/// One of its profiles, of either kind.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    unit: ValueUnit,
    /// Of a sampled one: frames, the root first.
    samples: Option<Lists<u32>>,
    weights: Option<Vec<f64>>,
    /// Of an evented one.
    events: Option<Vec<Event>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Sampled,
    Evented,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ValueUnit {
    None,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Bytes,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: EventKind,
    frame: u32,
    at: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// The stacks of all profiles that are whole, and why the others are not.
fn contents(
    file: &File<'_>,
    unit: Option<Unit>,
    mut collected: Collected<'_>,
    broken: &mut Vec<Rejection>,
) -> Result<Contents, Rejection> {
    let counting = Counting::of(&file.profiles, unit)?;
    let names = file.shared.frames.iter().map(|frame| collected.name(&frame.full_name()));
    let names = names.collect::<Result<Vec<u32>, _>>()?;
    for (part, number) in file.profiles.iter().zip(1u64..) {
        let before = collected.len();
        match part.collect(counting, &names, &mut collected) {
            Err(fault) if fault.reason == Reason::TooLarge => return Err(fault),
            Err(fault) => {
                collected.cut_back(before);
                broken
                    .push(Rejection { detail: format!("profile {number} {:?}: {}", part.name, fault.detail), ..fault });
            }
            Ok(()) => {}
        }
    }
    Ok(collected.finish())
}

impl Frame<'_> {
    /// The name with the source file, unless it holds that itself.
    fn full_name(&self) -> Cow<'_, str> {
        match self.file.as_deref() {
            None | Some("") => Cow::Borrowed(&self.name),
            Some(file) if self.name.contains(file) || self.name.is_empty() => Cow::Borrowed(&self.name),
            Some(file) => format!("{} ({file})", self.name).into(),
        }
    }
}

impl Part<'_> {
    fn collect(&self, counting: Counting, names: &[u32], collected: &mut Collected<'_>) -> Result<(), Rejection> {
        match (self.kind, &self.samples, &self.weights, &self.events) {
            (Kind::Sampled, Some(samples), Some(weights), _) => sampled(samples, weights, counting, names, collected),
            (Kind::Evented, _, _, Some(events)) => {
                counting.lengths().and_then(|()| evented(events, names, |frames, count| collected.push(frames, count)))
            }
            (Kind::Sampled, ..) => Err(malformed("a sampled profile without samples or weights")),
            (Kind::Evented, ..) => Err(malformed("an evented profile without events")),
        }
    }
}

fn sampled(
    samples: &Lists<u32>,
    weights: &[f64],
    counting: Counting,
    names: &[u32],
    collected: &mut Collected<'_>,
) -> Result<(), Rejection> {
    if samples.len() != weights.len() {
        return Err(malformed(&format!("{} samples with {} weights", samples.len(), weights.len())));
    }
    samples.iter().zip(weights).try_for_each(|(sample, weight)| {
        let frames = sample.iter().map(|frame| name_of(*frame, names)).collect::<Result<_, _>>()?;
        collected.push(frames, counting.samples(*weight)?)
    })
}

/// The lengths of time between events, as samples of the stack that was open meanwhile.
fn evented(
    events: &[Event],
    names: &[u32],
    mut push: impl FnMut(Vec<u32>, u64) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    let mut stack: Vec<u32> = Vec::new();
    let mut last = events.first().map_or(0.0, |event| event.at);
    for (event, number) in events.iter().zip(1u64..) {
        let length = event.at - last;
        if length < 0.0 {
            return Err(malformed(&format!("event {number} lies before the one before it")));
        }
        if !stack.is_empty() {
            push(stack.clone(), counts::whole(length)?)?;
        }
        last = event.at;
        let name = name_of(event.frame, names)?;
        match event.kind {
            EventKind::Open => stack.push(name),
            EventKind::Close if stack.pop() == Some(name) => {}
            EventKind::Close => return Err(malformed(&format!("event {number} closes what is not open"))),
        }
    }
    if stack.is_empty() { Ok(()) } else { Err(malformed(&format!("{} frames are never closed", stack.len()))) }
}

fn name_of(frame: u32, names: &[u32]) -> Result<u32, Rejection> {
    usize::try_from(frame)
        .ok()
        .and_then(|place| names.get(place))
        .copied()
        .ok_or_else(|| Rejection::new(Reason::IndexOutOfRange, format!("frame {frame} in a table of {}", names.len())))
}

fn malformed(detail: &str) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}
