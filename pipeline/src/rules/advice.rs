//! The words for what a person needs to know: by how much something changed, where, and what to do about it.
//!
//! Printed verdicts and announced incidents take their words from here, so that both say the same of the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fleetdiff_schemas::fan_out::{Extent, listed};
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellKey, CellRow, Interval};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;

use super::extent::extents;
use super::outlook::Outlook;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// Up to this many cells of a function have their ratios listed; for more cells the range is given.
pub const LISTED: usize = 3;

/// What is known of a build in one cell, as far as it decides what to do there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It costs more, on firm support.
    RollBack,
    /// It costs more, on few pods.
    Repeat(PodsNow),
    /// It costs more, and pods differ by something other than the build, which may be the reason.
    Doubtful,
    /// It costs more, and until then that may be the warm-up of young pods.
    Provisional(Nanos),
    /// Other causes cost more there: these.
    OtherCauses(Vec<String>),
    /// It did not change.
    Keep,
    /// It did not change as a whole, but these pods differ from the others.
    SomePods(Vec<String>),
    /// Inconclusive; the present pods will show it after about so many seconds more.
    Wait(u64),
    /// Inconclusive; the words say what it needs.
    Needs(String),
    /// No time block and hardware has samples of both builds.
    NotComparable,
}

/// Pods of a cell at the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodsNow {
    /// Of the head.
    pub head: i64,
    /// Of the base.
    pub base: i64,
    /// The type of profile that they have, where pods with profiles of other types are other in number.
    pub with: Option<ProfileType>,
}

impl PodsNow {
    /// Those behind a row, of whose cell no look is known.
    pub(super) fn of_flag(row: &CellRow) -> Self {
        Self { head: row.head.pods, base: row.base.pods, with: None }
    }

    /// Which profiles they have, in words.
    fn with(self) -> String {
        self.with.map_or_else(String::new, |profile_type| format!(" with {} profiles", profile_type.name()))
    }
}

impl fmt::Display for PodsNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} against {} pods{}", self.head, self.base, self.with())
    }
}

/// What to do with the head build in each cell, cells of which the same is known together.
///
/// ```
/// use fleetdiff_pipeline::rules::advice::{Standing, advice};
/// use fleetdiff_schemas::rows::CellKey;
///
/// let cell = |region: &str| CellKey { region: region.into(), cohort: "tv".into() };
/// let known = [(cell("north"), Standing::RollBack), (cell("south"), Standing::Keep)].into();
/// assert_eq!(advice(&"v42".into(), &known), "Roll back v42 in tv in north. v42 may stay in tv in south.");
/// ```
pub fn advice(head: &Build, cells: &BTreeMap<CellKey, Standing>) -> String {
    let seconds = |standing: &Standing| if let Standing::Wait(seconds) = standing { Some(*seconds) } else { None };
    let longest = cells.values().filter_map(seconds).max().map(Standing::Wait);
    let mut together: BTreeMap<&Standing, Vec<&CellKey>> = BTreeMap::new();
    for (cell, standing) in cells {
        // Whoever waits for all of them waits for the slowest.
        let standing = longest.as_ref().filter(|_| seconds(standing).is_some()).unwrap_or(standing);
        together.entry(standing).or_default().push(cell);
    }
    let costs_more =
        together.keys().any(|standing| standing.costs_more() || matches!(standing, Standing::OtherCauses(_)));
    let is_settled = together.keys().all(|standing| matches!(standing, Standing::Keep | Standing::SomePods(_)));
    let nothing = if is_settled { "Nothing has to be rolled back." } else { "Nothing is known to cost more." };
    let nothing = (!costs_more).then(|| nothing.to_owned());
    let sentences = together.into_iter().map(|(standing, meant)| {
        let place = words(&extents(meant.iter().copied(), cells.keys()));
        match standing {
            Standing::RollBack => format!("Roll back {head} in {place}."),
            Standing::Repeat(pods) => format!(
                "Repeat with more pods in {place} before {head} is rolled back there: {pods} are few, and firm support \
                 needs 5 of each build."
            ),
            Standing::Doubtful => format!(
                "See the warnings before {head} is rolled back in {place}: pods differ there by something other than the build, \
                 which may be the reason."
            ),
            Standing::Provisional(until_at) => format!(
                "Wait until {} before {head} is rolled back in {place}: its pods are young there, and the difference may \
                 be a warm-up.",
                instant(*until_at)
            ),
            Standing::OtherCauses(causes) => format!("See the incidents of {} in {place}.", named(causes)),
            Standing::Keep => format!("{head} may stay in {place}."),
            Standing::SomePods(pods) => {
                format!(
                    "Look at {} in {place} first: there {head} did not change as a whole, but they differ.",
                    named(pods)
                )
            }
            Standing::Wait(seconds) if meant.len() == 1 => {
                format!("Wait about {} in {place}, where the result is inconclusive.", duration(*seconds))
            }
            Standing::Wait(seconds) => {
                format!("Wait up to {} in {place}, where results are inconclusive.", duration(*seconds))
            }
            Standing::Needs(need) => format!("The result is inconclusive in {place}: {need}."),
            Standing::NotComparable => {
                format!("Nothing is known in {place}: no time block and hardware has samples of both builds.")
            }
        }
    });
    nothing.into_iter().chain(sentences).collect::<Vec<_>>().join(" ")
}

impl Standing {
    /// Whether a cause costs more there.
    pub fn costs_more(&self) -> bool {
        matches!(self, Self::RollBack | Self::Repeat(..) | Self::Doubtful | Self::Provisional(_))
    }
}

/// The first second that does not begin before an instant, in UTC.
///
/// ```
/// use fleetdiff_pipeline::rules::advice::instant;
/// use fleetdiff_schemas::time::Nanos;
///
/// assert_eq!(instant(Nanos(1_709_210_096_000_007_999)), "2024-02-29T12:34:57Z");
/// ```
pub fn instant(at: Nanos) -> String {
    rfc3339(Nanos::from_seconds(at.0.div_euclid(SECOND) + i64::from(at.0.rem_euclid(SECOND) > 0)))
}

/// The first names of a list, and how many more there are.
pub fn named(names: &[String]) -> String {
    let (first, more) = names.split_at(names.len().min(LISTED));
    if more.is_empty() { listed(first) } else { format!("{} and {} more", first.join(", "), more.len()) }
}

/// Places in words.
pub fn words(extents: &[Extent]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A function in a sentence.
pub fn name(function: &str) -> &str {
    if function == ALL_FUNCTIONS { "all functions together per request" } else { function }
}

/// By how much a function's cost changed in the cells of these rows, as ratios.
pub fn effects(rows: &[&CellRow]) -> String {
    if rows.len() > LISTED {
        return range(rows);
    }
    let effects_in_words: Vec<String> = rows.iter().copied().map(effect).collect();
    listed(&effects_in_words)
}

fn effect(row: &CellRow) -> String {
    match row.effect() {
        Some(ratio) => effect_of(ratio),
        None => without_ratio(row).to_owned(),
    }
}

/// What is said where a row has no ratio: one build has no sample of the function, or its last report could not compare them.
///
/// ```
/// use fleetdiff_pipeline::rules::advice::without_ratio;
/// use fleetdiff_schemas::{rows::CellRow, tables::TableRow};
/// let mut row = CellRow::blank();
/// (row.head.count, row.base.count) = (40, 0);
/// assert_eq!(without_ratio(&row), "only in the head");
/// row.base.count = 40;
/// assert_eq!(without_ratio(&row), "by an amount that the last report cannot say");
/// ```
pub fn without_ratio(row: &CellRow) -> &'static str {
    only_in(row.head.count, row.base.count).unwrap_or("by an amount that the last report cannot say")
}

/// Which build alone has samples, by the counts of both.
pub fn only_in(head: i64, base: i64) -> Option<&'static str> {
    match (head, base) {
        (1.., 0) => Some("only in the head"),
        (0, 1..) => Some("only in the base"),
        _ => None,
    }
}

/// A ratio with its interval.
pub fn effect_of(Interval { value, low, high }: Interval) -> String {
    format!("x {} ({} to {})", number(value), number(low), number(high))
}

/// The ends of the ratios of many rows.
fn range(rows: &[&CellRow]) -> String {
    let Some(Span { values, ends }) = Span::of(rows) else { return "only in one build".to_owned() };
    format!("x {} to {} (intervals from {} to {})", number(values.0), number(values.1), number(ends.0), number(ends.1))
}

/// The smallest and the largest of several estimates, and of the ends of their intervals.
struct Span {
    values: (f64, f64),
    ends: (f64, f64),
}

impl Span {
    fn of(rows: &[&CellRow]) -> Option<Self> {
        let ratios: Vec<Interval> = rows.iter().filter_map(|row| row.effect()).collect();
        let least = |of: fn(&Interval) -> f64| ratios.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = |of: fn(&Interval) -> f64| ratios.iter().map(of).fold(0.0, f64::max);
        (!ratios.is_empty()).then(|| Self {
            values: (least(|r| r.value), most(|r| r.value)),
            ends: (least(|r| r.low), most(|r| r.high)),
        })
    }
}

/// By how much the cost changed in the cells of these rows, all of them in one direction, as a person says it: `10 % more
/// (7 to 12 %)`. `None` where only one build has the function.
pub fn changes(rows: &[&CellRow]) -> Option<String> {
    if rows.len() <= LISTED {
        let changes: Vec<String> = rows.iter().filter_map(|row| row.effect()).map(change).collect();
        return (!changes.is_empty()).then(|| listed(&changes));
    }
    let Span { values: (least, most), ends: (low, high) } = Span::of(rows)?;
    let [from, to, low, high] = if least >= 1.0 {
        [least - 1.0, most - 1.0, low - 1.0, high - 1.0]
    } else {
        [1.0 - most, 1.0 - least, 1.0 - high, 1.0 - low]
    }
    .map(percent);
    let word = if least >= 1.0 { "more" } else { "less" };
    Some(format!("{from} to {to} % {word} (intervals from {low} to {high} %)"))
}

/// A ratio as a person says it.
///
/// ```
/// use fleetdiff_pipeline::rules::advice::change;
/// use fleetdiff_schemas::rows::Interval;
///
/// assert_eq!(change(Interval { value: 1.10, low: 1.07, high: 1.124 }), "10 % more (7 to 12 %)");
/// assert_eq!(change(Interval { value: 0.92, low: 0.89, high: 0.953 }), "8 % less (5 to 11 %)");
/// assert_eq!(change(Interval { value: 3.0, low: 2.5, high: 3.5 }), "3.00 times as much (2.50 to 3.50)");
/// ```
pub fn change(Interval { value, low, high }: Interval) -> String {
    if value >= 2.0 {
        return format!("{} times as much ({} to {})", number(value), number(low), number(high));
    }
    if value >= 1.0 {
        format!("{} % more ({} to {} %)", percent(value - 1.0), percent(low - 1.0), percent(high - 1.0))
    } else {
        format!("{} % less ({} to {} %)", percent(1.0 - value), percent(1.0 - high), percent(1.0 - low))
    }
}

/// A fraction in percent, with a decimal where it is below 2.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 2.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// The change of a row's share with its interval, in percentage points.
pub fn share_delta(row: &CellRow) -> Option<String> {
    row.share_delta.map(|delta| format!("{:+.2} pp +- {:.2}", delta.value * 100.0, (delta.high - delta.low) * 50.0))
}

/// A number with so many decimals, and no minus before nought.
///
/// ```
/// use fleetdiff_pipeline::rules::advice::fixed;
/// assert_eq!((fixed(-0.001, 2), fixed(-0.01, 2), fixed(12.0, 0)), ("0.00".into(), "-0.01".into(), "12".into()));
/// ```
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_nought = text.chars().all(|character| matches!(character, '-' | '0' | '.'));
    if is_nought { text.trim_start_matches('-').to_owned() } else { text }
}

/// Two decimals, three where the first would be nought; `any` for an end of an interval without a bound.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return "any".to_owned();
    }
    if value < 0.1 { format!("{value:.3}") } else { format!("{value:.2}") }
}

/// What would decide an inconclusive cell that has these pods of head and base now, if it is not time alone.
pub(crate) fn need(outlook: Outlook, now: PodsNow, (head_build, base_build): (&Build, &Build)) -> String {
    let with = now.with();
    let more = |count: u32, build: &Build, now: i64| {
        (count > 0).then(|| {
            format!("{count} more {} of {build} ({now}{with} now)", plural(usize::try_from(count).unwrap_or(0), "pod"))
        })
    };
    let pods = [more(outlook.head_pods, head_build, now.head), more(outlook.base_pods, base_build, now.base)];
    let pods = listed(&pods.into_iter().flatten().collect::<Vec<_>>());
    match (pods.is_empty(), outlook.seconds) {
        (true, Some(_)) => {
            "there are enough samples, but too few functions are equivalent, or the cost of a request may have changed"
                .to_owned()
        }
        (true, None) => "its samples are spread over functions that are too rare to say how long it needs".to_owned(),
        (false, Some(seconds)) => {
            format!(
                "it needs {pods}, watched for about {}; more time with the present pods does not help",
                length(seconds)
            )
        }
        (false, None) => format!("it needs at least {pods}"),
    }
}

fn duration(seconds: u64) -> String {
    length(float(seconds))
}

/// What imbalances the arms have, by their subject: where.
pub(super) fn warned(warnings: &BTreeMap<&str, BTreeSet<&CellKey>>, cells: &BTreeSet<&CellKey>) -> Option<String> {
    let each = warnings.iter().map(|(subject, meant)| {
        format!("{subject} in {}", words(&extents(meant.iter().copied(), cells.iter().copied())))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("Warnings of the last report: {}.", each.join("; ")))
}

/// A length of time in words, rounded up.
pub fn length(seconds: f64) -> String {
    let (count, unit) = match seconds {
        s if s <= 90.0 => (s, "second"),
        s if s <= 5400.0 => (s / 60.0, "minute"),
        s if s <= 172_800.0 => (s / 3600.0, "hour"),
        s => (s / 86_400.0, "day"),
    };
    let count = count.ceil();
    format!("{count:.0} {unit}{}", if count > 1.0 { "s" } else { "" })
}

/// A sentence begins with a capital letter.
///
/// ```
/// assert_eq!(fleetdiff_pipeline::rules::advice::capitalised("more expensive in tv"), "More expensive in tv");
/// ```
pub fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// A noun after a number.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}
