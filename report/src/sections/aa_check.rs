//! The A/A check: how often the same tests were wrong on this very fleet.

use std::collections::BTreeSet;

use fleetdiff_diff::figures::grouped;
use fleetdiff_pipeline::rules::advice::plural;
use fleetdiff_schemas::rows::ComparisonRow;

use crate::AaCheckRate;
use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Section, Text, paragraph, words};
use crate::figures::total;
use crate::references::{Literal, References};
use crate::subject::Subject;

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let title = Some("Is the method right on this fleet?".to_owned());
    let checked: Vec<ComparisonRow> = comparison
        .records
        .checked
        .iter()
        .filter(|filed| Subject::of_key(&filed.row.comparison) == *comparison.subject)
        .map(|filed| filed.row.clone())
        .collect();
    let mut rate = AaCheckRate::default();
    rate.take(&checked);
    let introduction = "At each report the pods of the base are split in two and compared by the same tests (A/A check). Nothing \
                        differs between the halves, so whatever is significant there is a false positive. ";
    let Some((share, low, high)) = rate.rate() else {
        let text: Text = vec![words(introduction), words("It was not run: the base has too few pods.")];
        return Ok(Some(Section { title, blocks: vec![paragraph(text)] }));
    };
    let mut filter = comparison.subject.filter();
    let over_all = |column| (column, Literal::Text("*".to_owned()));
    filter.extend([over_all("region"), over_all("cohort")]);
    let sum = |count: u64, column, references: &mut References| {
        let citation = references.sum::<ComparisonRow>(column, filter.clone());
        total(i64::try_from(count).unwrap_or(i64::MAX), citation)
    };
    let times: BTreeSet<_> = checked.iter().map(|row| row.window_end_at).collect();
    let text: Text = vec![
        words(introduction),
        sum(rate.flags, "aa_check_flags", references),
        words(" of "),
        sum(rate.tests, "aa_check_tests", references),
        words(format!(
            " tests in {} {} were significant: {:.3} % (95 % interval {:.3} to {:.3} %). Windows of reports overlap, so the interval \
             assumes more independence than there is.",
            grouped(times.len()),
            plural(times.len(), "report"),
            100.0 * share,
            100.0 * low,
            100.0 * high
        )),
    ];
    Ok(Some(Section { title, blocks: vec![paragraph(text)] }))
}
