//! Describes a synthetic fleet: one method per property, each with a harmless default.

use fleetdiff_schemas::identity::{Build, Cohort, Hardware, Region, Service};
use fleetdiff_schemas::rows::ALL_FUNCTIONS;
use fleetdiff_schemas::time::Nanos;

use super::call_tree::Calls;
use super::cells::Cells;
use super::ring::Ring;

/// Regions of the method's article.
pub(super) const REGIONS: [&str; 3] = ["ap-south-1", "ap-southeast-1", "eu-west-1"];
/// Cohorts of the method's article.
pub(super) const COHORTS: [&str; 3] = ["Android-TV", "Web-Desktop", "iOS-iPad"];
/// When fleets start by default: 2026-03-03 09:05:00 UTC, 55 minutes before a new hour.
pub(super) const STARTS_AT: Nanos = Nanos::from_seconds(1_772_528_700);

/// How many pods run each build in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PodCounts {
    pub(super) head: u32,
    pub(super) base: u32,
}

/// The cost of functions, changed in the head pods of some cells.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    /// None for all of them.
    pub(super) function: Option<String>,
    pub(super) cells: Cells,
    pub(super) factor: f64,
    /// Each pod is affected with this probability; none: all are.
    pub(super) fraction: Option<f64>,
}

/// How the cost of a function follows load.
#[derive(Clone, Debug)]
pub(super) struct Elasticity {
    pub(super) function: String,
    /// Of the head in these cells; none: of every pod.
    pub(super) head_in: Option<Cells>,
    pub(super) power: f64,
}

/// How the head comes into the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deploy {
    /// It runs since long before the first profile, as the base does.
    Before,
    /// All its pods start this long after the first profile, in addition to those of the base.
    After(Nanos),
    /// Pods of the base are replaced one by one, evenly over `lasts`, the first this long after the first profile.
    Rollout { after: Nanos, lasts: Nanos },
}

/// Whether counts travel as stacks or folded by function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Stacks,
    Folded,
}

/// All properties of a fleet.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) seed: u64,
    pub(super) service: Service,
    pub(super) base: Build,
    pub(super) head: Build,
    pub(super) rings: Vec<Ring>,
    pub(super) regions: Vec<Region>,
    pub(super) cohorts: Vec<Cohort>,
    pub(super) cohorts_by_request: bool,
    pub(super) pods: PodCounts,
    pub(super) odd_cells: Vec<(Region, Cohort, PodCounts)>,
    pub(super) hardware: Vec<Hardware>,
    pub(super) pods_per_node: Option<u32>,
    pub(super) process_start_known: bool,
    pub(super) calls: Calls,
    pub(super) unknown_frames: f64,
    pub(super) samples_per_second: f64,
    pub(super) requests_per_second: f64,
    pub(super) pod_cv: f64,
    pub(super) size_cv: f64,
    pub(super) hop_cv: f64,
    pub(super) hop_correlation: f64,
    pub(super) drift: f64,
    /// CV with which the costs of a build sway, and the time over which that is forgotten by e.
    pub(super) sway: Option<(f64, Nanos)>,
    pub(super) starts_at: Nanos,
    pub(super) lasts: Nanos,
    pub(super) period: Nanos,
    pub(super) deploy: Deploy,
    /// Within what time from the first instant the base's pods start; `None` if they have run for hours.
    pub(super) base_starts: Option<Nanos>,
    pub(super) warm_up: Nanos,
    /// By how much (ln) functions cost more at the start of a process, and the time constant with which that decays.
    pub(super) settling: Option<(f64, Nanos)>,
    pub(super) effects: Vec<Effect>,
    /// Load at its highest, over that at its lowest, and how long it takes to rise and fall back; `None` if it stays.
    pub(super) load: Option<(f64, Nanos)>,
    pub(super) elasticities: Vec<Elasticity>,
    pub(super) late: f64,
    pub(super) late_by: Nanos,
    pub(super) duplicates: f64,
    pub(super) missing: f64,
    pub(super) restarts: u32,
    pub(super) crashes: u32,
    pub(super) cumulative: bool,
    pub(super) form: Form,
    pub(super) partitions: u32,
    pub(super) keyed: bool,
    pub(super) pods_per_record: usize,
}

/// A fleet in the making; see [`Fleet::seeded`](super::Fleet::seeded).
#[derive(Clone, Debug)]
pub struct FleetBuilder {
    pub(super) settings: Settings,
}

impl FleetBuilder {
    pub(super) fn new(seed: u64) -> Self {
        let settings = Settings {
            seed,
            service: "video-delivery".into(),
            base: "v41".into(),
            head: "v42".into(),
            rings: Vec::new(),
            regions: REGIONS.map(Region::from).to_vec(),
            cohorts: COHORTS.map(Cohort::from).to_vec(),
            cohorts_by_request: false,
            pods: PodCounts { head: 5, base: 20 },
            odd_cells: Vec::new(),
            hardware: vec!["c7i.2xlarge".into()],
            pods_per_node: None,
            process_start_known: true,
            calls: Calls::VideoService,
            unknown_frames: 0.0,
            samples_per_second: 100.0,
            requests_per_second: 0.0,
            pod_cv: 0.03,
            size_cv: 0.3,
            hop_cv: 0.0,
            hop_correlation: 0.0,
            drift: 0.0,
            sway: None,
            starts_at: STARTS_AT,
            lasts: Nanos::from_seconds(600),
            period: Nanos::from_seconds(10),
            deploy: Deploy::After(Nanos::from_seconds(60)),
            base_starts: None,
            warm_up: Nanos::from_seconds(60),
            settling: None,
            effects: Vec::new(),
            load: None,
            elasticities: Vec::new(),
            late: 0.0,
            late_by: Nanos(0),
            duplicates: 0.0,
            missing: 0.0,
            restarts: 0,
            crashes: 0,
            cumulative: false,
            form: Form::Stacks,
            partitions: 4,
            keyed: true,
            pods_per_record: 50,
        };
        Self { settings }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }
}

/// Which pods are in the fleet.
impl FleetBuilder {
    /// The service that all pods run (default `video-delivery`).
    #[must_use]
    pub fn service(self, service: impl Into<Service>) -> Self {
        self.with(|s| s.service = service.into())
    }

    /// The names of the two builds (default `v41`, `v42`).
    #[must_use]
    pub fn builds(self, base: impl Into<Build>, head: impl Into<Build>) -> Self {
        self.with(|s| (s.base, s.head) = (base.into(), head.into()))
    }

    /// A further build beside these two.
    #[must_use]
    pub fn ring(self, ring: Ring) -> Self {
        self.with(|s| s.rings.push(ring))
    }

    /// Where the fleet runs (default [`Fleet::REGIONS`](super::Fleet::REGIONS)).
    #[must_use]
    pub fn regions<R: Into<Region>>(self, regions: impl IntoIterator<Item = R>) -> Self {
        self.with(|s| s.regions = regions.into_iter().map(Into::into).collect())
    }

    /// Which cohorts it serves (default [`Fleet::COHORTS`](super::Fleet::COHORTS)).
    #[must_use]
    pub fn cohorts<C: Into<Cohort>>(self, cohorts: impl IntoIterator<Item = C>) -> Self {
        self.with(|s| s.cohorts = cohorts.into_iter().map(Into::into).collect())
    }

    /// Makes the cohort a label of samples: every pod serves all cohorts equally, and pods are counted by region.
    #[must_use]
    pub fn cohorts_by_request(self) -> Self {
        self.with(|s| s.cohorts_by_request = true)
    }

    /// Pods of each build in a cell (in a region, with [`cohorts_by_request`](Self::cohorts_by_request));
    /// in a roll-out every pod of the base becomes one of the head, and `head` is not used.
    #[must_use]
    pub fn pods_per_cell(self, head: u32, base: u32) -> Self {
        self.with(|s| s.pods = PodCounts { head, base })
    }

    /// Pods of each build in one cell that differs from the others.
    #[must_use]
    pub fn cell(self, region: impl Into<Region>, cohort: impl Into<Cohort>, head: u32, base: u32) -> Self {
        self.with(|s| s.odd_cells.push((region.into(), cohort.into(), PodCounts { head, base })))
    }

    /// Kinds of machine, drawn for each pod with equal chances (default one). Each kind but the first has costs of its
    /// own: every function's differs by a log-normal factor of CV 10 %, the same in the whole fleet.
    #[must_use]
    pub fn hardware<H: Into<Hardware>>(self, kinds: impl IntoIterator<Item = H>) -> Self {
        self.with(|s| s.hardware = kinds.into_iter().map(Into::into).collect())
    }

    /// Puts this many pods of a region on one node, whatever their build (default: nodes are not known).
    #[must_use]
    pub fn pods_per_node(self, pods: u32) -> Self {
        self.with(|s| s.pods_per_node = Some(pods))
    }

    /// Leaves the start of processes out of the profiles.
    #[must_use]
    pub fn without_process_start(self) -> Self {
        self.with(|s| s.process_start_known = false)
    }
}

/// What its profiles hold.
impl FleetBuilder {
    /// The functions and who calls them (default [`Calls::VideoService`]).
    #[must_use]
    pub fn calls(self, calls: Calls) -> Self {
        self.with(|s| s.calls = calls)
    }

    /// Share of samples that name no function: half of them end in a frame without symbol, half have no frame.
    #[must_use]
    pub fn unknown_frames(self, share: f64) -> Self {
        self.with(|s| s.unknown_frames = share)
    }

    /// Samples that an average pod gives in a second (default 100).
    #[must_use]
    pub fn samples_per_second(self, rate: f64) -> Self {
        self.with(|s| s.samples_per_second = rate)
    }

    /// Requests that an average pod serves in a second; larger pods serve more (default: not reported).
    #[must_use]
    pub fn requests_per_second(self, rate: f64) -> Self {
        self.with(|s| s.requests_per_second = rate)
    }

    /// How pods differ: each has a log-normal multiplier of this CV for each function, for as long as it lives
    /// (default .03; 0 makes clones).
    #[must_use]
    pub fn pod_cv(self, cv: f64) -> Self {
        self.with(|s| s.pod_cv = cv)
    }

    /// How the sizes of pods (total samples and requests) differ: log-normal of this CV (default .3).
    #[must_use]
    pub fn size_cv(self, cv: f64) -> Self {
        self.with(|s| s.size_cv = cv)
    }

    /// Lets each function of each pod wander: a log-normal multiplier of this CV for each profile, correlated with
    /// the one of the profile before by `correlation` (default none).
    #[must_use]
    pub fn hop_noise(self, cv: f64, correlation: f64) -> Self {
        self.with(|s| (s.hop_cv, s.hop_correlation) = (cv, correlation))
    }

    /// Lets the costs of the whole fleet drift together: from start to end, each function's cost moves along a straight
    /// line on the log scale by a normal number with this standard deviation, the same for every pod (default 0).
    #[must_use]
    pub fn drift(self, deviation: f64) -> Self {
        self.with(|s| s.drift = deviation)
    }

    /// Lets the costs of each build sway: what a function costs moves for all pods of the build at once, by a log-normal factor of this
    /// CV that is forgotten by e within `over` (default not at all).
    #[must_use]
    pub fn swaying(self, cv: f64, over: Nanos) -> Self {
        self.with(|s| s.sway = Some((cv, over)))
    }

    /// Multiplies what `function` itself costs (samples whose leaf it is) in the head pods of `cells`. Everything else
    /// keeps its cost, so that shares move and profiles grow. Several effects are multiplied; a factor of 1 has no
    /// effect. `(all)` is [`regress_all`](Self::regress_all).
    #[must_use]
    pub fn regress(self, function: impl Into<String>, cells: Cells, factor: f64) -> Self {
        let function = function.into();
        if function == ALL_FUNCTIONS {
            return self.regress_all(cells, factor);
        }
        self.with(|s| s.effects.push(Effect { function: Some(function), cells, factor, fraction: None }))
    }

    /// As [`regress`](Self::regress), but each head pod is affected only with the probability `fraction`, for as long
    /// as it lives.
    #[must_use]
    pub fn regress_some(self, function: impl Into<String>, cells: Cells, factor: f64, fraction: f64) -> Self {
        self.with(|s| {
            s.effects.push(Effect { function: Some(function.into()), cells, factor, fraction: Some(fraction) })
        })
    }

    /// Multiplies the cost of everything in the head pods of `cells`: no share moves, and a request costs more.
    #[must_use]
    pub fn regress_all(self, cells: Cells, factor: f64) -> Self {
        self.with(|s| s.effects.push(Effect { function: None, cells, factor, fraction: None }))
    }

    /// Lets load rise to `peak` times what it is at the start and fall back, again and again, each time within `wave` (default: it
    /// stays). Requests and samples of every pod rise and fall with it.
    #[must_use]
    pub fn load(self, peak: f64, wave: Nanos) -> Self {
        self.with(|s| s.load = Some((peak, wave)))
    }

    /// Multiplies what `function` itself costs per request by load to this power, in both builds: -1 for a cost that does not depend on
    /// requests.
    #[must_use]
    pub fn elasticity(self, function: impl Into<String>, power: f64) -> Self {
        self.with(|s| s.elasticities.push(Elasticity { function: function.into(), head_in: None, power }))
    }

    /// The same in the head pods of `cells` alone.
    #[must_use]
    pub fn scales_worse(self, function: impl Into<String>, cells: Cells, power: f64) -> Self {
        self.with(|s| s.elasticities.push(Elasticity { function: function.into(), head_in: Some(cells), power }))
    }

    /// Removes every effect set so far.
    #[must_use]
    pub fn unchanged(self) -> Self {
        self.with(|s| {
            s.effects.clear();
            s.elasticities.clear();
        })
    }
}

/// When things happen.
impl FleetBuilder {
    /// The first instant (default [`Fleet::STARTS_AT`](super::Fleet::STARTS_AT)).
    #[must_use]
    pub fn starts_at(self, instant: Nanos) -> Self {
        self.with(|s| s.starts_at = instant)
    }

    /// How long the fleet is watched, in whole periods (default 10 min).
    #[must_use]
    pub fn lasts(self, length: Nanos) -> Self {
        self.with(|s| s.lasts = length)
    }

    /// The window of one profile (default 10 s). Pods begin their windows at different moments within it.
    #[must_use]
    pub fn period(self, length: Nanos) -> Self {
        self.with(|s| s.period = length)
    }

    /// The head's pods start this long after the first instant (default 60 s), within one period.
    #[must_use]
    pub fn deploy_after(self, length: Nanos) -> Self {
        self.with(|s| s.deploy = Deploy::After(length))
    }

    /// The base's pods start within this time from the first instant (default: some hours before it).
    #[must_use]
    pub fn base_starts_within(self, length: Nanos) -> Self {
        self.with(|s| s.base_starts = Some(length))
    }

    /// Both builds have been running for long.
    #[must_use]
    pub fn already_deployed(self) -> Self {
        self.with(|s| s.deploy = Deploy::Before)
    }

    /// A roll-out: from `after` on, pods of the base are replaced one by one, the last at `after + lasts`.
    #[must_use]
    pub fn rollout(self, after: Nanos, lasts: Nanos) -> Self {
        self.with(|s| s.deploy = Deploy::Rollout { after, lasts })
    }

    /// How long a process is cold (default 60 s): profiles whose midpoint lies in it cost three times as much in a
    /// quarter of the functions, so that a change is seen if they are not cropped.
    #[must_use]
    pub fn warm_up(self, length: Nanos) -> Self {
        self.with(|s| s.warm_up = length)
    }

    /// Processes also settle slowly: a third of the functions cost exp(`ln_more` exp(-age/`over`)) times as much.
    #[must_use]
    pub fn settling(self, ln_more: f64, over: Nanos) -> Self {
        self.with(|s| s.settling = Some((ln_more, over)))
    }

    /// This many pods restart once, at some moment of their life: same pod, new process.
    #[must_use]
    pub fn restarts(self, pods: u32) -> Self {
        self.with(|s| s.restarts = pods)
    }

    /// This many pods crash once: a new process, whose profiles name the start of the one before it.
    #[must_use]
    pub fn crashes(self, pods: u32) -> Self {
        self.with(|s| s.crashes = pods)
    }
}

/// How its profiles arrive.
impl FleetBuilder {
    /// Delays this fraction of the profiles by between half of `by` and the whole of it.
    #[must_use]
    pub fn late(self, fraction: f64, by: Nanos) -> Self {
        self.with(|s| (s.late, s.late_by) = (fraction, by))
    }

    /// Sends this fraction of the profiles again, with the pod's next record.
    #[must_use]
    pub fn duplicates(self, fraction: f64) -> Self {
        self.with(|s| s.duplicates = fraction)
    }

    /// Loses this fraction of the profiles.
    #[must_use]
    pub fn missing(self, fraction: f64) -> Self {
        self.with(|s| s.missing = fraction)
    }

    /// Profiles are snapshots: whole stacks with what a process has counted since it began (within the time of the fleet), or,
    /// where it was running before, since the first instant.
    #[must_use]
    pub fn cumulative(self) -> Self {
        self.with(|s| s.cumulative = true)
    }

    /// Profiles hold whole stacks (the default).
    #[must_use]
    pub fn stacks(self) -> Self {
        self.with(|s| s.form = Form::Stacks)
    }

    /// Profiles hold counts folded by function: the same numbers, several times as fast.
    #[must_use]
    pub fn folded(self) -> Self {
        self.with(|s| s.form = Form::Folded)
    }

    /// Partitions of [`Fleet::source`](super::Fleet::source) (default 4, at least 1).
    #[must_use]
    pub fn partition_count(self, partitions: u32) -> Self {
        self.with(|s| s.partitions = partitions.max(1))
    }

    /// Records go to partitions in turn, so that a pod's profiles are in all of them (default: keyed by pod).
    #[must_use]
    pub fn unkeyed(self) -> Self {
        self.with(|s| s.keyed = false)
    }

    /// How many pods share a record (default 50, at least 1).
    #[must_use]
    pub fn pods_per_record(self, pods: usize) -> Self {
        self.with(|s| s.pods_per_record = pods.max(1))
    }
}
