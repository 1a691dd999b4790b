//! The page itself: one section per table, one line per column.

use fleetdiff_schemas::rows::{
    CallTreeRow, CellRow, ClockRow, ComparisonRow, EvidenceRow, FlagRow, FunctionNameRow, HeapRow, IncidentRow,
    LedgerRow, LimitRow, LoadCurveRow, PodCountsRow, RejectedRow, RingRow, ScalingRow, StackRow, WaitingRow,
};
use fleetdiff_schemas::tables::{Column, Kind, SCHEMA_VERSION, TableRow};

/// The whole page.
pub fn dictionary() -> String {
    let sections = [
        section::<CellRow>("One row per function, cell and comparison at each report: what the tests say of it.", 0),
        section::<EvidenceRow>(
            "One row per bucket of pods, arm and stratum of each row of `cells` that is significant or flagged: what its \
             figures can be recomputed from ([notebook.md](notebook.md), question 10). Which rows have evidence: \
             [semantics.md](semantics.md), section 16.",
            0,
        ),
        section::<FlagRow>(
            "One row per change of a flag. It has all columns of `cells`, with the row as it was last tested, and these:",
            CellRow::columns().len(),
        ),
        section::<ComparisonRow>("One row per comparison and cell at each look, and one over all cells.", 0),
        section::<IncidentRow>(
            "One row per change of an incident: all that one cause does in one comparison, or over all builds of a roll-out. Each row is also announced, \
             with its flags ([alerts.md](alerts.md)).",
            0,
        ),
        section::<ScalingRow>(
            "One row per function, cell and build at each report, if requests are known: how the cost of a request follows \
             load ([semantics.md](semantics.md), section 17). A build that is compared with another has a second row for it.",
            0,
        ),
        section::<LoadCurveRow>(
            "One row per minute and arm, at each report, of functions that cost more under load in a head than in its base \
             ([semantics.md](semantics.md), section 17).",
            0,
        ),
        section::<RingRow>(
            "One row per function, cell and build at each report, if at least three builds run side by side: what a function that is \
             significant between any two of them costs from build to build, against the one before it and against the first \
             ([semantics.md](semantics.md), section 18).",
            0,
        ),
        section::<HeapRow>(
            "One row per cell of a comparison at each report, and one per function that moved, if there are profiles of memory: what \
             requests allocate, what stays in use and whether it grows ([semantics.md](semantics.md), section 19).",
            0,
        ),
        section::<WaitingRow>(
            "One row per cell of a comparison at each report, and one per function or thread that moved, if there are profiles of waiting: \
             time on a processor and off it, by thread, and delays of locks ([semantics.md](semantics.md), section 20).",
            0,
        ),
        section::<StackRow>(
            "One row per stack of the cell in which most changed, for each comparison and type of profile, at each report at which a flag \
             stands; nothing where profiles came without stacks ([semantics.md](semantics.md), section 21).",
            0,
        ),
    ];
    format!("{}\n{}\n{}\n{}", introduction(), sections.join("\n"), of_input().join("\n"), of_archive().join("\n"))
}

/// Tables of the archive.
fn of_archive() -> [String; 3] {
    [
        section::<PodCountsRow>(
            "Of the archive ([archive.md](archive.md)), if there is one: one row per pod and cell, in each hop or 2, 4, 8, ... of them.",
            0,
        ),
        section::<FunctionNameRow>("Of the archive: one row per function that has samples in these hops.", 0),
        section::<CallTreeRow>("Of the archive: one row per build and cell with stacks, in these hops.", 0),
    ]
}

/// Tables about what came in.
fn of_input() -> [String; 4] {
    [
        section::<LedgerRow>("One row per hop and profile type: what came in and what became of it.", 0),
        section::<RejectedRow>("One row per record, or profile of a record, that was not counted.", 0),
        section::<ClockRow>(
            "One row per pod whose clock is wrong, at each hop at which such profiles of it are booked; only for topics \
             ([kafka.md](kafka.md)).",
            0,
        ),
        section::<LimitRow>(
            "One row per service and limit that it exceeds, at each hop at which something was counted together for it \
             ([limits.md](limits.md)).",
            0,
        ),
    ]
}

fn introduction() -> String {
    format!(
        "<!-- Generated: cargo run -p fleetdiff-schemas --example dictionary > docs/tables.md -->\n\
         # Tables: every column\n\
         An output folder has fifteen tables, as Parquet files `<table>/date=YYYY-MM-DD/hour=HH/<start>.parquet`. This page is\n\
         made of the same text that the files carry in their column metadata (keys `description` and `unit`). The columns\n\
         are those of schema version {SCHEMA_VERSION}, which each file names as `fleetdiff.schema_version`.\n\
         \n\
         - Head is the canary, base is the baseline. A cell is one region and cohort.\n\
         - Instants are UTC and event time. Shares and rates lie in 0..1. p-values are natural logarithms, because they\n\
         \x20 underflow: `ln_p` = -7 is p = 0.0009.\n\
         - Unknown is null, never 0, -1 or NaN. Numbers may be infinite. In the JSON of alerts infinite is null too.\n\
         - A row is *tested* if its function has at least `min_count` samples in both arms together and its `support` is not\n\
         \x20 `untestable`; rows `_rare`, `_unsymbolised` and `_overflow` are not, nor are rows settled before any test (`no_base`,\n\
         \x20 `no_common_stratum`, `whole_profile`). Rows `(all)` are tested per request only.\n\
         - How each figure is computed: [semantics.md](semantics.md). Queries to begin with: [notebook.md](notebook.md).\n"
    )
}

/// A table's columns, starting with the one at `first`.
fn section<R: TableRow>(about: &str, first: usize) -> String {
    let key: Vec<String> = R::SORTED_BY.iter().map(|name| format!("`{name}`")).collect();
    let lines: String = R::columns()[first..].iter().map(line).collect();
    format!(
        "## `{}`\n{about}\nSorted by {}.\n\n| column | type | unit | null | meaning |\n|---|---|---|---|---|\n{lines}",
        R::TABLE,
        key.join(", "),
    )
}

fn line<R>(column: &Column<R>) -> String {
    let Column { name, kind, nullable, description, unit, .. } = column;
    let null = if *nullable { "yes" } else { "" };
    format!("| `{name}` | {} | {} | {null} | {description}{} |\n", type_of(*kind), unit.unwrap_or(""), values_of(*kind))
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Name(_) => "text",
        Kind::Count => "int64",
        Kind::Number => "float64",
        Kind::Instant => "timestamp",
        Kind::Texts => "list of text",
        Kind::Counts => "list of int64",
        Kind::Truth => "boolean",
    }
}

fn values_of(kind: Kind) -> String {
    let Kind::Name(names) = kind else { return String::new() };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!(" Values: {}.", names.join(", "))
}
