//! The life cycle of flags: raised, updated, cleared.
//!
//! One state machine a comparison (service, base, head): a look goes in, changes come out. It holds the family of the live
//! rule: every row that was tested since the epoch began is a member, whatever its cell, type and kind, and the e-values of now
//! decide (e-BH), so that looking often costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::alert::flag_id;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, FlagRow};
use fleetdiff_schemas::time::{Hop, HopClock};
use fleetdiff_schemas::verdict::{FlagState, Severity, Support, Verdict};

use super::table::RaisedKey;
use super::verdict::{Decided, verdict};
use crate::evidence::row::RowEvidence;
use crate::statistics::evalue::e_bh;

/// What identifies a flag among those of one comparison.
pub type FlagKey = (ComparisonKey, CellKey, CountKind, u64);

/// One look at all cells of a comparison.
#[derive(Debug)]
pub struct Look {
    /// The hop that is closing.
    pub hop: Hop,
    /// First hop of the epoch.
    pub epoch: Hop,
    /// Rows tested at some look of this epoch.
    pub family: u64,
    /// Rows that may be raised or are watched since they once might have been, tested now.
    pub rows: Vec<RowEvidence>,
}

#[derive(Debug)]
struct Flag {
    raised: Hop,
    epoch: Hop,
    /// The row at the last look that tested it.
    now: RowEvidence,
    emitted: Emitted,
}

#[derive(Debug)]
struct Emitted {
    theta: f64,
    half_interval: Option<f64>,
    support: Support,
}

/// The flags of one comparison.
#[derive(Debug)]
pub struct LiveRule {
    clock: HopClock,
    q: f64,
    delta: f64,
    flags: BTreeMap<FlagKey, Flag>,
    /// Flags cleared in the epoch that is going on: not raised again before it ends.
    settled: BTreeSet<FlagKey>,
    epoch: Hop,
}

impl LiveRule {
    /// No flag is raised.
    pub fn new(clock: HopClock, q: f64, delta: f64) -> Self {
        Self { clock, q, delta, flags: BTreeMap::new(), settled: BTreeSet::new(), epoch: Hop(0) }
    }

    /// Takes a look and gives what changed, in the order of flags.
    pub fn look(&mut self, look: Look) -> Vec<FlagRow> {
        if self.epoch != look.epoch {
            self.epoch = look.epoch;
            self.settled.clear();
        }
        let mut rows: BTreeMap<FlagKey, RowEvidence> = look.rows.into_iter().map(|row| (key_of(&row), row)).collect();
        let rejected = self.rejected(&rows, look.family);
        let mut changes = self.follow(&mut rows, look.hop);
        for key in rejected {
            if let Some(row) = rows.remove(&key)
                && row.theta.abs() >= self.delta
                && !self.settled.contains(&key)
            {
                changes.push(self.raise(key, row, look.hop));
            }
        }
        changes.sort_by(|a, b| order(a).cmp(&order(b)));
        changes
    }

    /// Ends the comparison: every flag is cleared.
    pub fn close(&mut self, hop: Hop) -> Vec<FlagRow> {
        let flags = std::mem::take(&mut self.flags);
        let end = self.clock.end_of(hop);
        let ended = flags.into_values().map(|flag| {
            let mut change = self.change(&flag, FlagState::Cleared, hop);
            change.cleared_because = Some("comparison_closed".to_owned());
            change.row.window_end_at = end;
            change
        });
        let ended = ended.collect();
        self.settled.clear();
        ended
    }

    /// The raised flags of one type, for tables.
    pub fn raised(&self, comparison: &ComparisonKey) -> BTreeSet<RaisedKey> {
        let of_type = self.flags.keys().filter(|(key, ..)| key == comparison);
        of_type.map(|(_, cell, kind, hash)| (*kind, cell.clone(), *hash)).collect()
    }

    /// The raised rows of one type and kind, by cell, as last tested.
    pub fn rows<'a>(&'a self, comparison: &'a ComparisonKey, kind: CountKind) -> impl Iterator<Item = (&'a CellKey, &'a RowEvidence)> {
        let of_kind = self.flags.iter().filter(move |((key, _, of, _), _)| key == comparison && *of == kind);
        of_kind.map(|((_, cell, _, _), flag)| (cell, &flag.now))
    }

    fn rejected(&self, rows: &BTreeMap<FlagKey, RowEvidence>, family: u64) -> Vec<FlagKey> {
        let ln_e: Vec<f64> = rows.values().map(|row| row.row.ln_e.unwrap_or(f64::NAN)).collect();
        let called = e_bh(&ln_e, self.q, usize::try_from(family).unwrap_or(usize::MAX));
        rows.keys().zip(called).filter(|(_, called)| *called).map(|(key, _)| key.clone()).collect()
    }

    /// Moves raised flags on: takes their rows out of `rows` and gives what changed.
    fn follow(&mut self, rows: &mut BTreeMap<FlagKey, RowEvidence>, hop: Hop) -> Vec<FlagRow> {
        let mut changes = Vec::new();
        let keys: Vec<FlagKey> = self.flags.keys().cloned().collect();
        for key in keys {
            let Some(now) = rows.remove(&key) else { continue };
            let Some(mut flag) = self.flags.remove(&key) else { continue };
            flag.now = now;
            if self.epoch > flag.epoch && flag.now.row.support == Support::Firm && flag.now.alike {
                let mut change = self.change(&flag, FlagState::Cleared, hop);
                change.cleared_because = Some("equivalent".to_owned());
                changes.push(change);
                self.settled.insert(key);
                continue;
            }
            if has_moved(&flag) {
                flag.emitted = emitted(&flag.now);
                changes.push(self.change(&flag, FlagState::Updated, hop));
            }
            self.flags.insert(key, flag);
        }
        changes
    }

    fn raise(&mut self, key: FlagKey, now: RowEvidence, hop: Hop) -> FlagRow {
        let flag = Flag { raised: hop, epoch: self.epoch, emitted: emitted(&now), now };
        let change = self.change(&flag, FlagState::Raised, hop);
        self.flags.insert(key, flag);
        change
    }

    fn change(&self, flag: &Flag, state: FlagState, hop: Hop) -> FlagRow {
        let (verdict, reason) = verdict(&flag.now, Decided { called: true, share_moved: false }, self.delta);
        let row = CellRow { verdict, reason, ..flag.now.row.clone() };
        FlagRow {
            flag_id: flag_id(&row, flag.raised),
            severity: severity(verdict, row.support),
            row,
            state,
            raised_at: self.clock.end_of(flag.raised),
            sequence: hop,
            cleared_because: None,
            explains: Vec::new(),
        }
    }
}

fn key_of(evidence: &RowEvidence) -> FlagKey {
    let row = &evidence.row;
    (row.comparison.clone(), row.cell.clone(), row.count_kind, evidence.hash)
}

fn order(flag: &FlagRow) -> (&ComparisonKey, &CellKey, CountKind, &str) {
    (&flag.row.comparison, &flag.row.cell, flag.row.count_kind, &flag.row.function)
}

fn emitted(evidence: &RowEvidence) -> Emitted {
    let half = |low: f64, high: f64| (libm::log(high) - libm::log(low)) / 2.0;
    let interval = evidence.row.adjusted_ratio;
    Emitted {
        theta: evidence.theta,
        half_interval: interval.map(|interval| half(interval.low, interval.high)),
        support: evidence.row.support,
    }
}

/// Whether the effect moved by more than half the interval that was last announced, or other support carries it.
fn has_moved(flag: &Flag) -> bool {
    let by = (flag.now.theta - flag.emitted.theta).abs();
    flag.now.row.support != flag.emitted.support || flag.emitted.half_interval.is_some_and(|half| by > half)
}

fn severity(verdict: Verdict, support: Support) -> Severity {
    match (verdict, support) {
        (Verdict::Improved, _) => Severity::Info,
        (_, Support::Firm) => Severity::Page,
        _ => Severity::Ticket,
    }
}
