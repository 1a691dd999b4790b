use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{ArmFigures, Interval};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::Scope;

use super::*;

fn key() -> ComparisonKey {
    let profile_type = ProfileType::Cpu;
    ComparisonKey {
        service: "shop".into(),
        profile_type,
        measure: profile_type.measure(),
        base_build: "v1".into(),
        head_build: "v2".into(),
    }
}

fn cell(region: &str) -> CellKey {
    CellKey { region: region.into(), cohort: "tv".into() }
}

/// A function that costs 10 % more, raised with firm support.
fn flag(function: &str, kind: CountKind, region: &str) -> FlagRow {
    let mut row = CellRow::untested(Scope::Epoch, key(), kind, cell(region), function.to_owned());
    row.adjusted_ratio = Some(Interval { value: 1.10, low: 1.07, high: 1.13 });
    row.share_delta = Some(Interval { value: 0.014, low: 0.010, high: 0.018 });
    row.always_valid_ln_p = Some(-20.0);
    row.support = Support::Firm;
    row.head = ArmFigures { count: 1_540, total: 10_000, share: Some(0.154), pods: 12, ..ArmFigures::default() };
    row.base = ArmFigures { count: 14_000, total: 100_000, share: Some(0.14), pods: 60, ..ArmFigures::default() };
    FlagRow {
        flag_id: format!("{function} {} {region}", kind.name()),
        row,
        state: FlagState::Raised,
        raised_at: Nanos(0),
        sequence: Hop(0),
        severity: Severity::Page,
        cleared_because: None,
        explains: Vec::new(),
    }
}

fn own(function: &str, region: &str) -> FlagRow {
    flag(function, CountKind::SelfCount, region)
}

fn total(function: &str, region: &str) -> FlagRow {
    flag(function, CountKind::Total, region)
}

fn cleared(flag: FlagRow, because: &str) -> FlagRow {
    FlagRow { state: FlagState::Cleared, cleared_because: Some(because.to_owned()), ..flag }
}

fn explained(mut flag: FlagRow, by: &str) -> FlagRow {
    flag.row.cause = Some(by.to_owned());
    cleared(flag, EXPLAINED)
}

/// A comparison in two cells, look by look.
struct Looks {
    incidents: Incidents,
    config: Config,
    hop: u64,
    verdicts: [ComparisonVerdict; 2],
    head_pods: i64,
}

impl Looks {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let incidents = Incidents::new("shop".into(), "v1".into(), "v2".into());
        Self { incidents, config, hop: 0, verdicts: [ComparisonVerdict::Inconclusive; 2], head_pods: 12 }
    }

    fn look(&mut self, flags: impl IntoIterator<Item = FlagRow>) -> Announced {
        self.hop += 1;
        let cells = ["north", "south"].into_iter().zip(self.verdicts);
        let comparisons = cells.map(|(region, verdict)| ComparisonRow {
            comparison: key(),
            cell: cell(region),
            verdict,
            head_pods: self.head_pods,
            base_pods: 60,
            ..ComparisonRow::blank()
        });
        let over_all = CellKey { region: "*".into(), cohort: "*".into() };
        let over_all = ComparisonRow { comparison: key(), cell: over_all, ..ComparisonRow::blank() };
        let news = News {
            flags: flags.into_iter().collect(),
            comparisons: comparisons.chain([over_all]).collect(),
            report: Vec::new(),
        };
        self.incidents.take(Hop(self.hop), news, &self.config)
    }

    /// The incidents of a look, by cause.
    fn changes(&mut self, flags: impl IntoIterator<Item = FlagRow>) -> Vec<(String, IncidentState)> {
        states(&self.look(flags).incidents)
    }
}

fn states(rows: &[IncidentRow]) -> Vec<(String, IncidentState)> {
    rows.iter().map(|row| (row.cause.clone(), row.state)).collect()
}

fn is(cause: &str, state: IncidentState) -> (String, IncidentState) {
    (cause.to_owned(), state)
}

#[test]
fn a_function_in_two_cells_and_both_kinds_is_one_incident() {
    let mut looks = Looks::new();
    let first = looks.look([own("encode", "north")]).incidents;
    assert_eq!(states(&first), [is("encode", IncidentState::Raised)]);
    assert_eq!(first[0].regressed_in, ["tv in north"]);
    let second = looks.look([own("encode", "south"), total("encode", "north")]).incidents;
    assert_eq!(states(&second), [is("encode", IncidentState::Updated)]);
    assert_eq!((&second[0].incident_id, second[0].raised_at), (&first[0].incident_id, first[0].raised_at));
    assert_eq!(second[0].regressed_in, ["all cells"]);
    assert_eq!(second[0].flags.len(), 3);
    assert_eq!(looks.changes([]), [], "nothing changed");
}

#[test]
fn total_counts_wait_three_looks() {
    let mut looks = Looks::new();
    assert_eq!(looks.changes([total("main", "north")]), []);
    assert_eq!(looks.changes([total("main", "south")]), []);
    assert_eq!(looks.changes([]), []);
    let raised = looks.look([]).incidents;
    assert_eq!(states(&raised), [is("main", IncidentState::Raised)]);
    assert_eq!(raised[0].regressed_in, ["all cells"], "with what waited less");
    let expected = "main with all that it calls costs 10 % more (7 to 13 %) in tv in north and 10 % more (7 to 13 %) in tv in south;";
    assert!(raised[0].summary.starts_with(expected), "{raised:?}");
}

#[test]
fn hops_without_a_look_are_not_waited_for() {
    let mut looks = Looks::new();
    looks.look([total("main", "north")]);
    for hop in 2..10 {
        assert_eq!(looks.incidents.take(Hop(hop), News::default(), &looks.config), Announced::default());
    }
    let only_total = Config { count_kinds: vec![CountKind::Total], ..Config::default() };
    let changes = Looks::with(only_total).changes([total("main", "north")]);
    assert_eq!(changes, [is("main", IncidentState::Raised)], "there are no self counts to wait for");
}

#[test]
fn a_caller_that_finds_its_cause_in_time_is_no_incident() {
    let mut looks = Looks::new();
    assert_eq!(looks.changes([total("main", "north")]), []);
    assert_eq!(looks.changes([]), []);
    let raised = looks.look([own("encode", "north"), explained(total("main", "north"), "encode")]).incidents;
    assert_eq!(states(&raised), [is("encode", IncidentState::Raised)]);
    assert_eq!(raised[0].explains, ["main (total)"]);
    assert_eq!(looks.changes([]), []);
    assert_eq!(looks.changes([]), []);
}

#[test]
fn a_caller_that_finds_its_cause_later_is_superseded_and_not_cleared() {
    let mut looks = Looks::new();
    looks.look([total("main", "north")]);
    looks.look([]);
    looks.look([]);
    assert_eq!(looks.changes([]), [is("main", IncidentState::Raised)]);
    let rows = looks.look([own("encode", "north"), explained(total("main", "north"), "encode")]).incidents;
    assert_eq!(states(&rows), [is("encode", IncidentState::Raised), is("main", IncidentState::Superseded)]);
    assert_eq!(rows[1].superseded_by.as_deref(), Some("encode"));
    assert_eq!(rows[1].superseded_by_id.as_ref(), Some(&rows[0].incident_id));
    assert_eq!((rows[1].cleared_because.as_ref(), rows[1].severity), (None, Severity::Page));
    assert_eq!(rows[1].flags.len(), 1, "the row that was explained");
    assert_eq!(rows[1].action, "See the incident of encode.");
    assert_eq!(rows[0].explains, ["main (total)"]);
}

/// The cause of a known incident waits no longer: otherwise the link would lead nowhere.
#[test]
fn a_caller_below_that_explains_an_incident_is_raised_at_once() {
    let mut looks = Looks::new();
    looks.look([total("main", "north")]);
    looks.look([]);
    looks.look([]);
    looks.look([]);
    let rows = looks.look([total("handle", "north"), explained(total("main", "north"), "handle")]).incidents;
    assert_eq!(states(&rows), [is("handle", IncidentState::Raised), is("main", IncidentState::Superseded)]);
    assert_eq!(rows[1].superseded_by_id.as_ref(), Some(&rows[0].incident_id));
}

#[test]
fn a_total_row_explained_by_its_own_self_row_stays_in_its_incident() {
    let mut looks = Looks::new();
    looks.look([own("encode", "north"), total("encode", "north")]);
    let rows = looks.look([explained(total("encode", "north"), "encode")]).incidents;
    assert_eq!(states(&rows), [is("encode", IncidentState::Updated)]);
    assert_eq!((rows[0].flags.len(), rows[0].explains.len()), (1, 0));
}

#[test]
fn an_incident_is_cleared_when_all_of_its_flags_are() {
    let mut looks = Looks::new();
    looks.look([own("encode", "north"), own("encode", "south")]);
    let rows = looks.look([cleared(own("encode", "north"), "equivalent")]).incidents;
    assert_eq!(states(&rows), [is("encode", IncidentState::Updated)]);
    assert_eq!(rows[0].regressed_in, ["tv in south"]);
    let rows = looks.look([cleared(own("encode", "south"), "equivalent")]).incidents;
    assert_eq!(states(&rows), [is("encode", IncidentState::Cleared)]);
    assert_eq!(rows[0].cleared_because.as_deref(), Some("equivalent"));
    assert_eq!((rows[0].superseded_by.as_ref(), rows[0].severity), (None, Severity::Page));
    let again = looks.look([own("encode", "south")]).incidents;
    assert_eq!(states(&again), [is("encode", IncidentState::Raised)]);
    assert_ne!(again[0].incident_id, rows[0].incident_id);
}

#[test]
fn the_end_of_a_comparison_clears_what_stands_and_forgets_what_waits() {
    let mut looks = Looks::new();
    looks.look([own("encode", "north"), total("main", "north")]);
    let closed = [own("encode", "north"), total("main", "north")].map(|flag| cleared(flag, "comparison_closed"));
    let rows = looks.incidents.close(Hop(9), closed.into(), &looks.config);
    assert_eq!(states(&rows), [is("encode", IncidentState::Cleared)]);
    assert_eq!(rows[0].sequence, Hop(9));
    assert!(rows[0].summary.contains("one of the builds has no pods any more"), "{}", rows[0].summary);
}

#[test]
fn the_most_severe_row_decides_severity_and_the_numbers() {
    let mut looks = Looks::new();
    let mut cheaper = own("encode", "north");
    cheaper.severity = Severity::Info;
    cheaper.row.adjusted_ratio = Some(Interval { value: 0.5, low: 0.4, high: 0.6 });
    let mut few = own("encode", "south");
    few.severity = Severity::Ticket;
    few.row.support = Support::Tentative;
    let row = looks.look([cheaper, few]).incidents.remove(0);
    assert_eq!((row.severity, row.support), (Severity::Ticket, Support::Tentative));
    assert_eq!(row.effect.map(|effect| effect.value), Some(1.10));
    assert_eq!((row.regressed_in, row.improved_in), (vec!["tv in south".to_owned()], vec!["tv in north".to_owned()]));
    assert!(
        row.summary.starts_with("encode costs 10 % more (7 to 13 %) in tv in south, and costs 50 % less"),
        "{}",
        row.summary
    );
}

#[test]
fn an_incident_can_be_read_alone() {
    let mut looks = Looks::new();
    looks.verdicts = [ComparisonVerdict::Regressed, ComparisonVerdict::Clean];
    let row = looks.look([own("encode", "north")]).incidents.remove(0);
    assert_eq!(
        row.summary,
        "encode costs 10 % more (7 to 13 %) in tv in north; it takes 15.4 % of the cpu samples of v2 in tv in north (shop v2 \
         against v1)."
    );
    assert_eq!(row.action, "Roll back v2 in tv in north. v2 may stay in tv in south.");
    let actions: Vec<Option<String>> = looks.look([]).comparisons.into_iter().map(|row| row.action).collect();
    assert_eq!(actions, [None, None, Some(row.action)], "the advice over all cells, since there is no other incident");
    assert_eq!(row.impact, "+1.40 % (1.00 to 1.80 %) of all cpu samples in tv in north.");
    assert_eq!(
        row.confidence,
        "Always-valid p-value: 2e-9. It holds however often and whenever one looks. Where nothing changed, at most 5 % of \
         comparisons raise any incident within 6 hours. Support is firm: at least 5 pods of each build."
    );
}

#[test]
fn few_pods_are_to_be_repeated_and_other_causes_are_named() {
    let mut looks = Looks { head_pods: 3, ..Looks::new() };
    let mut few = own("encode", "north");
    few.row.support = Support::Tentative;
    few.row.head.pods = 3;
    few.severity = Severity::Ticket;
    let rows = looks.look([few, own("parse", "south")]).incidents;
    assert_eq!(
        rows[0].action,
        "Repeat with more pods in tv in north before v2 is rolled back there: 3 against 60 pods are few, and firm support \
         needs 5 of each build. See the incidents of parse in tv in south."
    );
    assert_eq!(rows[1].action, "Roll back v2 in tv in south. See the incidents of encode in tv in north.");
}

#[test]
fn a_verdict_is_announced_once_and_corrected() {
    let mut looks = Looks::new();
    assert_eq!(looks.look([]).verdict, None, "an inconclusive comparison is not announced");
    let first = looks.look([own("encode", "north")]).verdict.unwrap();
    assert_eq!((first.verdict, first.regressed_in), (ComparisonVerdict::Regressed, vec!["tv in north".to_owned()]));
    assert_eq!(
        first.summary,
        "shop v2 against v1: regressed in 1 of 2 cells (tv in north); inconclusive in 1 of 2 cells (tv in south)."
    );
    assert_eq!(looks.look([total("main", "south")]).verdict, None, "a caller that waits is no verdict");
    let second = looks.look([own("encode", "south"), explained(total("main", "south"), "encode")]).verdict.unwrap();
    assert_eq!((second.regressed_in, second.causes), (vec!["all cells".to_owned()], vec!["encode".to_owned()]));
    assert_eq!(looks.look([]).verdict, None);
    looks.verdicts = [ComparisonVerdict::Clean; 2];
    let ended = ["north", "south"].map(|region| cleared(own("encode", region), "equivalent"));
    let last = looks.look(ended).verdict.unwrap();
    assert_eq!(
        (last.verdict, last.action.as_str()),
        (ComparisonVerdict::Clean, "Nothing has to be rolled back. v2 may stay in all cells.")
    );
}

#[test]
fn all_functions_together_that_are_cheaper_improve_a_cell() {
    let mut looks = Looks::new();
    looks.verdicts = [ComparisonVerdict::Improved, ComparisonVerdict::Inconclusive];
    let mut all = own(ALL_FUNCTIONS, "north");
    all.severity = Severity::Info;
    all.row.adjusted_ratio = None;
    all.row.per_request_ratio = Some(Interval { value: 0.9, low: 0.88, high: 0.92 });
    let announced = looks.look([all]);
    let verdict = announced.verdict.unwrap();
    assert_eq!((verdict.verdict, verdict.improved_in), (ComparisonVerdict::Improved, vec!["tv in north".to_owned()]));
    let row = &announced.incidents[0];
    assert!(
        row.summary.starts_with("A request, all functions together, costs 10 % less (8 to 12 %) in tv in north (shop"),
        "{}",
        row.summary
    );
    assert_eq!(
        (row.share_delta, row.impact.as_str()),
        (None, "Each request costs 10 % less (8 to 12 %) in tv in north.")
    );
}

#[test]
fn a_function_that_is_new_in_one_cell_and_grew_in_another_is_said_to_be_so() {
    let mut looks = Looks::new();
    let mut new = own("encode", "south");
    new.row.adjusted_ratio = None;
    new.row.base = ArmFigures { count: 0, share: Some(0.0), ..new.row.base };
    let row = looks.look([own("encode", "north"), new]).incidents.remove(0);
    let expected = "encode costs 10 % more (7 to 13 %) in tv in north, and is new in v2 in tv in south; it takes";
    assert!(row.summary.starts_with(expected), "{}", row.summary);
}

/// More cells than are listed one by one have their range.
#[test]
fn many_cells_have_their_range() {
    let mut looks = Looks::new();
    let regions = ["a", "b", "c", "d"];
    let mut flags = regions.map(|region| own("encode", region));
    flags[1].row.adjusted_ratio = Some(Interval { value: 1.20, low: 1.15, high: 1.25 });
    let row = looks.look(flags).incidents.remove(0);
    let expected = "encode costs 10 to 20 % more (intervals from 7 to 25 %) in tv in a, b, c and d";
    assert!(row.summary.starts_with(expected), "{}", row.summary);
    assert!(row.impact.starts_with("+1.40 to +1.40 % of all cpu samples in 4 cells"), "{}", row.impact);
}

#[test]
fn what_rests_on_young_pods_is_provisional_until_it_is_confirmed() {
    let mut looks = Looks::new();
    let young = |region| {
        let mut flag = own("encode", region);
        flag.row.provisional_until_at = Some(Nanos::from_seconds(600));
        FlagRow { severity: Severity::Ticket, ..flag }
    };
    let raised = looks.look([young("north"), young("south")]);
    let incident = &raised.incidents[0];
    assert_eq!(incident.provisional_until_at, Some(Nanos::from_seconds(600)));
    assert_eq!(incident.severity, Severity::Ticket);
    assert!(
        incident.summary.contains("a warm-up cannot be excluded before 1970-01-01T00:10:00Z"),
        "{}",
        incident.summary
    );
    assert!(!incident.summary.contains("when they were as young"), "{}", incident.summary);
    let against_young = |region| {
        let mut flag = young(region);
        flag.row.young_ln_p = Some(-20.0);
        flag
    };
    let also = &Looks::new().look([against_young("north"), against_young("south")]).incidents[0];
    assert!(
        also.summary.contains("00:10:00Z; pods of v1 did not show this when they were as young ("),
        "{}",
        also.summary
    );
    let verdict = raised.verdict.expect("the first verdict");
    assert_eq!(verdict.verdict, ComparisonVerdict::Regressed);
    for action in [&incident.action, &verdict.action] {
        assert!(
            action.starts_with("Wait until 1970-01-01T00:10:00Z before v2 is rolled back in all cells: "),
            "{action}"
        );
        assert!(!action.contains("Roll back"), "{action}");
    }

    let confirmed = looks.look([FlagRow { state: FlagState::Updated, ..own("encode", "north") }]);
    let incident = &confirmed.incidents[0];
    assert_eq!((incident.state, incident.severity), (IncidentState::Updated, Severity::Page));
    assert_eq!(incident.provisional_until_at, None);
    assert!(!incident.summary.contains("provisional"), "{}", incident.summary);
    let verdict = confirmed.verdict.expect("where to roll back is news");
    for action in [&incident.action, &verdict.action] {
        assert!(action.starts_with("Roll back v2 in tv in north. Wait until"), "{action}");
    }

    let gone = looks.look([cleared(young("south"), "warm_up"), cleared(own("encode", "north"), "equivalent")]);
    assert_eq!(states(&gone.incidents), [is("encode", IncidentState::Cleared)]);
}

/// Memory in use "costs" nothing, and neither does waiting.
#[test]
fn regression_verbs_follow_the_type_of_profile() {
    for (profile_type, does) in [
        (ProfileType::Cpu, "costs"),
        (ProfileType::Heap, "allocates"),
        (ProfileType::LiveHeap, "holds"),
        (ProfileType::Wall, "waits"),
        (ProfileType::Mutex, "keeps others waiting"),
    ] {
        let mut more = own("encode", "north");
        more.row.comparison.profile_type = profile_type;
        let row = Looks::new().look([more]).incidents.remove(0);
        assert!(row.summary.starts_with(&format!("encode {does} 10 % more (7 to 13 %)")), "{}", row.summary);
    }
}

/// The name of a kernel function alone says nothing to whoever does not write kernels.
#[test]
fn regression_kernel_functions_are_named_with_their_callers() {
    let mut waits = own("__schedule_[k] @ main", "north");
    waits.explains =
        ["do_fsync_[k] @ main (total)", "fsync @ main (total)", "poll @ main (share)"].map(str::to_owned).into();
    let row = Looks::new().look([waits]).incidents.remove(0);
    assert!(row.summary.starts_with("__schedule_[k] @ main, in the kernel below fsync, costs 10 %"), "{}", row.summary);
}

/// What is gone "took 0 %" of the samples.
#[test]
fn regression_what_is_gone_takes_no_share() {
    let mut gone = own("encode", "north");
    (gone.severity, gone.row.adjusted_ratio) = (Severity::Info, None);
    (gone.row.head.count, gone.row.head.share) = (0, Some(0.0));
    let row = Looks::new().look([gone]).incidents.remove(0);
    assert_eq!(row.summary, "encode is gone in v2 in tv in north (shop v2 against v1).");
    let mut rare = own("encode", "north");
    rare.row.head.share = Some(0.0001);
    let row = Looks::new().look([rare]).incidents.remove(0);
    assert!(row.summary.contains("it takes less than 0.1 % of the cpu samples"), "{}", row.summary);
}

/// Advice had the pods of the look at which a flag changed last, and the tables those of now.
#[test]
fn regression_advice_counts_the_pods_of_now() {
    let mut few = own("encode", "north");
    (few.severity, few.row.support, few.row.head.pods) = (Severity::Ticket, Support::Tentative, 2);
    let row = Looks { head_pods: 4, ..Looks::new() }.look([few]).incidents.remove(0);
    assert!(row.action.contains(": 4 against 60 pods are few"), "{}", row.action);
    assert!(row.confidence.contains("Support is tentative: 4 against 60 pods;"), "{}", row.confidence);
}
