//! Formats of which no more is read than a decoder gives, stacks and counts, and, of OTLP, what stands beside them.

use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;

use super::chosen;
use super::query::Reading;
use super::run::{Run, Unread};
use crate::budget::Budget;
use crate::compression::decompress;
use crate::decode::Options;
use crate::format::Format;
use crate::labels::Labels;
use crate::names::Naming;
use crate::observed::{Divisor, Observed, at};
use crate::otlp::{self, PartDetails, StackDetails};
use crate::sink::{SampleDetails, SampleSink};

/// Reads what the decoder of a format gives.
pub(super) fn runs(
    reading: &Reading,
    format: Format,
    bytes: &[u8],
    labels: &Labels,
    options: &Options,
) -> Vec<Result<Run, Unread>> {
    let parts = match format {
        Format::Otlp => otlp::Decoder::new(options).profiles_with_details(bytes, reading.values, &labels.identity),
        _ => format
            .decoder(options)
            .decode(bytes, &Ok(labels.clone()))
            .into_iter()
            .map(|part| (part, PartDetails::default()))
            .collect(),
    };
    // A window that the transport names, or stands in for, is not the file's own.
    let sent = labels.sent_at.map(|at| TimeRange { start: at, end: at });
    let own =
        |profile: &Profile| Some(profile.window).filter(|window| labels.window.is_none() && Some(*window) != sent);
    // A record that cannot be unpacked has no part that is read.
    let length = decompress(bytes, options.max_bytes).map_or(0, |record| record.len());
    let budget = Budget::of(length, options.max_built_bytes);
    let read = |(part, details): (Result<Profile, Rejection>, PartDetails)| {
        let profile = part?;
        run(reading, own(&profile), profile, &details, options, &budget)
    };
    parts.into_iter().map(read).collect()
}

fn run(
    reading: &Reading,
    window: Option<TimeRange>,
    profile: Profile,
    details: &PartDetails,
    options: &Options,
    budget: &Budget,
) -> Result<Run, Unread> {
    let Samples::Stacks(stacks) = &profile.samples else {
        if reading.asks_for_nothing() {
            return Ok(Run { window, profile, weights: None, timed: false, period: None, lost: 0, slices: None });
        }
        return Err(Rejection::new(Reason::UnsupportedType, "it holds counts by function, expected stacks").into());
    };
    let mut naming = Naming::new(options);
    let mut observed = Observed::new(&mut naming, budget);
    observed.window = window;
    observed.unit = details.unit.as_deref().map(Into::into);
    observed.period = details.found.map(Divisor::Time);
    let frames = profile.names.iter().map(|name| observed.counted(name)).collect::<Result<Vec<u32>, _>>()?;
    let nothing = StackDetails::default();
    let timed = reading.wants_times();
    for (place, stack) in stacks.iter().enumerate() {
        budget.take(size_of::<u32>() * stack.frames.len())?;
        let mut stack = stack.clone();
        for frame in &mut stack.frames {
            *frame = at(&frames, *frame).copied().unwrap_or(*frame);
        }
        let details = details.stacks.get(place).unwrap_or(&nothing);
        if !timed || details.events.is_empty() {
            observed.sample(stack, SampleDetails { weight: details.weight, ..SampleDetails::default() })?;
            continue;
        }
        for event in &details.events {
            let about = SampleDetails { at: Some(event.at), weight: event.weight, ..SampleDetails::default() };
            budget.take(size_of::<u32>() * stack.frames.len())?;
            observed.sample(Stack { count: event.count, ..stack.clone() }, about)?;
        }
    }
    chosen::run(reading, observed, |contents, _| {
        let contents = contents.checked(profile.profile_type, profile.temporality)?;
        Ok(Profile { names: contents.names, samples: Samples::Stacks(contents.stacks), ..profile.clone() })
    })
}
