//! Formats of which no more is read than a decoder gives, stacks and counts, and, of OTLP, what stands beside them.

use fleetdiff_schemas::profile::{Profile, Samples, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;

use super::{About, Observed, Reading, Run, Unread};
use crate::names::Naming;
use crate::otlp::{self, Beside, BesideStacks};
use crate::{Format, Labels, Options};

impl Reading {
    /// Reads what the decoder of a format gives.
    pub(super) fn plain_runs(
        &self,
        format: Format,
        bytes: &[u8],
        labels: &Labels,
        options: &Options,
    ) -> Vec<Result<Run, Unread>> {
        let parts = match format {
            Format::Otlp => otlp::Decoder::new(options).profiles_with_beside(bytes),
            _ => format
                .decoder(options)
                .decode(bytes, &Ok(labels.clone()))
                .into_iter()
                .map(|part| (part, BesideStacks::default()))
                .collect(),
        };
        // A window that the transport names, or stands in for, is not the file's own.
        let sent = labels.sent_at.map(|at| TimeRange { start: at, end: at });
        let own =
            |profile: &Profile| Some(profile.window).filter(|window| labels.window.is_none() && Some(*window) != sent);
        let run = |(part, beside): (Result<Profile, Rejection>, BesideStacks)| {
            let profile = part?;
            self.plain_run(own(&profile), profile, &beside, options)
        };
        parts.into_iter().map(run).collect()
    }

    fn plain_run(
        &self,
        window: Option<TimeRange>,
        profile: Profile,
        beside: &BesideStacks,
        options: &Options,
    ) -> Result<Run, Unread> {
        let Samples::Stacks(stacks) = &profile.samples else {
            if self.asks_for_nothing() {
                return Ok(Run { window, profile, weights: None, timed: false, period: None });
            }
            return Err(Rejection::new(Reason::UnsupportedType, "it holds counts by function, expected stacks").into());
        };
        let mut naming = Naming::new(options);
        let mut observed = Observed::new(&mut naming, options);
        observed.window = window;
        observed.unit = beside.unit.as_deref().map(Into::into);
        let frames = profile.names.iter().map(|name| observed.counted(name)).collect::<Result<Vec<u32>, _>>()?;
        let nothing = Beside::default();
        let timed = self.times.is_some() || self.crop.is_some();
        for (place, stack) in stacks.iter().enumerate() {
            let mut stack = stack.clone();
            for frame in &mut stack.frames {
                *frame = super::at(&frames, *frame).copied().unwrap_or(*frame);
            }
            let beside = beside.stacks.get(place).unwrap_or(&nothing);
            if !timed || beside.events.is_empty() {
                observed.push(stack, About { weight: beside.weight, ..About::default() })?;
                continue;
            }
            for event in &beside.events {
                let about = About { at: Some(event.at), weight: event.weight, ..About::default() };
                observed.push(Stack { count: event.count, ..stack.clone() }, about)?;
            }
        }
        self.run(observed, |contents, _| {
            let contents = contents.checked(profile.temporality)?;
            Ok(Profile { names: contents.names, samples: Samples::Stacks(contents.stacks), ..profile.clone() })
        })
    }

    /// Whether it is the reading of decoders.
    fn asks_for_nothing(&self) -> bool {
        self.keys.is_none()
            && self.filters == super::Filters::default()
            && self.times.is_none()
            && self.crop.is_none()
            && !self.stream
    }
}
