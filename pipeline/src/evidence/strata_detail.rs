//! Where and when arms ran, in words: the detail of a row that has nothing to be compared with, or only history.

use std::collections::BTreeSet;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::identity::{Build, Hardware};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{Hop, HopClock};
use serde::{Deserialize, Serialize};

use super::arms::CellArms;
use crate::counts::archive::HistoryStratum;

/// How many strata of an arm are named.
const STRATA_NAMED: usize = 3;

/// The strata of two arms that share none: time block (against history: the hour of the day) and kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrataDetail {
    head: BTreeSet<(Hop, Hardware)>,
    base: BTreeSet<(Hop, Hardware)>,
}

impl StrataDetail {
    /// The strata of the arms, unless they share one.
    pub fn of(arms: &CellArms<'_>) -> Option<Self> {
        let strata = |side| arms.strata_of(side).map(|(block, hardware)| (block, hardware.clone())).collect();
        (arms.kept == 0).then(|| Self { head: strata(Side::Head), base: strata(Side::Base) })
    }

    /// The strata of the head, unless both arms share one, and all that is kept of the base, at whatever hour.
    pub fn of_history(arms: &CellArms<'_>, history: &[HistoryStratum<'_>]) -> Option<Self> {
        let base = history.iter().map(|stratum| (Hop(stratum.hour), stratum.hardware.clone())).collect();
        Self::of(arms).map(|strata_detail| Self { base, ..strata_detail })
    }

    /// The strata of several cells; `None` unless all of them are given.
    pub fn of_cells<'a>(cells: impl Iterator<Item = Option<&'a Self>>) -> Option<Self> {
        cells.into_iter().try_fold(Self::default(), |mut all, cell| {
            let Self { head, base } = cell?;
            all.head.extend(head.iter().cloned());
            all.base.extend(base.iter().cloned());
            Some(all)
        })
    }

    /// The first strata of each arm, and how many more, by the start of their blocks.
    pub fn words(&self, clock: HopClock) -> String {
        self.each(|block| format!("from {}", rfc3339(clock.start_of(block))))
    }

    /// The same by the hour of the day.
    pub fn words_of_history(&self) -> String {
        self.each(|hour| format!("at hour {} UTC", hour.0))
    }

    fn each(&self, when: impl Fn(Hop) -> String) -> String {
        let arm = |strata: &BTreeSet<(Hop, Hardware)>| {
            let named: Vec<String> =
                strata.iter().take(STRATA_NAMED).map(|(hop, hardware)| format!("{hardware} {}", when(*hop))).collect();
            match strata.len().saturating_sub(named.len()) {
                0 if named.is_empty() => "none".to_owned(),
                0 => named.join(", "),
                more => format!("{} and {more} more", named.join(", ")),
            }
        };
        format!("head: {}; base: {}", arm(&self.head), arm(&self.base))
    }
}

/// Which history a base is: rows state it, so that the base is not mistaken for builds that run at the same time as the
/// head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    base: Build,
    /// The hours of the day, UTC, of strata that both arms share.
    pub hours: BTreeSet<u64>,
    /// The days since 1970 on which the base has samples in these strata.
    days: BTreeSet<u64>,
}

impl History {
    /// History of a base in the strata that arms share with it.
    pub fn of(base: Build, arms: &CellArms<'_>, history: &[HistoryStratum<'_>]) -> Self {
        let shared: BTreeSet<(Hop, &Hardware)> =
            if arms.kept > 0 { arms.strata_of(Side::Base).collect() } else { BTreeSet::new() };
        let used = || history.iter().filter(|stratum| shared.contains(&(Hop(stratum.hour), stratum.hardware)));
        Self {
            base,
            hours: used().map(|stratum| stratum.hour).collect(),
            days: used().flat_map(HistoryStratum::days).collect(),
        }
    }

    /// History of several cells; `None` unless there are any.
    pub fn of_cells<'a>(cells: impl Iterator<Item = &'a Self>) -> Option<Self> {
        cells.fold(None, |all: Option<Self>, cell| {
            let mut all = all.unwrap_or_else(|| Self { hours: BTreeSet::new(), days: BTreeSet::new(), ..cell.clone() });
            all.hours.extend(&cell.hours);
            all.days.extend(&cell.days);
            Some(all)
        })
    }

    /// In words: "base is the history of v41: hours 14, 15 UTC on 3 days".
    pub fn words(&self) -> String {
        let Self { base, hours, days } = self;
        let listed = hours.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let (hours_word, days_word) =
            (if hours.len() == 1 { "hour" } else { "hours" }, if days.len() == 1 { "day" } else { "days" });
        match hours.len() {
            0 => format!("base is the history of {base}"),
            _ => format!("base is the history of {base}: {hours_word} {listed} UTC on {} {days_word}", days.len()),
        }
    }
}
