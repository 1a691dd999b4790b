//! Whether differences are found and reported at the right place.

use fleetdiff_oracle::{batch, compare};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::verdict::Severity;

use crate::fleets::{in_order, named, pods, steady};

fn tables() -> Tables {
    let head = steady(&pods("B", 5), 0, 8, &[("main;x", 300), ("main;y", 700)]);
    let base = steady(&pods("A", 5), 0, 8, &[("main;x", 200), ("main;y", 800)]);
    batch(&named("A", "B"), &in_order(head.into_iter().chain(base)))
}

#[test]
fn oracle_compare_says_how_much_agreed() {
    let tables = tables();
    let mut shuffled = tables.clone();
    shuffled.cells.reverse();
    shuffled.cells[0].ln_p = shuffled.cells[0].ln_p.map(|ln_p| ln_p * (1.0 + 1e-9));
    shuffled.comparisons[0].sentence = "words are not compared".to_owned();
    let agreement = compare(&tables, &shuffled).unwrap();
    assert_eq!(agreement.cells, tables.cells.len());
    assert!(
        agreement.tested > 0
            && agreement.selected > 0
            && agreement.evidence > 0
            && agreement.flags > 0
            && agreement.comparisons > 0
            && agreement.ledger > 0
    );
}

#[test]
fn oracle_compare_reports_each_kind_of_difference() {
    let tables = tables();
    let tested = tables.cells.iter().position(|row| row.ln_p.is_some()).unwrap();
    type Change<'a> = (&'a str, &'a str, Box<dyn Fn(&mut Tables)>);
    let changes: [Change<'_>; 10] = [
        ("cells", "ln_p:", Box::new(move |t| t.cells[tested].ln_p = t.cells[tested].ln_p.map(|p| p * (1.0 + 1e-7)))),
        (
            "cells",
            "adjusted_ratio_high",
            Box::new(move |t| t.cells[tested].adjusted_ratio.as_mut().unwrap().high = f64::INFINITY),
        ),
        ("cells", "q_value", Box::new(move |t| t.cells[tested].q_value = None)),
        ("cells", "head_pods", Box::new(|t| t.cells[0].head.pods += 1)),
        ("cells", "missing", Box::new(|t| drop(t.cells.pop()))),
        ("evidence", "pod_variance", Box::new(|t| t.evidence[0].shared.pod_variance += 1e-6)),
        ("evidence", "missing", Box::new(|t| drop(t.evidence.pop()))),
        ("flags", "not expected", Box::new(|t| t.flags[0].row.function = "other".to_owned())),
        ("flags", "severity", Box::new(|t| t.flags[0].severity = Severity::Ticket)),
        ("ledger", "samples_counted", Box::new(|t| t.ledger[0].samples_counted += 1)),
    ];
    for (table, column, change) in changes {
        let mut changed = tables.clone();
        change(&mut changed);
        let report = compare(&tables, &changed).unwrap_err();
        assert!(report.contains(table) && report.contains(column), "{table} {column}: {report}");
    }
}

#[test]
fn oracle_compare_is_less_strict_far_out_in_the_tail() {
    let tables = tables();
    let tested = tables.cells.iter().position(|row| row.ln_p.is_some()).unwrap();
    let with = |ln_p: f64| {
        let mut changed = tables.clone();
        changed.cells[tested].ln_p = Some(ln_p);
        changed
    };
    assert!(compare(&with(-500.0), &with(-500.0 * (1.0 + 5e-7))).is_ok());
    assert!(compare(&with(-400.0), &with(-400.0 * (1.0 + 5e-7))).is_err());
    assert!(compare(&with(f64::NEG_INFINITY), &with(f64::NEG_INFINITY)).is_ok());
    assert!(compare(&with(f64::NEG_INFINITY), &with(-1e300)).is_err());
}
