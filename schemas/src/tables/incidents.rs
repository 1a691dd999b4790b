//! The columns of `incidents`, one row per change of an incident, and the data of a verdict. Both are also the data of
//! an alert.

use super::{Column, Columns, TableRow, columns_of};
use crate::rows::{IncidentRow, VerdictRow};
use crate::time::{Hop, Nanos};
use crate::verdict::{ComparisonVerdict, IncidentState, Severity, Support};

impl TableRow for IncidentRow {
    const TABLE: &'static str = "incidents";
    const SORTED_BY: &'static [&'static str] = &["service", "base_build", "head_build", "cause", "sequence"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<IncidentRow> = Columns::new(|| {
            let mut columns = columns_of_state();
            columns.extend(columns_of_effect());
            columns.extend(columns_of_words());
            columns
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            base_build: "".into(),
            head_build: "".into(),
            cause: String::new(),
            incident_id: String::new(),
            state: IncidentState::Raised,
            severity: Severity::Info,
            support: Support::Untestable,
            raised_at: Nanos(0),
            changed_at: Nanos(0),
            sequence: Hop(0),
            regressed_in: Vec::new(),
            improved_in: Vec::new(),
            effect: None,
            share: None,
            share_delta: None,
            always_valid_ln_p: None,
            explains: Vec::new(),
            introduced_by: None,
            found_in: Vec::new(),
            superseded_by: None,
            superseded_by_id: None,
            provisional_until_at: None,
            cleared_because: None,
            summary: String::new(),
            action: String::new(),
            confidence: String::new(),
            impact: String::new(),
            flags: Vec::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.changed_at
    }
}

/// Which incident, and what happened to it.
fn columns_of_state() -> Vec<Column<IncidentRow>> {
    columns_of!(IncidentRow:
        "service": service => "The service, within which builds are compared.",
        "base_build": base_build =>
            "The baseline: the build that the head is compared with, or several builds joined by commas.",
        "head_build": head_build => "The canary: the build in question.",
        "cause": cause =>
            "The function whose change is the cause, with its self and its total counts; `(all)` where all functions \
             together cost more or less per request. Service, head, base and cause are the key of the incident.",
        "incident_id": incident_id =>
            "Stable identity of the incident from raised to its end: 16 hexadecimal digits, a hash of its key and of \
             the hop at which it was raised.",
        "state": state =>
            "What happened at `changed_at`: `raised`; `updated` if one of its flags was raised, updated or cleared and \
             some still stand; `superseded` if another function turned out to be the cause; `cleared` if the rules \
             have cleared its last flag for another reason.",
        "severity": severity =>
            "Who should look: the most severe of the flags that stand, `page`, `ticket` or `info`. An incident that \
             ended keeps the severity that it had.",
        "support": support => "The best support of the most severe flags that stand, as `support` in `flags`.",
        "raised_at": raised_at => "When the incident was raised, in event time.",
        "changed_at": changed_at =>
            "End of the hop at whose close the change happened, in event time. Files are filed by it.",
        "sequence" in "hops": sequence =>
            "Number of that hop, counted from the Unix epoch; it grows from change to change of an incident. Rows of \
             `flags` with the same number caused the change.",
    )
}

/// Where the cause changed, and by how much.
fn columns_of_effect() -> Vec<Column<IncidentRow>> {
    columns_of!(IncidentRow:
        "regressed_in": regressed_in =>
            "Where the cause costs more, in the fewest words, such as `Android-TV in ap-south-1 and ap-southeast-1`. \
             May be empty, never null.",
        "improved_in": improved_in => "Where the cause is cheaper, in the fewest words. May be empty, never null.",
        "effect" in "1" +-: effect =>
            "How many times as expensive the cause is: `adjusted_ratio`, or for `(all)` `per_request_ratio`, of the \
             flag that stands for the incident, which is the most severe one, self before total, with the largest \
             change. Null where only one build has the function.",
        "share" in "1": share =>
            "Share of the cause among all samples of the head in the cell of that flag, 0 to 1. Null where the head \
             has no samples.",
        "share_delta" in "1" +-: share_delta =>
            "By how much that share is larger than the base's, -1 to 1. Null for `(all)`.",
        "always_valid_ln_p" in "nats": always_valid_ln_p =>
            "Natural logarithm of the smallest always-valid p-value of the flags that stand; at most 0. Null where \
             none has one.",
        "explains": explains =>
            "Rows of other functions that move only because the cause does: `name (kind)` for callers, `name (share)` \
             for functions whose share alone moved. They raise no incident of their own. May be empty, never null.",
        "introduced_by": introduced_by =>
            "The build that introduced the cause: it shows against the build before it in the roll-out. Null where that is not shown, \
             or builds are compared by name.",
        "found_in": found_in =>
            "The builds in whose comparisons the cause is flagged in the same direction, in the order of the roll-out: `head_build`, \
             and later ones that have it too and raise no incident of their own. May be empty in an incident that ended, never null.",
        "superseded_by": superseded_by =>
            "The cause of the incident that explains this one and goes on; the same cause where it goes on in another comparison of \
             the roll-out. Null unless the state is `superseded`.",
        "superseded_by_id": superseded_by_id =>
            "The `incident_id` of that incident. Null where `superseded_by` is null.",
        "provisional_until_at": provisional_until_at =>
            "Known while all of its flags are provisional: when the first young pods are no longer young, and what is \
             then still there is no warm-up. Null in all other rows.",
        "cleared_because": cleared_because =>
            "Why the last flags were cleared, as `cleared_because` in `flags`. Null unless the state is `cleared`.",
    )
}

/// What a person reads.
fn columns_of_words() -> Vec<Column<IncidentRow>> {
    columns_of!(IncidentRow:
        "summary": summary => "What happened, where and by how much, in a sentence that can be read alone.",
        "action": action =>
            "What to do: where to roll back, where the head may stay, and how long to wait, or how many pods \
             to add, elsewhere.",
        "confidence": confidence => "How sure the result is, and what that promises.",
        "impact": impact => "What the change costs, as a part of all samples of the cells.",
    )
}

impl TableRow for VerdictRow {
    const TABLE: &'static str = "verdicts";
    const SORTED_BY: &'static [&'static str] = &["service", "base_build", "head_build", "sequence"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<VerdictRow> = Columns::new(|| {
            columns_of!(VerdictRow:
                "service": service => "The service, within which builds are compared.",
                "base_build": base_build =>
                    "The baseline: the build that the head is compared with, or several builds joined by commas.",
                "head_build": head_build => "The canary: the build in question.",
                "verdict": verdict =>
                    "The first that holds: `not_comparable` if no cell can be compared; `regressed` if an incident \
                     costs more in any cell; `improved` if all functions together are cheaper per request in any \
                     cell; `clean` if every cell is; else `inconclusive`.",
                "changed_at": changed_at =>
                    "End of the hop at whose close the verdict, or the cells that it names, changed, in event time.",
                "sequence" in "hops": sequence =>
                    "Number of that hop, counted from the Unix epoch; it grows from change to change.",
                "regressed_in": regressed_in =>
                    "Where an incident costs more, in the fewest words. May be empty, never null.",
                "improved_in": improved_in =>
                    "Where all functions together are cheaper per request and nothing costs more. May be empty, \
                     never null.",
                "causes": causes => "The causes of the incidents that stand. May be empty, never null.",
                "summary": summary => "The verdict in a sentence: what is known of which cells.",
                "action": action =>
                    "What to do: where to roll back, where the head may stay, and how long to wait, or how \
                     many pods to add, elsewhere.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            service: "".into(),
            base_build: "".into(),
            head_build: "".into(),
            verdict: ComparisonVerdict::Inconclusive,
            changed_at: Nanos(0),
            sequence: Hop(0),
            regressed_in: Vec::new(),
            improved_in: Vec::new(),
            causes: Vec::new(),
            summary: String::new(),
            action: String::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.changed_at
    }
}
