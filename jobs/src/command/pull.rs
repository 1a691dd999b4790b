//! `pull`: records profiles of programs that serve them, or that a server has stored, into a folder or onto a topic.

mod place;
mod pods;
mod pyroscope;
mod tally;
mod warnings;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use fleetdiff_connectors::pull::{Pull, Puller, Target, Targets};
use fleetdiff_formats::{Labels, Options};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::time::{Nanos, TimeRange};

use self::place::Place;
use self::pods::{Pods, Schedule, Taken};
use self::pyroscope::PyroscopeArgs;
use self::warnings::Warnings;
use crate::configuration::{Flags, OfTopic, Setting};
use crate::failure::Failure;
use crate::progress::spinner;
use crate::publisher::PartitionArgs;
use crate::ranges::length;
use crate::signals::stop_on_signals;

/// Heading of the flags that say whose profiles they are.
const IDENTITY: &str = "Whose profiles they are, where a target does not say it";

/// How long a round lasts unless it is said.
const EVERY: Nanos = Nanos::from_seconds(10);

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff pull 10.0.0.7:6060 10.0.0.8:6060 --to fleet --service shop --build v41 --for 30m
  fleetdiff pull dns:shop-canary:6060 --to fleet --service shop --build v42 --for 30m
  fleetdiff pull --targets-file pods.json --to fleet --service shop --types cpu,heap --every 30s
  fleetdiff pull --targets-file pods.json --brokers kafka:9092 --topic profiles --service shop
  fleetdiff pull pyroscope:http://pyroscope:4040 --query '{service_name=\"shop\"}' --to fleet --from now-2h --until now";

/// Arguments of `pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Where profiles are served: HOST:PORT for /debug/pprof there, a URL, dns:NAME:PORT for every address of a name, or pyroscope:URL for a
    /// server of Grafana Pyroscope
    #[arg(value_name = "TARGET", required_unless_present = "targets_file")]
    pub(crate) targets: Vec<String>,
    /// More targets: a file of Prometheus's file_sd form (JSON), read again each round; labels service, build, region, cohort, hardware,
    /// node and pod say whose profiles they are
    #[arg(long, value_name = "FILE")]
    pub(crate) targets_file: Option<PathBuf>,
    /// Folder of the fleet: profiles with a manifest; a fleet that is there is continued
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    /// Configuration file.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "to",
        help = "Configuration file; only its section [kafka] is used"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Topic and how to reach it.
    #[command(flatten)]
    pub(crate) flags: Flags<OfTopic>,
    /// Which partition a record goes to.
    #[command(flatten)]
    pub(crate) onto: PartitionArgs,
    /// What is pulled: cpu, heap, mutex, block
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "cpu", value_parser = kind)]
    pub(crate) types: Vec<Pull>,
    /// How long a profile of the processor lasts, and how often others are taken [default: 10s; of Pyroscope 1m, for all types]
    #[arg(long, value_name = "DURATION", value_parser = every)]
    pub(crate) every: Option<Nanos>,
    /// How long to record, to a round [default: until SIGINT or SIGTERM]
    #[arg(long = "for", value_name = "DURATION", value_parser = some)]
    pub(crate) lasts: Option<Nanos>,
    /// What is deployed
    #[arg(long, help_heading = IDENTITY)]
    pub(crate) service: Option<String>,
    /// Its version
    #[arg(long, help_heading = IDENTITY)]
    pub(crate) build: Option<String>,
    /// Where the pods run
    #[arg(long, help_heading = IDENTITY, default_value = "unknown")]
    pub(crate) region: String,
    /// Cohort of the pods
    #[arg(long, help_heading = IDENTITY, default_value = "unknown")]
    pub(crate) cohort: String,
    /// Kind of machine of the pods
    #[arg(long, help_heading = IDENTITY, default_value = "unknown")]
    pub(crate) hardware: String,
    /// Profiles that are stored.
    #[command(flatten)]
    pub(crate) pyroscope: PyroscopeArgs,
}

/// Records until it is time, and prints how much came.
pub(crate) fn run(args: &PullArgs) -> Result<(), Failure> {
    let said = match pyroscope::url(args)? {
        Some(url) => pyroscope::run(args, url, &stop_on_signals()?)?,
        None => of_programs(args)?,
    };
    writeln!(std::io::stdout(), "{said}")?;
    Ok(())
}

/// Records programs that serve their profiles, and says how much came.
fn of_programs(args: &PullArgs) -> Result<String, Failure> {
    let stop = stop_on_signals()?;
    let every = args.every.unwrap_or(EVERY);
    if args.lasts.is_some_and(|lasts| lasts < every) {
        return Err(Failure::usage("--for is shorter than a round", "give --for at least as long as --every"));
    }
    let targets = targets(args);
    let mut place = Place::of(args)?;
    let every = duration(every);
    let schedule =
        Schedule { types: types(args), every, until: args.lasts.map(|lasts| Instant::now() + duration(lasts)) };
    let mut pods = Pods::new(Puller::new(most_bytes()), schedule, Arc::clone(&stop));
    let bar = spinner();
    let mut looked: Option<Instant> = None;
    let warnings = Warnings::default();
    loop {
        // Threads that have ended have given all they had before that.
        let is_last = stop.load(Ordering::Relaxed) || pods.are_done();
        if !is_last && looked.is_none_or(|looked| looked.elapsed() >= every) {
            let (found, faults) = targets.resolve();
            for fault in &faults {
                warnings.once(format!("{fault}: {}", root(fault)));
            }
            pods.follow(found, faults.is_empty()).map_err(|fault| {
                let hint = fault.hint();
                Failure::usage(fault, hint)
            })?;
            looked = Some(Instant::now());
        }
        for taken in pods.wait(Duration::from_millis(200)) {
            match taken {
                Taken::Profile(profile) => place.put(profile)?,
                Taken::Nothing { pod, what, why } => warnings.once(format!("{pod} gave no {what} profile: {why}")),
            }
        }
        bar.set_message(pods.tally().in_words());
        if is_last {
            break;
        }
    }
    bar.finish_and_clear();
    let said = pods.tally().in_words();
    if pods.tally().profiles() == 0 {
        let hint = "see that the programs serve /debug/pprof there: in Go, import _ \"net/http/pprof\" and listen";
        return Err(Failure::with_hint(format!("nothing was pulled: {said}"), hint));
    }
    Ok(format!("{said}; {}", place.finish(args)?))
}

fn root(fault: &dyn std::error::Error) -> String {
    fault.source().map(ToString::to_string).unwrap_or_default()
}

fn targets(args: &PullArgs) -> Targets {
    let listed = args.targets.iter().map(|text| Target::of(text));
    let targets = listed.chain(args.targets_file.clone().map(Target::File)).collect();
    Targets { targets, identity: identity(args) }
}

/// What is pulled, each once.
fn types(args: &PullArgs) -> Vec<Pull> {
    args.types.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}

/// What holds where nothing else says whose profiles they are.
fn identity(args: &PullArgs) -> Identity {
    Identity {
        service: args.service.as_deref().unwrap_or_default().into(),
        build: args.build.as_deref().unwrap_or_default().into(),
        region: args.region.as_str().into(),
        cohort: args.cohort.as_str().into(),
        hardware: args.hardware.as_str().into(),
        node: None,
        pod: "".into(),
        process_start: None,
    }
}

/// What is said of a profile of a pod, taken over so long.
fn labels(identity: &Identity, what: Pull, window: TimeRange) -> Labels {
    Labels {
        identity: Arc::new(identity.clone()),
        profile_type: what.profile_type(),
        temporality: what.temporality(),
        window: Some(window),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
        period: None,
        root_is_thread: false,
    }
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// Waits so long, or until it is to end.
fn wait(length: Duration, is_ended: impl Fn() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < length && !is_ended() {
        thread::sleep(length.saturating_sub(begun.elapsed()).min(Duration::from_millis(100)));
    }
}

/// No more than can be read again.
fn most_bytes() -> u64 {
    u64::try_from(Options::default().max_bytes).unwrap_or(u64::MAX)
}

fn duration(length: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(length.0).unwrap_or(0))
}

fn kind(text: &str) -> Result<Pull, String> {
    let found = Pull::ALL.into_iter().find(|pull| pull.profile_type().name() == text);
    found.ok_or_else(|| "expected cpu, heap, mutex or block".to_owned())
}

/// Some time, and not none.
fn some(text: &str) -> Result<Nanos, String> {
    length(text).ok().filter(|length| length.0 > 0).ok_or_else(|| format!("expected {}", Nanos::EXPECTED))
}

/// Go takes whole seconds.
fn every(text: &str) -> Result<Nanos, String> {
    let is_within = |length: &Nanos| length.0 % 1_000_000_000 == 0 && length.0 <= 3_600_000_000_000;
    some(text).ok().filter(is_within).ok_or_else(|| "expected whole seconds, 1s to 1h".to_owned())
}
