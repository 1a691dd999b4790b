//! Profiles that a server of Grafana Pyroscope has stored: slice by slice of time, and in each pod by pod.

mod arguments;
mod asking;
mod faults;
mod patience;
mod slices;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleetdiff_connectors::pull::Pull;
use fleetdiff_connectors::pull::pyroscope::{PodLabels, Pyroscope, Query, StoredPod};
use fleetdiff_formats::Period;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use self::asking::{Answer, Asking};
use self::faults::{Server, nothing_pulled};
use self::patience::patiently;
use self::slices::{Due, Slices};
use super::place::Place;
use super::tally::Tally;
use super::warnings::Warnings;
use super::{PullArgs, duration, now, types, wait};
use crate::failure::Failure;
use crate::progress::spinner;

pub(crate) use arguments::PyroscopeArgs;

/// How a target is written that is a server.
const SCHEME: &str = "pyroscope:";
/// How long a slice is unless it is said.
const EVERY: Nanos = Nanos::from_seconds(60);
/// How far back is looked, before anything is asked for, whether there is something to follow.
const LOOK_BACK: Nanos = Nanos::from_seconds(3_600);
/// The largest answer, in bytes without compression: several are held at a time, read and put together.
const MOST: u64 = 64 << 20;

/// The URL of the server, if that is what the targets are.
pub(super) fn url(args: &PullArgs) -> Result<Option<&str>, Failure> {
    let Some(url) = args.targets.iter().find_map(|target| target.strip_prefix(SCHEME)) else {
        return match args.pyroscope.given() {
            Some(option) => {
                Err(Failure::usage(format!("{option} is of Pyroscope"), "give it with a target pyroscope:URL"))
            }
            None => Ok(None),
        };
    };
    if args.targets.len() > 1 || args.targets_file.is_some() {
        let hint = "give other targets to another command; it may write into the same folder or topic";
        return Err(Failure::usage("a server of Pyroscope is the only target of a command", hint));
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let hint = "write it as pyroscope:https://pyroscope.example:4040";
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default()).filter(|host| !host.is_empty());
    match host {
        None => Err(Failure::usage("a target pyroscope: needs a URL", hint)),
        Some(host) if host.contains('@') => {
            let hint = "give the user with --user, and the password with --password-file or --password-env";
            Err(Failure::usage("a URL must not hold a user or password", hint))
        }
        Some(_) => Ok(Some(url)),
    }
}

/// Records until it is time, and says how much came.
pub(super) fn run(args: &PullArgs, url: &str, stop: &Arc<AtomicBool>) -> Result<String, Failure> {
    let options = &args.pyroscope;
    let following = Following {
        server: Server { client: Pyroscope::new(url, options.credentials()?, MOST), url },
        query: options.query.clone().unwrap_or_else(Query::all),
        labels: options.labels(super::identity(args))?,
        types: types(args),
        stop,
        warnings: Warnings::default(),
    };
    let mut slices = slices(args)?;
    following.look(&slices)?;
    let mut place = Place::of(args)?;
    let mut tally = Tally::default();
    let began = slices.next;
    let ended = following.all(&mut slices, options.period, &mut place, &mut tally);
    let kept = if tally.profiles() > 0 { Some(place.finish(args)?) } else { None };
    ended?;
    match kept {
        Some(kept) => Ok(format!("{}; {kept}", tally.in_words())),
        None => Err(nothing_pulled(&tally, TimeRange { start: began, end: slices.next.max(began) }, args)),
    }
}

/// The slices that the command line names.
fn slices(args: &PullArgs) -> Result<Slices, Failure> {
    let every = args.every.unwrap_or(EVERY);
    // Slices of commands that follow one another then are the same.
    let present = Nanos(now().0.div_euclid(every.0) * every.0);
    let next = args.pyroscope.from.unwrap_or(present);
    let until = args.pyroscope.until.or_else(|| args.lasts.map(|lasts| next.plus(lasts)));
    if until.is_some_and(|until| until <= next) {
        return Err(Failure::usage("--until is not after --from", "give --from what is earlier"));
    }
    Ok(Slices { next, every, until, delay: args.pyroscope.delay })
}

/// What is followed.
struct Following<'a> {
    server: Server<'a>,
    query: Query,
    labels: PodLabels,
    types: Vec<Pull>,
    stop: &'a AtomicBool,
    warnings: Warnings,
}

impl Following<'_> {
    /// Sees that there is something to ask for, before anything is written.
    fn look(&self, slices: &Slices) -> Result<(), Failure> {
        let now = now();
        let end = slices.until.map_or(now, |until| until.min(now));
        // Of what is only to come, whether there was something before.
        let start = if slices.next < end { slices.next } else { end.since(LOOK_BACK) };
        let within = TimeRange { start, end };
        // NB: no second attempt, since at the start it is the command line that is wrong.
        let found = self.server.client.pods(&self.query, &self.labels, within);
        let (pods, unlabelled) = found.map_err(|fault| self.server.failure(&fault))?;
        if pods.is_empty() {
            if let Some(fault) = unlabelled.into_iter().next() {
                let hint =
                    format!("name one that does with --label {}=LABEL{}", fault.what, faults::or_option(fault.what));
                return Err(Failure::usage(fault, hint));
            }
            let services = self.server.client.services(within).map_err(|fault| self.server.failure(&fault))?;
            let (missing, instead) = (faults::no_series(&self.query, within), faults::instead(&services));
            if slices.until.is_some_and(|until| until <= now) {
                return Err(Failure::with_hint(missing, instead));
            }
            self.warnings.once(format!("{missing}: {instead}"));
        }
        for what in &self.types {
            if !pods.is_empty() && !pods.iter().any(|pod| pod.has(*what)) {
                self.warnings.once(faults::no_type(*what, &pods));
            }
        }
        Ok(())
    }

    /// Takes slice after slice, until it is time.
    fn all(
        &self,
        slices: &mut Slices,
        period: Option<Period>,
        place: &mut Place,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let Self { server, types, stop, warnings, .. } = self;
        let asking = Asking { server: &server.client, types, period, stop, warnings };
        let bar = spinner();
        while !stop.load(Ordering::Relaxed) {
            match slices.due(now()) {
                Due::Done => break,
                Due::Later(left) => {
                    wait(duration(left).min(Duration::from_secs(1)), || stop.load(Ordering::Relaxed));
                }
                Due::Slice(slice) => {
                    self.slice(&asking, slice, place, tally)?;
                    slices.taken(slice);
                    bar.set_message(format!("{}, to {}", tally.in_words(), rfc3339(slice.end)));
                }
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn slice(
        &self,
        asking: &Asking<'_>,
        slice: TimeRange,
        place: &mut Place,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let pods = self.pods(slice)?;
        asking.slice(&pods, slice, |answer| {
            match answer {
                Answer::Profile(profile) => {
                    tally.profile(&profile.labels.identity.pod);
                    place.put(profile)?;
                }
                Answer::Empty => {}
                Answer::Nothing { pod, what, why } => {
                    tally.failure();
                    self.warnings.once(format!("{pod} gave no {what} profile: {why}"));
                }
                Answer::Lost(fault) if self.stop.load(Ordering::Relaxed) => {
                    self.warnings.once(format!("the last slice is not whole: {fault}"));
                }
                Answer::Lost(fault) => return Err(self.server.lost(&fault, slice)),
            }
            Ok(())
        })
    }

    fn pods(&self, slice: TimeRange) -> Result<Vec<StoredPod>, Failure> {
        let ask = || self.server.client.pods(&self.query, &self.labels, slice);
        match patiently(self.stop, &self.warnings, ask) {
            Ok((pods, unlabelled)) => {
                unlabelled.into_iter().for_each(|fault| self.warnings.once(format!("left out: {fault}")));
                Ok(pods)
            }
            Err(_) if self.stop.load(Ordering::Relaxed) => Ok(Vec::new()),
            Err(fault) => Err(self.server.lost(&fault, slice)),
        }
    }
}
