//! All that a file says of its samples: the thread, the line of a function, and, where the unit is a time, how long an entry took
//! and when it began.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use serde::Deserialize;

use super::counts::Counting;
use super::{File, Kind, Part, ValueUnit, evented, malformed, name_of};
use crate::compression::decompress;
use crate::reading::{About, Observed, Said};
use crate::{Labels, Options, Unit, json};

/// What of a file only a comparison asks for; read apart, so that decoding stays what it is.
#[derive(Deserialize, Default)]
struct Beside {
    #[serde(default)]
    profiles: Vec<Begun>,
    #[serde(default)]
    shared: Lines,
}

#[derive(Deserialize, Default)]
struct Begun {
    #[serde(rename = "startValue", default)]
    start: f64,
}

#[derive(Deserialize, Default)]
struct Lines {
    #[serde(default)]
    frames: Vec<LineOf>,
}

#[derive(Deserialize, Default)]
struct LineOf {
    line: Option<u32>,
}

/// Gives what a file says. Profiles that are broken are passed over, unless none is whole.
pub(crate) fn observe(
    bytes: &[u8],
    labels: &Labels,
    options: &Options,
    observed: &mut Observed<'_>,
) -> Result<(), Rejection> {
    let text = decompress(bytes, options.max_bytes)?;
    let file: File<'_> = json::read("speedscope file", &text)?;
    let beside: Beside = json::read("speedscope file", &text).unwrap_or_default();
    let counting = Counting::of(&file.profiles, labels.unit)?;
    let mut names = Vec::with_capacity(file.shared.frames.len());
    for (place, frame) in file.shared.frames.iter().enumerate() {
        let number = beside.shared.frames.get(place).and_then(|frame| frame.line);
        let line = frame
            .file
            .as_deref()
            .filter(|file| !file.is_empty())
            .zip(number)
            .map(|(file, number)| format!("{file}:{number}"));
        let symbol = Some(&*frame.name).filter(|name| !name.is_empty());
        names.push(observed.frame(&frame.full_name(), Said { symbol, line: line.as_deref(), ..Said::default() })?);
    }
    let scale = file.profiles.first().and_then(|part| part.unit.nanoseconds());
    let mut broken = None;
    for (place, part) in file.profiles.iter().enumerate() {
        let before = observed.len();
        let start = beside.profiles.get(place).map_or(0.0, |begun| begun.start);
        match (Entries { counting, names: &names, scale, start }).take(part, observed) {
            Err(fault) if fault.reason == Reason::TooLarge => return Err(fault),
            Err(fault) => {
                observed.cut_back(before);
                broken.get_or_insert(fault);
            }
            Ok(()) => {}
        }
    }
    observed.unit = scale.map(|_| "time/nanoseconds".into());
    broken.filter(|_| observed.len() == 0).map_or(Ok(()), Err)
}

/// How the entries of a profile are read.
struct Entries<'n> {
    counting: Counting,
    names: &'n [u32],
    /// Nanoseconds in one of its unit, if that is a time.
    scale: Option<i64>,
    /// When it begins, in its unit.
    start: f64,
}

impl Entries<'_> {
    fn take(&self, part: &Part<'_>, observed: &mut Observed<'_>) -> Result<(), Rejection> {
        let comm = if part.name.is_empty() { None } else { Some(observed.text(&part.name)?) };
        let about = About { comm, ..About::default() };
        match (part.kind, &part.samples, &part.weights, &part.events) {
            (Kind::Sampled, Some(samples), Some(weights), _) => {
                if samples.len() != weights.len() {
                    return Err(malformed(&format!("{} samples with {} weights", samples.len(), weights.len())));
                }
                let mut at = self.start;
                for (sample, weight) in samples.iter().zip(weights) {
                    let frames = sample.iter().map(|frame| name_of(*frame, self.names)).collect::<Result<_, _>>()?;
                    let count = self.counting.samples(*weight)?;
                    let nanoseconds = |value: f64| self.scale.map(|scale| rounded(value, scale));
                    let weight_of = nanoseconds(*weight).and_then(|weight| u64::try_from(weight).ok());
                    observed.push(
                        Stack { frames, count, cohort: None },
                        About { at: nanoseconds(at), weight: weight_of, ..about },
                    )?;
                    at += weight;
                }
                Ok(())
            }
            (Kind::Evented, _, _, Some(events)) => {
                self.counting.lengths()?;
                evented(events, self.names, |frames, count| observed.push(Stack { frames, count, cohort: None }, about))
            }
            (Kind::Sampled, ..) => Err(malformed("a sampled profile without samples or weights")),
            (Kind::Evented, ..) => Err(malformed("an evented profile without events")),
        }
    }
}

impl ValueUnit {
    /// Nanoseconds in one of it, if it is a unit of time.
    fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Nanoseconds => Unit::Nanoseconds.nanoseconds(),
            Self::Microseconds => Unit::Microseconds.nanoseconds(),
            Self::Milliseconds => Unit::Milliseconds.nanoseconds(),
            Self::Seconds => Unit::Seconds.nanoseconds(),
            Self::None | Self::Bytes => None,
        }
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "to the nearest nanosecond, held at the ends"
)]
fn rounded(value: f64, scale: i64) -> i64 {
    libm::round(value * scale as f64) as i64
}
