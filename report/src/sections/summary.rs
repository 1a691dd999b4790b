//! What happened, where, how sure it is, what to do, and what it rests on: one minute for somebody who was not there.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_diff::figures::grouped;
use fleetdiff_pipeline::rules::advice::{capitalised, plural};
use fleetdiff_pipeline::rules::wording::Wording;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::rows::{ComparisonKey, ComparisonRow};
use fleetdiff_schemas::verdict::{BaseKind, IncidentState};

use super::by_cell::known;
use super::{heap, load, rest, waiting};
use crate::chart::Undrawn;
use crate::comparison::{Comparison, Incident};
use crate::document::{Block, Fact, Section, Span, Text, words};
use crate::figures::{count, figure, instant, quote, total};
use crate::records::Filed;
use crate::references::{Literal, References};

/// Incidents whose sentences are shown here; the others are counted.
const SHOWN: usize = 3;

pub(crate) fn section(comparison: &Comparison<'_>, references: &mut References) -> Result<Option<Section>, Undrawn> {
    let base = comparison.base_kind();
    let Some(key) = comparison.first_key(base) else { return Ok(None) };
    let Some(verdict) = comparison.over_all(key, base) else { return Ok(None) };
    let incidents = comparison.incidents();
    let mut facts = vec![Fact::new("What happened", happened(&incidents, verdict, base, references))];
    facts.extend(load::in_short(comparison, references).map(|text| Fact::new("Under load", text)));
    facts.extend(heap::in_short(comparison, references).map(|text| Fact::new("Memory", text)));
    if let Some(text) = waiting::in_short(comparison, references) {
        // Where requests wait longer, incidents are the functions in which they do: the cause comes first.
        let place = if waiting::is_longer(comparison) { 0 } else { facts.len() };
        facts.insert(place, Fact::new("Waiting", text));
    }
    facts.push(Fact::new("Where", places(comparison, &incidents, base, references)));
    facts.push(Fact::new("How sure", sure(&incidents, base, references)));
    facts.push(Fact::new("What to do", action(verdict, base, references)));
    facts.push(Fact::new("Based on", based_on(comparison, key, verdict, references)));
    Ok(Some(Section { title: None, blocks: vec![Block::Facts { facts }] }))
}

/// The incidents that stand, then those that ended.
fn happened(
    incidents: &[Incident<'_>],
    verdict: &Filed<ComparisonRow>,
    base: BaseKind,
    references: &mut References,
) -> Text {
    let mut text = Text::new();
    let standing = incidents.iter().filter(|incident| incident.ended.is_none());
    for incident in standing.clone().take(SHOWN) {
        let citation = references.row(incident.standing);
        text.push(quote(&incident.standing.row.summary, citation, "summary"));
        text.push(words(" "));
    }
    text.extend(rest(standing.clone().count(), SHOWN, ["incident", which_rest(standing)]));
    // NB: what another incident explains goes on in that one.
    let ended = incidents.iter().filter_map(|incident| Some((incident.standing, incident.ended?)));
    let cleared = ended.filter(|(_, end)| end.row.state == IncidentState::Cleared);
    for (standing, end) in cleared.clone().take(SHOWN) {
        for row in [standing, end] {
            text.push(quote(&row.row.summary, references.row(row), "summary"));
            text.push(words(" "));
        }
    }
    text.extend(rest(cleared.count(), SHOWN, ["incident", " that ended"]));
    if text.is_empty() {
        let none = match base {
            BaseKind::Concurrent => "No function was flagged: no share of samples is known to have changed. ",
            BaseKind::History => "Against history no function is flagged, whatever is significant. ",
        };
        text.push(words(none));
        text.push(words("The verdict is "));
        let citation = references.row(verdict);
        text.push(figure(verdict.row.verdict.name().replace('_', " "), citation, &[]));
        text.push(words("."));
    }
    text
}

/// Which incidents are not said: whether they are in other cells decides whether somebody has to look.
fn which_rest<'a>(standing: impl Iterator<Item = &'a Incident<'a>> + Clone) -> &'static str {
    let places = |of: &Incident<'a>| of.standing.row.regressed_in.iter().chain(&of.standing.row.improved_in);
    let said: BTreeSet<&String> = standing.clone().take(SHOWN).flat_map(places).collect();
    let is_new = standing.skip(SHOWN).flat_map(places).any(|place| !said.contains(place));
    if is_new { "" } else { " of the same cells" }
}

/// Where the incidents that stand are, and how many cells have which verdict, by type of profile if there are several.
fn places(
    comparison: &Comparison<'_>,
    incidents: &[Incident<'_>],
    base: BaseKind,
    references: &mut References,
) -> Text {
    let mut found: BTreeMap<(bool, &str), BTreeSet<&str>> = BTreeMap::new();
    for incident in incidents.iter().filter(|incident| incident.ended.is_none()) {
        let row = &incident.standing.row;
        let of_type = known(comparison, incident).map_or(ProfileType::Cpu, |known| known.key.profile_type);
        let Wording { more, less, .. } = Wording::of(of_type);
        for (is_less, words, places) in [(false, more, &row.regressed_in), (true, less, &row.improved_in)] {
            found.entry((is_less, words)).or_default().extend(places.iter().map(String::as_str));
        }
    }
    let mut text = Text::new();
    for ((_, direction), places) in found.into_iter().filter(|(_, places)| !places.is_empty()) {
        let places = places.into_iter().collect::<Vec<_>>().join("; ");
        text.push(words(format!("{} in ", capitalised(direction))));
        text.push(Span::Strong { text: places });
        text.push(words(". "));
    }
    let verdicts: Vec<_> = comparison.keys.iter().filter_map(|key| comparison.over_all(key, base)).collect();
    for verdict in &verdicts {
        if verdicts.len() > 1 {
            text.push(words(format!("{}: ", verdict.row.comparison.profile_type.name())));
        }
        text.push(quote(&verdict.row.sentence, references.row(verdict), "sentence"));
        text.push(words(". "));
    }
    text
}

fn sure(incidents: &[Incident<'_>], base: BaseKind, references: &mut References) -> Text {
    if let Some(incident) = incidents.first() {
        let citation = references.row(incident.standing);
        let first = (incidents.len() > 1).then(|| words("The first incident: "));
        let confidence = quote(&incident.standing.row.confidence, citation, "confidence");
        return first.into_iter().chain([confidence]).collect();
    }
    match base {
        BaseKind::Concurrent => vec![words(
            "A cell counts as unchanged only where its functions are shown to be within 5 %, not where nothing was found. \
             What could not be decided is listed below.",
        )],
        BaseKind::History => vec![words(
            "Less sure than beside a running base: load, requests and data of other days cannot be separated from the build.",
        )],
    }
}

fn action(verdict: &Filed<ComparisonRow>, base: BaseKind, references: &mut References) -> Text {
    match (&verdict.row.action, base) {
        (Some(action), _) => vec![quote(action, references.row(verdict), "action")],
        (None, BaseKind::History) => {
            vec![words("No advice: a comparison with history raises no alert. See what is significant below.")]
        }
        (None, BaseKind::Concurrent) => {
            vec![words("No advice: this method is not calibrated, so it sends no alert.")]
        }
    }
}

/// The denominators.
fn based_on(
    comparison: &Comparison<'_>,
    key: &ComparisonKey,
    verdict: &Filed<ComparisonRow>,
    references: &mut References,
) -> Text {
    let (row, citation) = (&verdict.row, references.row(verdict));
    let cells = comparison.cells(key, row.base_kind).len();
    let kind = match row.count_kind {
        CountKind::SelfCount => "self",
        CountKind::Total => "total",
    };
    let mut text = vec![
        count(row.functions_tested, citation, "functions_tested"),
        words(format!(
            " tests of functions ({} samples, counted as {kind}) in {} {}; ",
            key.profile_type.name(),
            grouped(cells),
            plural(cells, "cell")
        )),
        count(row.head_pods, citation, "head_pods"),
        words(format!(" pods of {} against ", row.comparison.head_build)),
        count(row.base_pods, citation, "base_pods"),
        words(format!(" of {}{}; ", row.comparison.base_build, if cells > 1 { " in these together" } else { "" })),
        count(row.head_total, citation, "head_total"),
        words(" samples against "),
        count(row.base_total, citation, "base_total"),
    ];
    if let Some(looks) = comparison.looks(key, row.base_kind) {
        text.push(words("; "));
        text.push(total(looks.number, references.count::<ComparisonRow>(every_look(comparison, row))));
        text.push(words(format!(" looks from {} to {}.", instant(looks.first), instant(looks.last))));
    }
    text
}

/// What the rows over all cells of every look have in common.
fn every_look(comparison: &Comparison<'_>, row: &ComparisonRow) -> Vec<(&'static str, Literal)> {
    let text = |text: &str| Literal::Text(text.to_owned());
    let mut filter = comparison.subject.filter();
    filter.extend([
        ("profile_type", text(row.comparison.profile_type.name())),
        ("count_kind", text(row.count_kind.name())),
        ("region", text(row.cell.region.as_str())),
        ("cohort", text(row.cell.cohort.as_str())),
        ("base_kind", text(row.base_kind.name())),
    ]);
    filter
}
