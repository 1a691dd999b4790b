//! How the cost of functions follows load: the elasticities of builds in one cell, and how a head's differ from its base's.

mod curves;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Build, PodId, Service, stable_hash};
use fleetdiff_schemas::number::{float, length_float, table_count};
use fleetdiff_schemas::profile::{CountKind, ProfileType, is_of_several};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, AtLoad, CellKey, Interval, RARE, ScalingBasis, ScalingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{HopClock, Nanos};
use fleetdiff_schemas::verdict::ScalingReason;
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::scaling::{BAND, LEAST_DF, Load, LoadInterval, Slope, Withheld};
use fleetdiff_statistics::tails::ln_chi1_tail;

use crate::counts::cell::CellCounts;
use crate::counts::encoding::Entry;
use crate::counts::load::{Minute, Replicate, Served};
use curves::MinuteLoad;
use words::needed;

/// Level of intervals.
const LEVEL: f64 = 0.95;

/// Where and when rows are made.
#[derive(Clone, Debug)]
pub struct ScalingFrame {
    /// What is deployed.
    pub service: Service,
    /// What was observed.
    pub profile_type: ProfileType,
    /// Which cell.
    pub cell: CellKey,
    /// The end of the hop that is closing.
    pub window_end_at: Nanos,
}

/// All builds of a cell that served requests, and the bases of its comparisons, at a report.
#[derive(Debug)]
pub struct CellScaling {
    frame: ScalingFrame,
    /// By builds that are taken together: each kind of count.
    of_builds: BTreeMap<Vec<Build>, Vec<KindScaling>>,
}

impl CellScaling {
    /// Measures every build of the cell, and the base of each comparison.
    pub fn of<'c>(
        counts: &CellCounts,
        comparisons: impl Iterator<Item = &'c ComparisonId>,
        frame: ScalingFrame,
        config: &Config,
    ) -> Self {
        let minutes = counts.load().minutes().values();
        let single: BTreeSet<&Build> = minutes.flat_map(BTreeMap::keys).map(|(build, _)| build).collect();
        let mut builds: BTreeSet<Vec<Build>> = single.into_iter().map(|build| vec![build.clone()]).collect();
        builds.extend(comparisons.map(|id| id.base.clone()));
        let measured = builds.into_iter().filter_map(|builds| {
            let load = BuildLoad::of(counts, &builds, config.clock())?;
            let kinds = config.count_kinds.iter().map(|&kind| load.kind(kind, config.min_count)).collect();
            Some((builds, kinds))
        });
        Self { frame, of_builds: measured.collect() }
    }

    /// The rows of each build by itself, in no family yet.
    pub fn rows(&self) -> impl Iterator<Item = Vec<ScalingRow>> {
        self.of_builds.iter().filter_map(|(builds, kinds)| match &builds[..] {
            [build] => Some(kinds.iter().flat_map(|kind| kind.rows(&self.frame, build)).collect()),
            _ => None,
        })
    }

    /// The rows of a comparison, in no family yet; none unless both arms served requests.
    pub fn rows_against(&self, id: &ComparisonId) -> Vec<ScalingRow> {
        let head = self.of_builds.get(std::slice::from_ref(&id.head));
        let Some((head, base)) = head.zip(self.of_builds.get(&id.base)) else { return Vec::new() };
        let named = id.base_name();
        let kinds = head.iter().zip(base);
        kinds.flat_map(|(head, base)| head.rows_against(base, &self.frame, (&id.head, &named))).collect()
    }
}

/// What load did to some builds of a cell, taken together.
#[derive(Debug)]
struct BuildLoad<'a> {
    counts: &'a CellCounts,
    clock: HopClock,
    load: Load,
    /// Minutes with requests, ascending, and what each replicate served and cost there.
    minutes: Vec<(u64, Vec<Option<&'a Served>>)>,
    /// Samples by place of the function, in all minutes: self and total.
    sums: Vec<[u64; 2]>,
    /// When the first of them began.
    starts_at: Nanos,
    basis: ScalingBasis,
}

/// The elasticities of all functions with enough samples, for one kind of count.
#[derive(Debug)]
struct KindScaling {
    kind: CountKind,
    min_count: u64,
    starts_at: Nanos,
    basis: ScalingBasis,
    withheld: Option<ScalingReason>,
    functions: Vec<FunctionScaling>,
    /// Functions with fewer samples, and how many samples they have together.
    rare: (usize, u64),
    /// Minutes in which requests were served, ascending.
    minutes: Vec<MinuteLoad>,
}

/// One function, or all samples together.
#[derive(Debug)]
struct FunctionScaling {
    hash: u64,
    name: Arc<str>,
    count: u64,
    /// Samples in each minute in which requests were served.
    by_minute: Vec<u64>,
    slope: Option<Slope>,
    low: Third,
    high: Third,
}

/// A function in minutes of a third of the load.
#[derive(Clone, Copy, Debug, Default)]
struct Third {
    count: u64,
    samples: u64,
    requests: u64,
}

impl<'a> BuildLoad<'a> {
    /// The whole minutes of these builds within the window; `None` if they served no request in any.
    fn of(counts: &'a CellCounts, builds: &[Build], clock: HopClock) -> Option<Self> {
        let of_builds = |minute: &'a Minute| {
            minute.iter().filter(|((build, _), served)| builds.contains(build) && served.requests > 0)
        };
        let kept = counts.load().minutes();
        let replicates: BTreeSet<&(Build, Replicate)> =
            kept.values().flat_map(of_builds).map(|(replicate, _)| replicate).collect();
        let in_order = |minute: &'a Minute| {
            let served: BTreeMap<_, _> = of_builds(minute).collect();
            replicates.iter().map(|replicate| served.get(replicate).copied()).collect::<Vec<Option<&Served>>>()
        };
        let minutes = kept.iter().map(|(&number, minute)| (number, in_order(minute)));
        let minutes: Vec<_> = minutes.filter(|(_, served)| served.iter().any(Option::is_some)).collect();
        let starts_at = clock.start_of(counts.load().first_hop(minutes.first()?.0));
        let load = Load::of(minutes.iter().map(|(number, served)| LoadInterval {
            number: *number,
            requests: served.iter().map(|one| one.map_or(0.0, |one| float(one.requests))).collect(),
            serving: length_float(pods_of(served.iter().flatten())),
        }));
        let all = || minutes.iter().flat_map(|(_, served)| served.iter().flatten());
        let basis = ScalingBasis {
            pods: table_count(pods_of(all())),
            minutes: table_count(minutes.len()),
            requests: table_count(all().map(|one| one.requests).sum::<u64>()),
            total: table_count(all().map(|one| one.samples).sum::<u64>()),
            load_span: Some(load.span()),
            persistence: None,
            df: None,
        };
        let mut sums = vec![[0; 2]; counts.functions().len()];
        for (place, entry) in all().flat_map(|one| one.counts()) {
            sums[place] = [sums[place][0] + entry.own, sums[place][1] + entry.total];
        }
        Some(Self { counts, clock, load, minutes, sums, starts_at, basis })
    }

    /// The elasticities of functions with at least `min_count` samples; with self samples also that of all samples together.
    fn kind(&self, kind: CountKind, min_count: u64) -> KindScaling {
        let samples = Samples::of(self, kind, min_count.max(1));
        let elasticities = self.load.elasticities(samples.rows(), samples.tested.len(), |row, minute, replicate| {
            float(samples.at(row, minute)[replicate])
        });
        let (low, high) = self.load.thirds();
        let thirds = [low, high].map(|minutes| {
            let served = || minutes.iter().flat_map(|&minute| self.minutes[minute].1.iter().flatten());
            let (all, requests) = (served().map(|one| one.samples).sum(), served().map(|one| one.requests).sum());
            (minutes, Third { count: 0, samples: all, requests })
        });
        let functions = (0..samples.rows()).zip(&elasticities.slopes).map(|(row, &slope)| {
            let (hash, name) = samples.name(row, self.counts);
            let [low, high] = thirds.each_ref().map(|(minutes, third)| {
                let count = minutes.iter().flat_map(|&minute| samples.at(row, minute)).sum();
                Third { count, ..*third }
            });
            let by_minute = (0..samples.minutes).map(|minute| samples.at(row, minute).iter().sum()).collect();
            FunctionScaling { hash, name, count: samples.sum(row), by_minute, slope, low, high }
        });
        let drifts = || (elasticities.df < LEAST_DF).then_some(ScalingReason::DriftOutlastsWindow);
        let withheld = self.load.withheld().map(reason_of).or_else(drifts);
        let measured = |value: f64| withheld.is_none().then_some(value);
        let (persistence, df) = (measured(elasticities.persistence), measured(elasticities.df));
        KindScaling {
            kind,
            min_count,
            starts_at: self.starts_at,
            basis: ScalingBasis { persistence, df, ..self.basis },
            withheld,
            functions: functions.collect(),
            rare: samples.rare,
            minutes: self.minute_loads(),
        }
    }

    fn minute_loads(&self) -> Vec<MinuteLoad> {
        let load = |(number, served): &(u64, Vec<Option<&Served>>)| MinuteLoad {
            at: self.clock.start_of(self.counts.load().first_hop(*number)),
            pods: pods_of(served.iter().flatten()),
            requests: served.iter().flatten().map(|one| one.requests).sum(),
        };
        self.minutes.iter().map(load).collect()
    }

    /// Every count, with the place of its minute, of its replicate and of its function.
    fn each(&self, mut act: impl FnMut(usize, usize, usize, Entry)) {
        for (minute, (_, served)) in self.minutes.iter().enumerate() {
            for (replicate, served) in served.iter().enumerate() {
                let counts = served.iter().flat_map(|served| served.counts());
                counts.for_each(|(place, entry)| act(minute, replicate, place, entry));
            }
        }
    }
}

/// How many pods served.
fn pods_of<'a>(served: impl Iterator<Item = &'a &'a Served>) -> usize {
    served.flat_map(|one| &one.pods).collect::<BTreeSet<&PodId>>().len()
}

fn reason_of(withheld: Withheld) -> ScalingReason {
    match withheld {
        Withheld::FewPods => ScalingReason::FewPods,
        Withheld::FewIntervals => ScalingReason::FewMinutes,
        Withheld::LoadSpanTooSmall(_) => ScalingReason::LoadSpanTooSmall,
        Withheld::LoadIsTime => ScalingReason::LoadIsTime,
    }
}

/// Samples of functions, a row each, by minute and replicate; the last row is that of all samples, if there is one.
struct Samples {
    /// Places of functions with enough samples, in the order of the cell's numbers.
    tested: Vec<usize>,
    /// Functions with fewer, and how many samples they have together.
    rare: (usize, u64),
    has_all: bool,
    minutes: usize,
    replicates: usize,
    counts: Vec<u64>,
}

impl Samples {
    fn of(load: &BuildLoad<'_>, kind: CountKind, min_count: u64) -> Self {
        let count_of = |entry: Entry| match kind {
            CountKind::SelfCount => entry.own,
            CountKind::Total => entry.total,
        };
        let functions = load.counts.functions();
        let sums: Vec<u64> =
            load.sums.iter().map(|&[own, total]| if kind == CountKind::SelfCount { own } else { total }).collect();
        let mut tested: Vec<usize> = (0..sums.len()).filter(|&place| sums[place] >= min_count).collect();
        tested.sort_unstable_by_key(|&place| functions.number(place));
        let rare = || sums.iter().filter(|&&sum| sum > 0 && sum < min_count);
        let mut row_of = vec![None; sums.len()];
        tested.iter().zip(0..).for_each(|(&place, row)| row_of[place] = Some(row));
        let mut samples = Self {
            rare: (rare().count(), rare().sum()),
            has_all: kind == CountKind::SelfCount,
            minutes: load.minutes.len(),
            replicates: load.minutes.first().map_or(0, |(_, served)| served.len()),
            counts: Vec::new(),
            tested,
        };
        samples.counts = vec![0; samples.rows() * samples.minutes * samples.replicates];
        load.each(|minute, replicate, place, entry| {
            if let Some(row) = row_of[place] {
                let first = samples.first(row, minute);
                samples.counts[first + replicate] = count_of(entry);
            }
        });
        if samples.has_all {
            for (minute, (_, served)) in load.minutes.iter().enumerate() {
                let first = samples.first(samples.rows() - 1, minute);
                let all = served.iter().map(|served| served.map_or(0, |served| served.samples));
                samples.counts[first..].iter_mut().zip(all).for_each(|(count, all)| *count = all);
            }
        }
        samples
    }

    fn rows(&self) -> usize {
        self.tested.len() + usize::from(self.has_all)
    }

    fn first(&self, row: usize, minute: usize) -> usize {
        (row * self.minutes + minute) * self.replicates
    }

    /// By replicate.
    fn at(&self, row: usize, minute: usize) -> &[u64] {
        &self.counts[self.first(row, minute)..self.first(row, minute + 1)]
    }

    fn sum(&self, row: usize) -> u64 {
        self.counts[self.first(row, 0)..self.first(row + 1, 0)].iter().sum()
    }

    /// Stable hash and name.
    fn name(&self, row: usize, counts: &CellCounts) -> (u64, Arc<str>) {
        let functions = counts.functions();
        let of_all = || (stable_hash(ALL_FUNCTIONS.as_bytes()), ALL_FUNCTIONS.into());
        self.tested.get(row).map_or_else(of_all, |&place| functions.entries()[functions.number(place)].clone())
    }
}

impl KindScaling {
    /// The rows about these builds by themselves, in no family yet.
    fn rows(&self, frame: &ScalingFrame, build: &Build) -> Vec<ScalingRow> {
        let blank = self.blank(frame, build);
        let row = |function: &FunctionScaling| {
            let reason = self.reason_of(function);
            let tested = function.slope.filter(|_| reason.is_none());
            let needed = reason.map(|reason| self.needed(reason, build));
            ScalingRow { ln_p: tested.map(|slope| slope.ln_p(BAND)), reason, needed, ..function.described(&blank) }
        };
        let rare = (self.rare.0 > 0).then(|| ScalingRow {
            function: RARE.into(),
            functions: Some(table_count(self.rare.0)),
            count: table_count(self.rare.1),
            reason: Some(ScalingReason::CountNeeded),
            needed: Some(format!("at least {} samples of each function", self.min_count)),
            ..blank.clone()
        });
        self.functions.iter().map(row).chain(rare).collect()
    }

    /// The rows about these builds as the head of a comparison, in no family yet. Frames without a symbol are not the same function in
    /// two builds.
    fn rows_against(&self, base: &Self, frame: &ScalingFrame, (head, named): (&Build, &Build)) -> Vec<ScalingRow> {
        let blank = ScalingRow { base_build: Some(named.clone()), ..self.blank(frame, head) };
        let of_base: BTreeMap<u64, &FunctionScaling> =
            base.functions.iter().map(|function| (function.hash, function)).collect();
        let row = |function: &FunctionScaling| {
            let other = of_base.get(&function.hash);
            let base_slope = other.and_then(|other| other.slope);
            let of_head = self.reason_of(function);
            let of_base = match other {
                Some(other) => base.reason_of(other),
                None => base.withheld.or(Some(ScalingReason::CountNeeded)),
            };
            let reason = of_head.or(of_base);
            let difference = function.slope.zip(base_slope).filter(|_| reason.is_none());
            let difference = difference.map(|(head, base)| head.less(base));
            let needed = match (of_head, of_base) {
                (Some(reason), _) => Some(self.needed(reason, head)),
                (None, Some(reason)) => Some(base.needed(reason, named)),
                (None, None) => None,
            };
            ScalingRow {
                base_elasticity: base_slope.map(as_interval),
                elasticity_difference: difference.map(as_interval),
                ln_p: difference.map(|slope| slope.ln_p(BAND)),
                reason,
                needed,
                ..function.described(&blank)
            }
        };
        self.functions.iter().filter(|function| !is_of_several(&function.name)).map(row).collect()
    }

    /// Why a function of these builds has no verdict.
    fn reason_of(&self, function: &FunctionScaling) -> Option<ScalingReason> {
        self.withheld.or_else(|| function.slope.is_none().then_some(ScalingReason::AtOneEnd))
    }

    fn needed(&self, reason: ScalingReason, build: &Build) -> String {
        needed(reason, &self.basis, build, self.min_count)
    }

    fn blank(&self, frame: &ScalingFrame, build: &Build) -> ScalingRow {
        ScalingRow {
            service: frame.service.clone(),
            profile_type: frame.profile_type,
            measure: frame.profile_type.measure(),
            count_kind: self.kind,
            build: build.clone(),
            cell: frame.cell.clone(),
            window_start_at: self.starts_at,
            window_end_at: frame.window_end_at,
            basis: self.basis,
            ..ScalingRow::blank()
        }
    }
}

impl FunctionScaling {
    /// Its counts and elasticity.
    fn described(&self, blank: &ScalingRow) -> ScalingRow {
        let (low, high) = (self.low, self.high);
        let is_comparable = low.samples > 0 && high.samples > 0 && &*self.name != ALL_FUNCTIONS;
        let g = is_comparable.then(|| g_2x2(high.count, high.samples, low.count, low.samples));
        ScalingRow {
            function: Arc::clone(&self.name),
            count: table_count(self.count),
            elasticity: self.slope.map(as_interval),
            low: low.figures(),
            high: high.figures(),
            g,
            ln_p_iid: g.map(ln_chi1_tail),
            ..blank.clone()
        }
    }
}

impl Third {
    fn figures(self) -> AtLoad {
        let ratio = |whole: u64| (whole > 0).then(|| float(self.count) / float(whole));
        AtLoad { share: ratio(self.samples), per_request: ratio(self.requests) }
    }
}

fn as_interval(slope: Slope) -> Interval {
    let (low, high) = slope.interval(LEVEL);
    Interval { value: slope.value, low, high }
}
