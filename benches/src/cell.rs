//! One cell, as the dataflow would hold it after a number of closed time blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_pipeline::counts::bucket::{Addition, Age};
use fleetdiff_pipeline::counts::cell::{Blocks, CellCounts};
use fleetdiff_pipeline::counts::encoding::{Entry, encode};
use fleetdiff_pipeline::counts::functions::FunctionTable;
use fleetdiff_pipeline::counts::ids::FunctionId;
use fleetdiff_pipeline::evidence::held::LookTime;
use fleetdiff_pipeline::evidence::view::{CellView, OnDemand};
use fleetdiff_schemas::comparison::{ComparisonId, OpenComparison};
use fleetdiff_schemas::config::{Config, Method};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey};
use fleetdiff_schemas::time::{Hop, Nanos};

use crate::plain::is_turn;
use crate::workload::{MEDIUM, Mix, Pod, Workload};

/// Hops of a time block: an hour.
const BLOCK: u64 = 360;
/// Hops of the open block so far.
const OPEN: u64 = 180;
/// The caller of a function: the one with a fourth of its rank, so that callers are popular too.
const CALLERS: u32 = 4;

/// A cell of the medium size: 19 pods with one profile each a hop, 20,000 functions, each sample a leaf and its caller.
#[derive(Debug)]
pub struct OneCell {
    /// Its counts.
    pub counts: CellCounts,
    /// What is compared in it, since the first block.
    pub comparison: OpenComparison,
    /// First hop of the block that is not closed.
    block: Hop,
    name: CellKey,
    hop: Hop,
    config: Config,
}

impl OneCell {
    /// A cell whose epoch has this number of closed blocks, all outside the window, and an open block within it. A pod
    /// serves `requests` requests for a thousand samples.
    #[must_use]
    pub fn after(closed: u64, mix: Mix, requests: u64) -> Self {
        let table = FunctionTable::default();
        let (mut counts, mut blocks) = (CellCounts::new(Config::default().clock(), None), Blocks::default());
        let profiles = Profiles::new(mix, requests, &table);
        let config = Config::default();
        let (block, hops) = (Hop(closed * BLOCK), closed * BLOCK + OPEN);
        for hop in (0..hops).map(Hop) {
            if hop.0.is_multiple_of(BLOCK) {
                blocks.begin(hop);
            }
            counts.add(profiles.of(hop), &blocks, &table);
            counts.expire(hop.plus(1).minus(config.window_hops()), Some(Hop(0)));
        }
        let id = ComparisonId { service: "video".into(), base: vec!["base".into()], head: "head".into() };
        Self {
            counts,
            comparison: OpenComparison { id, epoch: Hop(0) },
            block,
            name: profiles.fleet.cell(0),
            hop: Hop(hops - 1),
            config,
        }
    }

    /// A look at the cell, at which nothing makes it measure afresh what functions share, unless nothing is held.
    #[must_use]
    pub fn time_of_look(&self) -> LookTime {
        let number = u64::from(is_turn(&self.name, 0));
        LookTime { epoch: self.comparison.epoch, block: self.block, number, reports: false }
    }

    /// The cell as an evaluation sees it, with the program's defaults.
    #[must_use]
    pub fn view(&self) -> CellView<'_> {
        CellView {
            counts: &self.counts,
            cell: self.name.clone(),
            key: ComparisonKey {
                service: "video".into(),
                profile_type: ProfileType::Cpu,
                measure: ProfileType::Cpu.measure(),
                base_build: self.comparison.id.base_name(),
                head_build: self.comparison.id.head.clone(),
            },
            comparison: &self.comparison,
            hop: self.hop,
            window_hops: self.config.window_hops(),
            clock: self.config.clock(),
            young: self.config.young,
            min_count: 30.0,
            min_effect: self.config.min_effect,
            q: self.config.q,
            untested: [None; 2],
            method: Method::Honest,
            on_demand: OnDemand::default(),
        }
    }
}

/// The profiles of the cell, hop by hop.
#[derive(Debug)]
pub struct Profiles {
    fleet: Workload,
    ids: Vec<FunctionId>,
    requests: u64,
}

impl Profiles {
    /// Those of a cell in which a pod serves `requests` requests for a thousand samples.
    #[must_use]
    pub fn new(mix: Mix, requests: u64, table: &FunctionTable) -> Self {
        let fleet = Workload::new(MEDIUM, mix, 1, 1);
        let ids = table.intern(&(0..20_000).map(|f| Arc::clone(fleet.name(f))).collect::<Vec<_>>());
        Self { fleet, ids, requests }
    }

    /// One profile of each pod.
    #[must_use]
    pub fn of(&self, hop: Hop) -> Vec<Addition> {
        let pods = self.fleet.pods.iter().filter(|pod| pod.cell == 0);
        pods.map(|pod| addition(&self.fleet, pod, hop, &self.ids, self.requests)).collect()
    }
}

/// The profile of a pod in a hop: each sample is a leaf and its caller.
fn addition(fleet: &Workload, pod: &Pod, hop: Hop, ids: &[FunctionId], requests: u64) -> Addition {
    let mut counts: BTreeMap<FunctionId, (u64, u64)> = BTreeMap::new();
    for (function, samples) in fleet.samples(pod, hop.0) {
        let place = |function: u32| usize::try_from(function).map_or(0, |function| ids[function]);
        let own = counts.entry(place(function)).or_default();
        own.0 += u64::from(samples);
        own.1 += u64::from(samples);
        if function >= CALLERS {
            counts.entry(place(function / CALLERS)).or_default().1 += u64::from(samples);
        }
    }
    let entries: Vec<Entry> =
        counts.into_iter().map(|(function, (own, total))| Entry { function, own, total }).collect();
    Addition {
        own: hop,
        hardware: pod.identity.hardware.clone(),
        build: pod.identity.build.clone(),
        pod: pod.identity.pod.clone(),
        bucket: pod.identity.bucket(),
        started: Nanos(0),
        age: Age::Old,
        samples: u64::from(fleet.size.samples),
        requests: u64::from(fleet.size.samples) * requests / 1000,
        functions: encode(&entries),
        paths: Vec::new(),
        values: Vec::new(),
        value: 0,
    }
}
