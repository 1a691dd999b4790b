//! What a request costs across load, minute by minute, in functions that cost more under load in the head.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::rows::{LoadCurveRow, ScalingRow};

use crate::chart::{Minute, Undrawn, load_curve};
use crate::comparison::Comparison;
use crate::document::{Block, Chart, Text, Tone, name, words};
use crate::figures::figure;
use crate::records::Filed;
use crate::references::References;

/// Functions with a picture.
const DRAWN: usize = 4;

/// A picture for each of the first of these rows; none if there are no minutes.
pub(super) fn charts(
    comparison: &Comparison<'_>,
    worse: &[&Filed<ScalingRow>],
    references: &mut References,
) -> Result<Option<Block>, Undrawn> {
    let mut charts = Vec::new();
    for filed in worse.iter().take(DRAWN) {
        let minutes: Vec<&Filed<LoadCurveRow>> = comparison.load_curve(&filed.row).collect();
        if minutes.is_empty() {
            continue;
        }
        let place = comparison.place(&filed.row.cell);
        let dots: Vec<Minute> = minutes.iter().map(|minute| dot(&minute.row)).collect();
        let describes =
            format!("{} in {place}: samples a request across requests a pod in a minute", filed.row.function);
        charts.push(Chart {
            title: vec![name(&*filed.row.function), words(format!(" under load, in {place}"))],
            caption: vec![words(format!(
                "One dot for each minute: filled {}, hollow {}. A function whose requests cost the same at any load lies level.",
                comparison.subject.head, comparison.subject.base
            ))],
            says: said(comparison, &minutes, references),
            svg: load_curve(&dots, &describes)?,
        });
    }
    Ok((!charts.is_empty()).then_some(Block::Charts { charts }))
}

fn dot(row: &LoadCurveRow) -> Minute {
    let is_head = row.arm == Side::Head;
    let tone = if is_head { Tone::More } else { Tone::Same };
    Minute { load: row.load, cost: row.per_request, tone, is_head }
}

/// What a request cost in the minutes with least and with most load.
fn said(comparison: &Comparison<'_>, minutes: &[&Filed<LoadCurveRow>], references: &mut References) -> Text {
    let mut text = Text::new();
    for (arm, build) in [(Side::Head, &comparison.subject.head), (Side::Base, &comparison.subject.base)] {
        let of_arm = || minutes.iter().filter(|filed| filed.row.arm == arm);
        let by_load = |a: &&&Filed<LoadCurveRow>, b: &&&Filed<LoadCurveRow>| a.row.load.total_cmp(&b.row.load);
        let Some((least, most)) = of_arm().min_by(by_load).zip(of_arm().max_by(by_load)) else { continue };
        text.push(words(format!("{build}: ")));
        for (place, filed) in [least, most].into_iter().enumerate() {
            let citation = references.row(*filed);
            text.push(figure(format!("{:.3}", filed.row.per_request), citation, &["per_request"]));
            text.push(words(" samples a request at "));
            text.push(figure(format!("{:.0}", filed.row.load), citation, &["load"]));
            text.push(words(if place == 0 { " requests, " } else { ". " }));
        }
    }
    text
}
