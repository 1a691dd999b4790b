//! Every column has a description, and `docs/tables.md` is what the column lists generate.

#[path = "../examples/dictionary/page.rs"]
mod page;

use fleetdiff_schemas::rows::{
    CellRow, ComparisonRow, EvidenceRow, FlagRow, IncidentRow, LedgerRow, RejectedRow, RingRow, ScalingFindingRow,
    ScalingRow, VerdictRow,
};
use fleetdiff_schemas::tables::{DESCRIPTION_KEY, Kind, TableRow, UNIT_KEY, arrow_schema_of};

/// The law: the page in `docs` is what the column lists generate.
#[test]
fn the_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tables.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page == page::dictionary(),
        "docs/tables.md is not what the columns say; write it anew with \
         `cargo run -p fleetdiff-schemas --example dictionary > docs/tables.md`"
    );
}

fn assert_described<R: TableRow>() -> usize {
    for column in R::columns() {
        let name = format!("{}.{}", R::TABLE, column.name);
        let description = column.description;
        assert!(description.len() >= 10 && description.ends_with('.'), "{name} has no sentence: {description:?}");
        assert!(!description.contains("  "), "{name}: {description}");
        assert_eq!(
            column.unit.is_some(),
            matches!(column.kind, Kind::Count | Kind::Number),
            "{name}: numbers have a unit, and nothing else"
        );
        let says_when_null = description.contains("ull");
        assert!(says_when_null || !column.nullable, "{name} does not say when it is null");
    }
    R::columns().len()
}

#[test]
fn every_column_has_a_sentence_a_unit_and_says_when_it_is_null() {
    let columns = assert_described::<CellRow>()
        + assert_described::<EvidenceRow>()
        + assert_described::<FlagRow>()
        + assert_described::<ComparisonRow>()
        + assert_described::<IncidentRow>()
        + assert_described::<VerdictRow>()
        + assert_described::<ScalingRow>()
        + assert_described::<RingRow>()
        + assert_described::<ScalingFindingRow>()
        + assert_described::<LedgerRow>()
        + assert_described::<RejectedRow>();
    assert!(columns > 190, "only {columns} columns were looked at");
}

#[test]
fn the_arrow_schema_carries_description_and_unit() {
    let schema = arrow_schema_of::<FlagRow>();
    for (column, field) in FlagRow::columns().iter().zip(schema.fields()) {
        assert_eq!(field.metadata()[DESCRIPTION_KEY], column.description);
        assert_eq!(field.metadata().get(UNIT_KEY).map(String::as_str), column.unit, "{}", column.name);
    }
}
