//! The fleet of the bench: 800 pods in 42 cells that send one profile every 10 s.
//!
//! A profile holds a fixed number of samples of functions whose popularity falls like one over their rank. Each sample
//! is the leaf of its own stack (self = total, as in the prototypes from which the targets come). Pods differ by about
//! 3 % per function. A few functions cost three times as much in the head pods of a few cells, so that there is something to
//! flag.
//!
//! Every profile depends only on (workload, pod, hop) and is made before the clock of its hop starts.

use std::sync::Arc;

use fleetdiff_schemas::config::{Comparing, Config, Method};
use fleetdiff_schemas::identity::{Build, Identity, stable_hash};
use fleetdiff_schemas::profile::{
    CountKind, Decoded, Folded, FoldedFunction, Position, Profile, ProfileType, Samples, Stamped, Temporality,
};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos, TimeRange};

/// Length of a hop.
const HOP: Nanos = Nanos::from_seconds(10);
/// The head build and the base build.
const BUILDS: (&str, &str) = ("head", "base");
/// A full hour: 2026-03-03 10:00:00 UTC.
const HOUR: i64 = 1_772_532_000;
/// Ranks of the functions that cost more, and the cells in which they do.
const HIT: (&[u32], &[usize]) = (&[3, 30, 100, 300, 1000], &[0, 2, 10, 20, 40]);
/// How often a draw of a function that costs more is kept in a pod of the base.
const HIT_KEPT: f64 = 1.0 / 3.0;
/// Draws are kept with a probability between 1 - this and 1, by pod and function: CV 3 %.
const POD_SPREAD: f64 = 0.1;

/// Which pods run the head build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// 5 % of the pods, two in every other cell (a single one could not be tested); one stratum.
    Canary,
    /// Two pods in every cell, 10 %; one stratum. As many tests as with one head pod in every cell.
    CanaryInEveryCell,
    /// Half of the pods; strata by kind of machine, and by the hour, which changes within the window.
    Half,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Canary, Self::CanaryInEveryCell, Self::Half];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Canary => "5 %, 1 stratum",
            Self::CanaryInEveryCell => "10 %, 1 stratum",
            Self::Half => "50 %, several strata",
        }
    }

    /// Whether the pod number `place` of its cell runs the head build.
    fn is_head(self, cell: usize, place: usize) -> bool {
        match self {
            Self::Canary => place < 2 && cell.is_multiple_of(2),
            Self::CanaryInEveryCell => place < 2,
            Self::Half => place.is_multiple_of(2),
        }
    }
}

/// The size of the workload.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its name.
    pub name: &'static str,
    /// Pods of the fleet.
    pub pods: usize,
    /// Functions of the fleet.
    pub functions: u32,
    /// Samples that a pod gives in a hop.
    pub samples: u32,
    /// Regions and cohorts; together the cells.
    pub cells: (usize, usize),
    /// Kinds of machine where the mix has strata: half as many as its strata.
    pub kinds: usize,
}

/// 20,000 functions, 1,000 samples a pod and hop.
pub const MEDIUM: Size = Size { name: "medium", pods: 800, functions: 20_000, samples: 1_000, cells: (7, 6), kinds: 2 };
/// 100,000 functions, 2,000 samples a pod and hop.
pub const LARGE: Size = Size { name: "large", functions: 100_000, samples: 2_000, ..MEDIUM };

impl Size {
    /// Cell by number.
    fn cell(self, number: usize) -> CellKey {
        let (region, cohort) = (number % self.cells.0, number / self.cells.0);
        CellKey {
            region: format!("region-{region}").as_str().into(),
            cohort: format!("cohort-{cohort}").as_str().into(),
        }
    }
}

/// One pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Its identity in profiles.
    pub identity: Arc<Identity>,
    /// Number of its cell.
    pub cell: usize,
    /// Whether it runs the head build.
    pub head: bool,
    key: u64,
}

/// The fleet, for a number of hops.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its size.
    pub size: Size,
    /// Which pods run the head build.
    pub mix: Mix,
    /// Hops in the window, which is filled before anything is measured.
    pub window: u64,
    /// Measured hops: each adds one hop and lets one expire. One more hop closes the last measured one.
    pub measured: u64,
    /// Every n-th hop is a look. 2 by default, so that each look is next to a hop without one.
    pub look_every: u64,
    /// The method that decides.
    pub method: Method,
    /// The pods.
    pub pods: Vec<Pod>,
    names: Arc<[Arc<str>]>,
}

impl Workload {
    /// The fleet of this size and mix.
    #[must_use]
    pub fn new(size: Size, mix: Mix, window: u64, measured: u64) -> Self {
        let pods = (0..size.pods).map(|number| pod(number, size, mix)).collect();
        let names = (0..size.functions)
            .map(|rank| Arc::from(format!("service/module{:03}.Type{}::method{rank}", rank % 251, rank % 17)));
        Self { size, mix, window, measured, look_every: 2, method: Method::Honest, pods, names: names.collect() }
    }

    /// All hops.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.window + self.measured + 1
    }

    /// The number that the dataflow gives to a hop counted from 0.
    #[must_use]
    pub fn hop(&self, number: u64) -> Hop {
        self.config().clock().hop_of(self.instant(number))
    }

    /// Cell by number.
    #[must_use]
    pub fn cell(&self, number: usize) -> CellKey {
        self.size.cell(number)
    }

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.size.cells.0 * self.size.cells.1
    }

    /// The time block of a hop counted from 0: the hour changes, if at all, when two thirds of the window are filled.
    #[must_use]
    pub fn block(&self, number: u64) -> usize {
        usize::from(self.mix == Mix::Half && number >= self.window * 2 / 3)
    }

    /// A function's name.
    #[must_use]
    pub fn name(&self, function: usize) -> &Arc<str> {
        &self.names[function]
    }

    /// Whether a hop counted from 0 is a look.
    #[must_use]
    pub fn looks_at(&self, number: u64) -> bool {
        (number + 1).is_multiple_of(self.look_every)
    }

    /// The number of the look at a hop counted from 0.
    #[must_use]
    pub fn look(&self, number: u64) -> u64 {
        let config = self.config();
        self.hop(number).0 / config.clock().hops_in(config.evaluate_every).max(1)
    }

    /// The configuration of the dataflow.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            window: Nanos(HOP.0 * i64::try_from(self.window).unwrap_or(1)),
            lateness: Nanos(0),
            warm_up: Nanos(0),
            evaluate_every: Nanos(HOP.0 * i64::try_from(self.look_every).unwrap_or(1)),
            report_every: Nanos::from_seconds(i64::from(i32::MAX)),
            comparing: Comparing::Named { base: vec![Build::from(BUILDS.1)], head: Build::from(BUILDS.0) },
            count_kinds: vec![CountKind::SelfCount],
            method: self.method,
            ..Config::default()
        }
    }

    /// The samples by function in a pod's profile of a hop, ascending by function.
    #[must_use]
    pub fn samples(&self, pod: &Pod, hop: u64) -> Vec<(u32, u32)> {
        let mut draws = Draws::seeded(pod.key ^ hop.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let scale = f64::from(self.size.functions + 1).ln();
        let costlier = |function| HIT.0.contains(&function) && HIT.1.contains(&pod.cell);
        let mut drawn = Vec::new();
        while drawn.len() < usize::try_from(self.size.samples).unwrap_or(0) {
            let function = zipf(draws.unit(), scale).min(self.size.functions - 1);
            let own = Draws::seeded(pod.key.rotate_left(17) ^ u64::from(function)).unit();
            let kept = (1.0 - POD_SPREAD * own) * if !pod.head && costlier(function) { HIT_KEPT } else { 1.0 };
            if draws.unit() < kept {
                drawn.push(function);
            }
        }
        drawn.sort_unstable();
        drawn.chunk_by(|a, b| a == b).map(|equal| (equal[0], u32::try_from(equal.len()).unwrap_or(0))).collect()
    }

    /// A record with one profile of one pod, as it leaves a decoder.
    #[must_use]
    pub fn record(&self, number: usize, hop: u64, partition: i32) -> Decoded {
        let pod = &self.pods[number];
        let functions = self.samples(pod, hop).into_iter().map(|(name, count)| FoldedFunction {
            name,
            own: u64::from(count),
            total: u64::from(count),
        });
        let part = Folded {
            cohort: pod.identity.cohort.clone(),
            samples: u64::from(self.size.samples),
            functions: functions.collect(),
        };
        let start = self.instant(hop);
        let profile = Profile {
            identity: Arc::clone(&pod.identity),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window: TimeRange { start, end: start.plus(Nanos(HOP.0 - 1)) },
            requests: None,
            names: Arc::clone(&self.names),
            samples: Samples::Folded { content: u128::from(pod.key) << 64 | u128::from(hop), cohorts: vec![part] },
        };
        let of_hop = i64::try_from(self.size.pods).unwrap_or(0);
        let offset = i64::try_from(hop).unwrap_or(0) * of_hop + i64::try_from(number).unwrap_or(0);
        let position = Position { source: "bench".into(), partition, offset, file: None };
        Decoded { position, stamped: Stamped::No, parts: vec![Ok(profile)], points: Vec::new() }
    }

    /// When a hop counted from 0 starts.
    fn instant(&self, number: u64) -> Nanos {
        let into_the_hour =
            if self.mix == Mix::Half { -(HOP.0 * i64::try_from(self.window * 2 / 3).unwrap_or(0)) } else { 0 };
        Nanos::from_seconds(HOUR).plus(Nanos(into_the_hour + HOP.0 * i64::try_from(number).unwrap_or(0)))
    }
}

fn pod(number: usize, size: Size, mix: Mix) -> Pod {
    let cells = size.cells.0 * size.cells.1;
    let (cell, place) = (number % cells, number / cells);
    let head = mix.is_head(cell, place);
    let name = format!("pod-{number}");
    let kind = if mix == Mix::Half { (place / 2) % size.kinds } else { 0 };
    let CellKey { region, cohort } = size.cell(cell);
    let identity = Identity {
        service: "video".into(),
        build: if head { BUILDS.0 } else { BUILDS.1 }.into(),
        region,
        cohort,
        hardware: match kind {
            0 => "m8i.2xlarge".into(),
            1 => "m8g.2xlarge".into(),
            more => format!("kind-{more}").as_str().into(),
        },
        node: None,
        pod: name.as_str().into(),
        process_start: Some(Nanos(0)),
    };
    Pod { identity: Arc::new(identity), cell, head, key: stable_hash(name.as_bytes()) }
}

/// The rank whose share falls like one over it: the whole part of (n + 1)^u, less 1; `scale` is ln(n + 1).
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the number of functions"
)]
#[must_use]
pub fn zipf(u: f64, scale: f64) -> u32 {
    ((u * scale).exp() as u32).saturating_sub(1)
}

/// A small generator (SplitMix64): same numbers everywhere, a nanosecond each.
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The sequence of a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits, by SplitMix64.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "53 bits are a float")]
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_the_head_pods_that_they_say() {
        let heads = |mix| Workload::new(MEDIUM, mix, 18, 6).pods.iter().filter(|pod| pod.head).count();
        assert_eq!(Mix::ALL.map(heads), [42, 84, 420]);
    }

    #[test]
    fn every_kind_of_machine_has_pods_of_both_builds_in_each_cell() {
        let fleet = Workload::new(Size { cells: (2, 1), kinds: 32, ..MEDIUM }, Mix::Half, 18, 6);
        let places = fleet.pods.iter().map(|pod| (pod.cell, pod.identity.hardware.clone(), pod.head));
        assert_eq!(places.collect::<std::collections::BTreeSet<_>>().len(), 2 * 32 * 2);
        assert_eq!(fleet.cells(), 2);
    }

    #[test]
    fn profiles_hold_their_samples_and_regressed_functions_more() {
        let fleet = Workload::new(MEDIUM, Mix::Half, 18, 6);
        let mut of_hit = [0, 0];
        for pod in fleet.pods.iter().filter(|pod| pod.cell == 0) {
            let samples = fleet.samples(pod, 3);
            assert!(samples.is_sorted_by(|a, b| a.0 < b.0), "{samples:?}");
            assert!((300..1000).contains(&samples.len()), "{} functions in 1,000 samples", samples.len());
            assert_eq!(samples.iter().map(|(_, count)| count).sum::<u32>(), 1000);
            of_hit[usize::from(pod.head)] +=
                samples.iter().filter(|(f, _)| *f == 3).map(|(_, count)| count).sum::<u32>();
        }
        assert!(of_hit[1] * 10 > of_hit[0] * 12, "{of_hit:?}");
    }
}
