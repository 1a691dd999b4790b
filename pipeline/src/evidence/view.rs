//! One cell as an evaluation sees it.

use std::cell::OnceCell;

use fleetdiff_schemas::comparison::{OpenComparison, Side};
use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{CellKey, ComparisonKey};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::{Scope, Support};
use fleetdiff_statistics::Untested;

use super::arm_facts::ArmFacts;
use super::arms::CellArms;
use super::gap::Gap;
use super::requests::RequestTests;
use super::row::RowFrame;
use super::strata_detail::StrataDetail;
use super::young::{Thresholds, YoungArms};
use crate::counts::cell::CellCounts;

/// One cell as an evaluation sees it.
#[derive(Debug)]
pub struct CellView<'a> {
    /// Its counts.
    pub counts: &'a CellCounts,
    /// Its name.
    pub cell: CellKey,
    /// What is compared in it.
    pub comparison: &'a OpenComparison,
    /// The same in words.
    pub key: ComparisonKey,
    /// The hop that is closing.
    pub hop: Hop,
    /// Hops in the window.
    pub window_hops: u64,
    /// The clock.
    pub clock: HopClock,
    /// How long a process is young.
    pub young: Nanos,
    /// Smallest combined count that is tested.
    pub min_count: f64,
    /// Smallest change that can be significant.
    pub min_effect: f64,
    /// False-discovery rate.
    pub q: f64,
    /// The cell's numbers of the functions that are never tested.
    pub untested: Untested,
    /// The method that decides which rows are significant.
    pub method: Method,
    /// What is found once it is asked for.
    pub on_demand: OnDemand<'a>,
}

/// What an evaluation finds in a cell once it is asked for; nothing at first.
#[derive(Debug, Default)]
pub struct OnDemand<'a> {
    /// What the pods of head and base did within the window.
    arm_facts: OnceCell<[ArmFacts<'a>; 2]>,
    /// How the arms' pods differ in load and age, measured or held from an earlier look.
    pub(super) gap: OnceCell<Gap>,
    /// Its young pods.
    young_arms: OnceCell<Option<YoungArms<'a>>>,
}

impl<'a> CellView<'a> {
    /// The young pods of both arms, if these arms have pods of different ages and history has some of the base.
    pub fn young_beside(&self, arms: &CellArms<'_>) -> Option<&YoungArms<'a>> {
        let Self { untested, min_count, min_effect, .. } = *self;
        let thresholds = Thresholds { untested, min_count, min_effect };
        let young = || YoungArms::of(self.counts, &self.comparison.id, self.clock, thresholds);
        if arms.across_ages { self.on_demand.young_arms.get_or_init(young).as_ref() } else { None }
    }

    /// What the pods of head and base did within the window.
    pub fn arm_facts(&self) -> &[ArmFacts<'a>; 2] {
        self.on_demand
            .arm_facts
            .get_or_init(|| Side::BOTH.map(|side| ArmFacts::of(self.counts, &self.comparison.id, side)))
    }

    /// How the arms' pods differ in load and age; a method that uses no strata does not ask.
    pub fn gap(&self) -> Gap {
        let measured = || match self.merges_strata() {
            true => Gap::default(),
            false => Gap::of(self.arm_facts(), self.key.profile_type, self.clock, self.hop),
        };
        *self.on_demand.gap.get_or_init(measured)
    }

    /// Cost per request of every function.
    pub(super) fn request_tests(&self, arms: &CellArms<'_>, kind: CountKind) -> RequestTests {
        RequestTests::of(&arms.contrast(kind, self.untested), self.min_effect)
    }

    /// Whether reports use merged counts: methods that are not calibrated do not use strata.
    pub(super) fn merges_strata(&self) -> bool {
        !self.method.is_calibrated()
    }

    /// Both arms as the method compares them.
    pub(super) fn arms(&self, scope: Scope) -> CellArms<'a> {
        let arms_of = if self.merges_strata() { CellArms::merged } else { CellArms::of };
        arms_of(self.counts, scope, self.comparison)
    }

    /// What rows of a scope and kind have in common.
    pub fn frame(&self, scope: Scope, kind: CountKind, arms: &CellArms<'_>, support: Support) -> RowFrame {
        let first = match scope {
            Scope::Window => self.hop.plus(1).minus(self.window_hops),
            Scope::Epoch => self.comparison.epoch,
        };
        let window_end_at = self.clock.end_of(self.hop);
        let old_at = || arms.first_young.map_or(window_end_at, |started| started.plus(self.young));
        RowFrame {
            scope,
            comparison: self.key.clone(),
            count_kind: kind,
            cell: self.cell.clone(),
            is_roll_up: false,
            window_start_at: self.clock.start_of(first),
            window_end_at,
            provisional_until_at: arms.across_ages.then(old_at),
            head: arms.figures(Side::Head),
            base: arms.figures(Side::Base),
            strata: arms.kept,
            support,
            window_seconds: self.clock.length_of(self.window_hops).as_seconds(),
            gap: self.gap(),
            strata_detail: self.strata_detail(arms).map(|strata_detail| strata_detail.words(self.clock)),
            history: None,
        }
    }

    /// Where the arms ran, if they share no stratum and the method distinguishes strata.
    pub(super) fn strata_detail(&self, arms: &CellArms<'_>) -> Option<StrataDetail> {
        StrataDetail::of(arms).filter(|_| !self.merges_strata())
    }
}
