//! What a service has done.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_report::AaCheckRate;
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::rows::{ClockRow, ComparisonKey, ComparisonRow, LimitRow, Tables};
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Limited;

use crate::output::Sent;

/// What was done so far, by the rows that were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Hops that had rows.
    pub(crate) hops: u64,
    /// The last of them.
    pub(crate) through: Hop,
    /// Records that were decoded.
    pub(crate) decoded: i64,
    /// Records of closed hops that were rejected, by reason.
    pub(crate) rejected: BTreeMap<Reason, u64>,
    /// Pods whose clock was wrong, as service/pod; at most [`NAMED`] of each kind.
    pub(crate) clocks: WrongClocks,
    /// Samples that were counted together for a limit, and the services that exceeded it.
    pub(crate) exceeded: BTreeMap<Limited, (u64, BTreeSet<Service>)>,
    /// Changes of flags.
    pub(crate) flags: u64,
    /// The rate of false positives.
    pub(crate) aa_check: AaCheckRate,
    /// Samples of closed hops that were not counted or late, by what became of them.
    pub(crate) samples: BTreeMap<&'static str, u64>,
    /// Evaluations of comparisons.
    pub(crate) looks: u64,
    /// Epochs of comparisons that were begun: each is a family of the live rule.
    pub(crate) families: u64,
    /// Comparisons that were evaluated at the last look.
    pub(crate) open: BTreeSet<ComparisonKey>,
    /// Cells that were evaluated at the last look, over all comparisons.
    pub(crate) cells: usize,
    /// Functions that were tested at the last look, over all cells.
    pub(crate) tested: i64,
    /// Alerts that were sent.
    pub(crate) alerts: u64,
    /// When the last was, since 1970.
    pub(crate) alerted_at: Option<Nanos>,
    /// Files that are complete.
    pub(crate) files: u64,
    /// When the last was, since 1970.
    pub(crate) flushed_at: Option<Nanos>,
    /// The last checkpoint, if there is one.
    pub(crate) checkpoint: Option<CheckpointDone>,
    /// Start of the epoch by service and builds: all types of profiles are one family.
    pub(crate) epochs: BTreeMap<(Service, Build, Build), Nanos>,
    /// The hop of the last look.
    pub(crate) looked_at: Hop,
}

impl Done {
    /// Adds the rows of a hop. There is a look every `look_hops`. Gives what is to be said of clocks that are wrong and of limits that
    /// are exceeded.
    pub(crate) fn take(&mut self, hop: Hop, tables: &Tables, look_hops: u64) -> Vec<String> {
        self.hops += 1;
        self.through = hop;
        self.decoded += tables.ledger.iter().map(|row| row.records_decoded).sum::<i64>();
        self.aa_check.take(&tables.comparisons);
        for row in &tables.rejected {
            *self.rejected.entry(row.rejection.reason).or_default() += 1;
        }
        self.flags += u64::try_from(tables.flags.len()).unwrap_or(0);
        for row in &tables.ledger {
            for (fate, samples) in [
                ("counted", row.samples_counted),
                ("late", row.samples_late_counted),
                ("too_late", row.samples_late_dropped),
                ("duplicate", row.samples_duplicate),
                ("superseded", row.samples_superseded),
                ("warm_up", row.samples_warm_up),
                ("drain", row.samples_drain),
                ("idle", row.samples_idle),
                ("rejected", row.samples_rejected),
            ] {
                *self.samples.entry(fate).or_default() += u64::try_from(samples).unwrap_or(0);
            }
        }
        if !tables.comparisons.is_empty() || hop >= self.looked_at.plus(look_hops) {
            self.looked_at = hop;
            self.look(&tables.comparisons);
        }
        let clocks = tables.clocks.iter().filter_map(|row| self.clocks.take(row));
        let mut said: Vec<String> = clocks.collect();
        said.extend(tables.limits.iter().filter_map(|row| self.exceed(row)));
        said
    }

    /// Takes a row of `limits` and gives what is to be said of it, if it is the first of its service.
    fn exceed(&mut self, row: &LimitRow) -> Option<String> {
        let (samples, services) = self.exceeded.entry(row.what).or_default();
        *samples += u64::try_from(row.samples).unwrap_or(0);
        let is_new = services.len() < NAMED && services.insert(row.service.clone());
        is_new.then(|| row.warning())
    }

    fn look(&mut self, rows: &[ComparisonRow]) {
        self.open = rows.iter().map(|row| row.comparison.clone()).collect();
        self.looks += u64::try_from(self.open.len()).unwrap_or(0);
        let cells = rows.iter().filter(|row| !row.is_roll_up);
        self.cells = cells.clone().map(|row| (&row.comparison, &row.cell)).collect::<BTreeSet<_>>().len();
        self.tested = cells.map(|row| row.functions_tested).sum();
        for row in rows {
            let ComparisonKey { service, base_build, head_build, .. } = &row.comparison;
            let of = (service.clone(), base_build.clone(), head_build.clone());
            if self.epochs.insert(of, row.window_start_at) != Some(row.window_start_at) {
                self.families += 1;
            }
        }
    }

    /// Adds what left the program.
    pub(crate) fn sent(&mut self, sent: &Sent, now: Nanos) {
        self.alerts += u64::try_from(sent.alerts).unwrap_or(0);
        self.files += u64::try_from(sent.files).unwrap_or(0);
        if sent.alerts > 0 {
            self.alerted_at = Some(now);
        }
        if sent.files > 0 {
            self.flushed_at = Some(now);
        }
    }
}

/// A checkpoint that is on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointDone {
    /// Everything before this is in it.
    pub(crate) through: Nanos,
    /// When it was written, since 1970.
    pub(crate) at: Nanos,
    /// Its size on disk.
    pub(crate) bytes: u64,
}

/// The most pods with a wrong clock, and services above a limit, that are kept, so that these need no memory without bound.
const NAMED: usize = 10_000;

/// Pods whose clock was wrong, as service/pod; at most [`NAMED`] of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrongClocks {
    pub(crate) ahead: BTreeSet<String>,
    pub(crate) behind: BTreeSet<String>,
}

impl WrongClocks {
    /// Takes a row of `clocks` and gives what is to be said of it, if it is the first of its pod.
    pub(crate) fn take(&mut self, row: &ClockRow) -> Option<String> {
        let (pods, direction) = if row.ahead > 0 { (&mut self.ahead, "ahead") } else { (&mut self.behind, "behind") };
        let pod = format!("{}/{}", row.service, row.pod);
        let is_new = pods.len() < NAMED && pods.insert(pod.clone());
        let seconds = row.ahead.unsigned_abs() / 1_000_000_000;
        is_new.then(|| {
            format!(
                "the clock of pod {pod} (build {}) is {seconds} s {direction}{}",
                row.build,
                if row.ahead > 0 { "" } else { ", or its profiles come so late" }
            )
        })
    }
}
