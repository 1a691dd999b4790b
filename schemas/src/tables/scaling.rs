//! The columns of `scaling`, one row per function, cell and build (or comparison) at each report, and the data of a finding.

use super::cells::blank_cell;
use super::rings::columns_in_rings;
use super::{Column, Columns, Holds, TableRow, columns_of};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::rows::{AtLoad, InRings, ScalingBasis, ScalingFindingRow, ScalingRow};
use crate::time::{Hop, Nanos};
use crate::verdict::{FlagState, ScalingVerdict, Severity};

impl TableRow for ScalingRow {
    const TABLE: &'static str = "scaling";
    const SORTED_BY: &'static [&'static str] = &[
        "service",
        "profile_type",
        "measure",
        "count_kind",
        "build",
        "base_build",
        "region",
        "cohort",
        "function",
        "window_end_at",
    ];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<ScalingRow> = Columns::new(|| {
            let mut columns = columns_of_identity();
            columns.extend(columns_of_basis());
            columns.extend(columns_of_test());
            columns.extend(columns_of_thirds());
            columns.extend(columns_of_verdict());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            profile_type: ProfileType::Cpu,
            measure: Measure::Samples,
            count_kind: CountKind::SelfCount,
            build: "".into(),
            base_build: None,
            cell: blank_cell(),
            function: "".into(),
            functions: None,
            window_start_at: Nanos(0),
            window_end_at: Nanos(0),
            basis: ScalingBasis::default(),
            count: 0,
            elasticity: None,
            base_elasticity: None,
            elasticity_difference: None,
            ln_p: None,
            q_value: None,
            low: AtLoad::default(),
            high: AtLoad::default(),
            g: None,
            ln_p_iid: None,
            verdict: ScalingVerdict::Withheld,
            reason: None,
            needed: None,
        }
    }

    fn filed_at(&self) -> Nanos {
        self.window_end_at
    }
}

/// Which function of which cell of which build, and over what time.
fn columns_of_identity() -> Vec<Column<ScalingRow>> {
    columns_of!(ScalingRow:
        "service": service => "The service.",
        "profile_type": profile_type => "What the profiler observed.",
        "measure": measure => "What one count stands for, as in `cells`.",
        "count_kind": count_kind => "`self` or `total`, as in `cells`. Each kind is a family of tests of its own.",
        "build": build => "The build that the row is about; where `base_build` is known, the head of a comparison.",
        "base_build": base_build =>
            "Null in a row about the build by itself. Otherwise the base with which it is compared, or several builds \
             joined by commas: `ln_p`, `q_value` and `verdict` are then about the difference of the two elasticities.",
        "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
        "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
        "function": function =>
            "Name of the function. `_rare` stands for all functions with fewer samples than `min_count` (30 by \
             default), `_unsymbolised` for frames without a symbol, `_overflow` for those above the limit of the service, `(all)` for all samples of the cell together.",
        "functions" in "functions": functions => "How many functions a `_rare` row stands for; null in all other rows.",
        "window_start_at": window_start_at => "Start of the first minute with requests, in event time.",
        "window_end_at": window_end_at =>
            "End of the hop at whose close the row was computed, in event time. Files are filed by it.",
    )
}

/// What was counted.
fn columns_of_basis() -> Vec<Column<ScalingRow>> {
    columns_of!(ScalingRow:
        "pods" in "pods": basis.pods =>
            "Pods of the build that served requests in the cell. Pods that may still be warming up (within 10 minutes of \
             their process start by default) are left out of the whole row.",
        "minutes" in "minutes": basis.minutes =>
            "Whole minutes within the window in which requests were served; the tests take each minute and bucket of \
             pods as one observation.",
        "requests" in "requests": basis.requests => "Requests served in these minutes.",
        "total" in "samples": basis.total => "Samples of all functions in these minutes.",
        "count" in "samples": count => "Samples of the function in these minutes.",
        "load_span" in "1": basis.load_span =>
            "Requests a pod and minute where they were highest, over where they were lowest; both are means over a \
             fifteenth of the time. At least 1; null without a minute with requests. Below 1.5 no elasticity is tested.",
        "persistence" in "1": basis.persistence =>
            "Correlation, from one minute to the next, of what functions cost beyond chance and load, over all functions; \
             0 to .95. The longer costs drift, the wider the intervals. Null where nothing is tested.",
        "df" in "1": basis.df =>
            "Degrees of freedom of the test: the smaller of pods (buckets) less 1 and of what `persistence` leaves of the \
             minutes. Null where nothing is tested.",
    )
}

/// The elasticity and its test.
fn columns_of_test() -> Vec<Column<ScalingRow>> {
    columns_of!(ScalingRow:
        "elasticity" in "1" +-: elasticity =>
            "By which power of load the samples per request grow: 0 if a request costs the same at any load, .3 if it costs \
             2^.3 = 1.23 times as much at twice the load, -1 if samples do not depend on requests at all. Null where \
             the function has too few samples or all of them at one end of the load. With the reason `load_is_time` it also \
             contains what time itself changed, and no interval covers that.",
        "base_elasticity" in "1" +-: base_elasticity => "The same of the base; null where `base_build` is.",
        "elasticity_difference" in "1" +-: elasticity_difference =>
            "`elasticity` less `base_elasticity`: above 0 the head scales worse. Null where `base_build` is null, or \
             either load can say nothing.",
        "ln_p" in "nats": ln_p =>
            "Natural logarithm of the p-value that the elasticity (with `base_build`: the difference) is at most .05 in \
             either direction. Null where the verdict is `withheld`.",
        "q_value" in "1": q_value =>
            "Smallest false-discovery rate at which the row is significant, 0 to 1. The family is all functions of the \
             build in the cell; with `base_build`, all functions in all cells of the comparison. Null where `ln_p` is.",
    )
}

/// Low and high load beside each other.
fn columns_of_thirds() -> Vec<Column<ScalingRow>> {
    columns_of!(ScalingRow:
        "share_low_load" in "1": low.share =>
            "Share of the function among all samples in the third of the minutes with the lowest load, 0 to 1. Null \
             without samples there.",
        "share_high_load" in "1": high.share => "The same in the third with the highest load; null without samples there.",
        "per_request_low_load" in "samples/request": low.per_request =>
            "Samples of the function per request in the third of the minutes with the lowest load. Null without \
             requests there.",
        "per_request_high_load" in "samples/request": high.per_request => "The same in the third with the highest load; null without requests there.",
        "g" in "nats*2": g =>
            "Log-likelihood ratio of the two shares, as `g` in `cells`. It decides nothing: one function whose cost does \
             not follow requests moves the shares of all others. Null for `(all)` and `_rare`, and without samples in one \
             of the thirds.",
        "ln_p_iid" in "nats": ln_p_iid => "Natural logarithm of the p-value of `g` if samples were independent; null where `g` is.",
    )
}

/// What follows.
fn columns_of_verdict() -> Vec<Column<ScalingRow>> {
    columns_of!(ScalingRow:
        "verdict": verdict =>
            "Without `base_build`: `more_expensive_under_load`, `cheaper_under_load`, `linear` (the interval lies within \
             .05 of 0) or `inconclusive`. With it: `scales_worse`, `scales_better`, `scales_equally` or `inconclusive`. \
             `withheld` where nothing can be said; `reason` says why.",
        "reason": reason => "Why the verdict is `withheld`, or `inconclusive` without a test. Null otherwise.",
        "needed": needed => "What would settle it, in words. Null where `reason` is.",
    )
}

impl Holds<InRings> for ScalingFindingRow {
    fn part(&self) -> &InRings {
        &self.rings
    }

    fn part_mut(&mut self) -> &mut InRings {
        &mut self.rings
    }
}

impl TableRow for ScalingFindingRow {
    const TABLE: &'static str = "scaling_findings";
    const SORTED_BY: &'static [&'static str] =
        &["service", "profile_type", "base_build", "head_build", "cause", "sequence"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<ScalingFindingRow> = Columns::new(|| {
            let mut columns = columns_of_finding();
            columns.extend(columns_of_found());
            columns.extend(columns_in_rings());
            columns.extend(columns_of_words());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            profile_type: ProfileType::Cpu,
            base_build: "".into(),
            head_build: "".into(),
            cause: "".into(),
            state: FlagState::Raised,
            severity: Severity::Ticket,
            raised_at: Nanos(0),
            changed_at: Nanos(0),
            sequence: Hop(0),
            scales_worse_in: Vec::new(),
            elasticity: None,
            base_elasticity: None,
            elasticity_difference: None,
            share_high_load: None,
            load_span: None,
            rings: InRings::default(),
            cleared_because: None,
            summary: String::new(),
            action: String::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.changed_at
    }
}

/// Which finding, and what happened to it.
fn columns_of_finding() -> Vec<Column<ScalingFindingRow>> {
    columns_of!(ScalingFindingRow:
        "service": service => "The service, within which builds are compared.",
        "profile_type": profile_type => "What the profiler observed.",
        "base_build": base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": head_build => "The canary: the build in question.",
        "cause": cause => "The function that scales worse in the head; `(all)` for all functions together.",
        "state": state =>
            "What happened at `changed_at`: `raised` when it was found first, `updated` when it was found in another cell or ring, \
             `cleared` when the comparison ended or later minutes showed both builds to scale equally.",
        "severity": severity => "Who should look: always `ticket`.",
        "raised_at": raised_at => "When it was found first, in event time.",
        "changed_at": changed_at => "End of the hop at whose close the change happened, in event time.",
        "sequence" in "hops": sequence =>
            "Number of that hop, counted from the Unix epoch; it grows from change to change.",
    )
}

/// What was found.
fn columns_of_found() -> Vec<Column<ScalingFindingRow>> {
    columns_of!(ScalingFindingRow:
        "scales_worse_in": scales_worse_in =>
            "Where it was found, in the fewest words, such as `Android-TV in ap-south-1 and ap-southeast-1`. Never empty.",
        "elasticity" in "1" +-: elasticity =>
            "`elasticity` of the row of `scaling` with the largest difference among these cells, never null.",
        "base_elasticity" in "1" +-: base_elasticity => "`base_elasticity` of that row, never null.",
        "elasticity_difference" in "1" +-: elasticity_difference => "`elasticity_difference` of that row, never null.",
        "share_high_load" in "1": share_high_load => "`share_high_load` of that row; null where that is.",
        "load_span" in "1": load_span => "`load_span` of that row; null where that is.",
    )
}

/// How it ended, and what it means.
fn columns_of_words() -> Vec<Column<ScalingFindingRow>> {
    columns_of!(ScalingFindingRow:
        "cleared_because": cleared_because =>
            "Why it was cleared: `comparison_closed`, `scales_equally`, or `found_in_another_ring`, whose finding goes on. Null unless \
             the state is `cleared`.",
        "summary": summary => "What was found, where and by how much, in a sentence that can be read alone.",
        "action": action => "What to do.",
    )
}
