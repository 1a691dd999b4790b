//! Load scaling: section 17 of `docs/semantics.md`.

pub(super) mod curves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::config::{Config, Method};
use fleetdiff_schemas::identity::{Build, PodId, Service};
use fleetdiff_schemas::number::{float, length_float, table_count};
use fleetdiff_schemas::profile::{CountKind, ProfileType, is_of_several};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, AtLoad, Interval, RARE, ScalingBasis, ScalingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::{ScalingReason, ScalingVerdict};

use super::arms::column;
use super::counts::{Archive, InMinute, MinutePlace, Minutes, hops_of_minute};
use super::statistics::families::bh;
use super::statistics::g::{g_share, ln_p_iid};
use super::statistics::scaling::{Course, Slope};
use super::timeline::Open;

/// The rows of a service at a report.
pub(super) fn rows(config: &Config, archive: &Archive, service: &Service, open: &[Open], hop: Hop) -> Vec<ScalingRow> {
    if config.method != Method::Honest {
        return Vec::new();
    }
    let mut rows = Vec::new();
    let mut of_comparisons: BTreeMap<(usize, ProfileType, CountKind), Vec<ScalingRow>> = BTreeMap::new();
    for ((profile_type, cell), minutes) in archive.minutes(config, hop) {
        let blank = ScalingRow {
            service: service.clone(),
            profile_type,
            measure: profile_type.measure(),
            cell: cell.clone(),
            window_end_at: config.clock().end_of(hop),
            ..ScalingRow::blank()
        };
        let builds: BTreeSet<&Build> = minutes.values().flat_map(BTreeMap::keys).map(|(build, _, _)| build).collect();
        for kind in CountKind::ALL.into_iter().filter(|kind| config.count_kinds.contains(kind)) {
            for build in &builds {
                let Some(of_build) = Measured::of(config, archive, &minutes, &[(*build).clone()], kind) else {
                    continue;
                };
                let blank = ScalingRow { build: (*build).clone(), count_kind: kind, ..blank.clone() };
                rows.extend(decided(of_build.rows(&blank, config), config, false));
            }
            for (number, one) in open.iter().enumerate() {
                let of = |builds: &[Build]| Measured::of(config, archive, &minutes, builds, kind);
                let Some((head, base)) = of(std::slice::from_ref(&one.head)).zip(of(&one.base)) else { continue };
                let blank = ScalingRow {
                    build: one.head.clone(),
                    base_build: Some(one.base_name()),
                    count_kind: kind,
                    ..blank.clone()
                };
                of_comparisons
                    .entry((number, profile_type, kind))
                    .or_default()
                    .extend(head.rows_against(&base, &blank));
            }
        }
    }
    rows.extend(of_comparisons.into_values().flat_map(|family| decided(family, config, true)));
    rows
}

/// Builds of a cell that are taken together, for one kind of count.
struct Measured {
    starts_at: Nanos,
    basis: ScalingBasis,
    reason: Option<ScalingReason>,
    functions: Vec<Function>,
    rare: (usize, u64),
}

struct Function {
    name: Arc<str>,
    count: u64,
    slope: Option<Slope>,
    low: AtLoad,
    high: AtLoad,
    g: Option<f64>,
}

/// What counts of some builds: minutes in which they served, and the pods that did.
struct Kept<'a> {
    kind: CountKind,
    minutes: Vec<(u64, BTreeMap<&'a MinutePlace, &'a InMinute>)>,
    places: BTreeSet<&'a MinutePlace>,
}

impl<'a> Kept<'a> {
    fn of(minutes: &'a Minutes, builds: &[Build], kind: CountKind) -> Self {
        let kept = minutes.iter().map(|(number, places)| {
            let served = places.iter().filter(|((build, _, _), one)| builds.contains(build) && one.requests > 0);
            (*number, served.collect::<BTreeMap<_, _>>())
        });
        let minutes: Vec<_> = kept.filter(|(_, served)| !served.is_empty()).collect();
        let places = minutes.iter().flat_map(|(_, served)| served.keys().copied()).collect();
        Self { kind, minutes, places }
    }

    fn all(&self) -> impl Iterator<Item = &InMinute> {
        self.minutes.iter().flat_map(|(_, served)| served.values().copied())
    }

    fn course(&self) -> Course {
        let minute = |(number, served): &(u64, BTreeMap<&MinutePlace, &InMinute>)| {
            let requests = self.places.iter().map(|place| served.get(place).map_or(0.0, |one| float(one.requests)));
            let serving: BTreeSet<&PodId> = served.values().flat_map(|one| &one.pods).collect();
            (*number, requests.collect(), length_float(serving.len()))
        };
        Course::of(self.minutes.iter().map(minute).collect())
    }

    /// Of a function, or of all together.
    fn count(&self, one: &InMinute, function: Option<usize>) -> u64 {
        function
            .map_or(one.samples, |function| one.functions.get(&function).map_or(0, |counts| counts[column(self.kind)]))
    }

    fn sum(&self, function: Option<usize>) -> u64 {
        self.all().map(|one| self.count(one, function)).sum()
    }

    /// By minute and place.
    fn table(&self, function: Option<usize>) -> Vec<Vec<f64>> {
        let in_minute = |(_, served): &(u64, BTreeMap<&MinutePlace, &InMinute>)| {
            self.places
                .iter()
                .map(|place| served.get(place).map_or(0.0, |one| float(self.count(one, function))))
                .collect()
        };
        self.minutes.iter().map(in_minute).collect()
    }

    /// The function's samples, all samples and requests in these minutes.
    fn within(&self, third: &[usize], function: Option<usize>) -> [u64; 3] {
        let served = || third.iter().flat_map(|&place| self.minutes[place].1.values().copied());
        let sum = |of: &dyn Fn(&InMinute) -> u64| served().map(of).sum::<u64>();
        [sum(&|one| self.count(one, function)), sum(&|one| one.samples), sum(&|one| one.requests)]
    }

    fn function(
        &self,
        archive: &Archive,
        function: Option<usize>,
        slope: Option<Slope>,
        thirds: &[Vec<usize>; 2],
    ) -> Function {
        let [low, high] = thirds.each_ref().map(|third| self.within(third, function));
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| float(part) / float(whole));
        let at_load =
            |[x, samples, requests]: [u64; 3]| AtLoad { share: ratio(x, samples), per_request: ratio(x, requests) };
        let g = (function.is_some() && low[1] > 0 && high[1] > 0)
            .then(|| g_share(float(high[0]), float(high[1]), float(low[0]), float(low[1])));
        Function {
            name: function.map_or_else(|| ALL_FUNCTIONS.into(), |function| Arc::clone(&archive.names[function])),
            count: self.sum(function),
            slope,
            low: at_load(low),
            high: at_load(high),
            g,
        }
    }
}

impl Measured {
    fn of(config: &Config, archive: &Archive, minutes: &Minutes, builds: &[Build], kind: CountKind) -> Option<Self> {
        let kept = Kept::of(minutes, builds, kind);
        let first = kept.minutes.first()?.0;
        let course = kept.course();
        let sums: Vec<u64> = (0..archive.names.len()).map(|function| kept.sum(Some(function))).collect();
        let floor = config.min_count.max(1);
        let tested: Vec<Option<usize>> = (0..sums.len()).filter(|&f| sums[f] >= floor).map(Some).collect();
        let rare = || sums.iter().filter(|&&sum| sum > 0 && sum < floor);
        let named: Vec<Option<usize>> =
            tested.iter().copied().chain((kind == CountKind::SelfCount).then_some(None)).collect();
        let tables: Vec<Vec<Vec<f64>>> = named.iter().map(|&function| kept.table(function)).collect();
        let (persistence, df, slopes) = course.elasticities(&tables, tested.len());
        let reason = reason_of(&course, df);
        let thirds = thirds(&course);
        let functions =
            named.iter().zip(slopes).map(|(&function, slope)| kept.function(archive, function, slope, &thirds));
        let pods: BTreeSet<&PodId> = kept.all().flat_map(|one| &one.pods).collect();
        Some(Self {
            starts_at: config.clock().start_of(Hop(first * hops_of_minute(config))),
            basis: ScalingBasis {
                pods: table_count(pods.len()),
                minutes: table_count(kept.minutes.len()),
                requests: table_count(kept.all().map(|one| one.requests).sum::<u64>()),
                total: table_count(kept.all().map(|one| one.samples).sum::<u64>()),
                load_span: Some(course.rise.max(course.fall).exp()),
                persistence: reason.is_none().then_some(persistence),
                df: reason.is_none().then_some(df),
            },
            reason,
            functions: functions.collect(),
            rare: (rare().count(), rare().sum()),
        })
    }

    fn reason_of(&self, function: &Function) -> Option<ScalingReason> {
        match (self.reason, function.slope) {
            (None, None) => Some(ScalingReason::AtOneEnd),
            (reason, _) => reason,
        }
    }

    fn rows(&self, blank: &ScalingRow, config: &Config) -> Vec<ScalingRow> {
        let row = |function: &Function| {
            let reason = self.reason_of(function);
            let ln_p = function.slope.filter(|_| reason.is_none()).map(Slope::ln_p);
            ScalingRow { reason, ln_p, ..self.described(function, blank) }
        };
        let mut rows: Vec<ScalingRow> = self.functions.iter().map(row).collect();
        if self.rare.0 > 0 {
            rows.push(ScalingRow {
                function: RARE.into(),
                functions: Some(table_count(self.rare.0)),
                count: table_count(self.rare.1),
                reason: Some(ScalingReason::CountNeeded),
                window_start_at: self.starts_at,
                basis: self.basis,
                needed: Some(format!("at least {} samples of each function", config.min_count.max(1))),
                ..blank.clone()
            });
        }
        rows
    }

    fn rows_against(&self, base: &Self, blank: &ScalingRow) -> Vec<ScalingRow> {
        let row = |function: &Function| {
            let other = base.functions.iter().find(|other| other.name == function.name);
            let base_slope = other.and_then(|other| other.slope);
            let of_base = match other {
                Some(other) => base.reason_of(other),
                None => base.reason.or(Some(ScalingReason::CountNeeded)),
            };
            let of_head = self.reason_of(function);
            let reason = of_head.or(of_base);
            let difference = match (reason, function.slope, base_slope) {
                (None, Some(head), Some(base)) => Some(head.less(base)),
                _ => None,
            };
            ScalingRow {
                reason,
                base_elasticity: base_slope.map(as_interval),
                elasticity_difference: difference.map(as_interval),
                ln_p: difference.map(Slope::ln_p),
                ..self.described(function, blank)
            }
        };
        self.functions.iter().filter(|function| !is_of_several(&function.name)).map(row).collect()
    }

    fn described(&self, function: &Function, blank: &ScalingRow) -> ScalingRow {
        ScalingRow {
            function: Arc::clone(&function.name),
            window_start_at: self.starts_at,
            basis: self.basis,
            count: table_count(function.count),
            elasticity: function.slope.map(as_interval),
            low: function.low,
            high: function.high,
            g: function.g,
            ln_p_iid: function.g.map(ln_p_iid),
            ..blank.clone()
        }
    }
}

fn reason_of(course: &Course, df: f64) -> Option<ScalingReason> {
    let (great, small) = (course.rise.max(course.fall), course.rise.min(course.fall));
    if course.replicates() < 3 {
        Some(ScalingReason::FewPods)
    } else if course.numbers.len() < 12 {
        Some(ScalingReason::FewMinutes)
    } else if great < 1.5_f64.ln() {
        Some(ScalingReason::LoadSpanTooSmall)
    } else if small < 0.5 * great {
        Some(ScalingReason::LoadIsTime)
    } else {
        (df < 2.0).then_some(ScalingReason::DriftOutlastsWindow)
    }
}

/// Places of the third of minutes with the smallest load, and of that with the largest.
fn thirds(course: &Course) -> [Vec<usize>; 2] {
    let mut order: Vec<usize> = (0..course.load.len()).collect();
    order.sort_by(|&a, &b| course.load[a].total_cmp(&course.load[b]).then(a.cmp(&b)));
    let third = order.len() / 3;
    [order[..third].to_vec(), order[order.len() - third..].to_vec()]
}

/// One family, with its verdicts.
fn decided(mut rows: Vec<ScalingRow>, config: &Config, compares: bool) -> Vec<ScalingRow> {
    let ln_q = bh(&rows.iter().map(|row| row.ln_p.unwrap_or(f64::NAN)).collect::<Vec<_>>());
    for (row, ln_q) in rows.iter_mut().zip(ln_q) {
        row.q_value = (!ln_q.is_nan()).then(|| ln_q.exp().min(1.0));
        let slope = if compares { row.elasticity_difference } else { row.elasticity };
        let [more, less, same] = if compares {
            [ScalingVerdict::ScalesWorse, ScalingVerdict::ScalesBetter, ScalingVerdict::ScalesEqually]
        } else {
            [ScalingVerdict::MoreExpensive, ScalingVerdict::Cheaper, ScalingVerdict::Linear]
        };
        row.verdict = match (row.reason, slope) {
            (Some(ScalingReason::CountNeeded | ScalingReason::AtOneEnd), _) => ScalingVerdict::Inconclusive,
            (Some(_), _) => ScalingVerdict::Withheld,
            (None, Some(slope)) if row.q_value.is_some_and(|q| q <= config.q) => {
                if slope.value > 0.0 {
                    more
                } else {
                    less
                }
            }
            (None, Some(slope)) if slope.low >= -0.05 && slope.high <= 0.05 => same,
            _ => ScalingVerdict::Inconclusive,
        };
    }
    rows
}

fn as_interval(slope: Slope) -> Interval {
    let [value, low, high] = slope.interval();
    Interval { value, low, high }
}
