//! Figures in print, each with the row that it comes from.

use fleetdiff_diff::figures::grouped;
use fleetdiff_pipeline::rules::advice::{effect_of, fixed, length};
use fleetdiff_pipeline::rules::levels::one_sided;
use fleetdiff_schemas::rows::{Interval, LevelFace};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;

use crate::document::{Figure, Span};
use crate::references::Citation;

/// A column with the ends of its interval.
pub(crate) type Columns = [&'static str; 3];

pub(crate) const ADJUSTED_RATIO: Columns = ["adjusted_ratio", "adjusted_ratio_low", "adjusted_ratio_high"];
pub(crate) const PER_REQUEST_RATIO: Columns = ["per_request_ratio", "per_request_ratio_low", "per_request_ratio_high"];
pub(crate) const ALWAYS_VALID_RATIO: Columns =
    ["always_valid_ratio", "always_valid_ratio_low", "always_valid_ratio_high"];
pub(crate) const SHARE_DELTA: Columns = ["share_delta", "share_delta_low", "share_delta_high"];
pub(crate) const EFFECT: Columns = ["effect", "effect_low", "effect_high"];

/// A figure of some columns of a row.
pub(crate) fn figure(text: String, citation: Citation, columns: &[&'static str]) -> Span {
    Span::Figure(Figure { text, citation, columns: columns.to_vec() })
}

/// A number with two decimals.
pub(crate) fn decimals(number: f64) -> String {
    fixed(number, 2)
}

/// A sentence of a row.
pub(crate) fn quote(text: &str, citation: Citation, column: &'static str) -> Span {
    Span::Quote(Figure { text: text.to_owned(), citation, columns: vec![column] })
}

/// A count: `1,234`.
pub(crate) fn count(count: i64, citation: Citation, column: &'static str) -> Span {
    figure(grouped(count), citation, &[column])
}

/// A count or sum over rows.
pub(crate) fn total(total: i64, citation: Citation) -> Span {
    figure(grouped(total), citation, &[])
}

/// A ratio with its interval: `x 1.11 (1.09 to 1.12)`.
pub(crate) fn ratio(ratio: Interval, citation: Citation, columns: Columns) -> Span {
    figure(effect_of(ratio), citation, &columns)
}

/// The ratio of a level; the build that alone has it, where a ratio would be 0 or infinite.
pub(crate) fn level_ratio(face: &LevelFace, citation: Citation, columns: Columns) -> Option<Span> {
    let of = face.change?;
    Some(match one_sided(face) {
        Some(only) => figure(only.to_owned(), citation, &[]),
        None => ratio(of, citation, columns),
    })
}

/// The change of a share in percentage points: `+1.46 pp (1.23 to 1.69)`.
pub(crate) fn points(delta: Interval, citation: Citation) -> Span {
    let [value, low, high] = [delta.value, delta.low, delta.high].map(|share| share * 100.0);
    figure(format!("{value:+.2} pp ({low:.2} to {high:.2})"), citation, &SHARE_DELTA)
}

/// A fraction in percent: `19.0 %`.
pub(crate) fn percent(fraction: f64, citation: Citation, column: &'static str) -> Span {
    figure(format!("{} %", fixed(fraction * 100.0, 1)), citation, &[column])
}

/// A length of time, rounded up: `5 minutes`.
pub(crate) fn seconds(seconds: f64, citation: Citation, column: &'static str) -> Span {
    figure(length(seconds), citation, &[column])
}

/// An instant to the second: `2026-03-03 09:16:50 UTC`.
pub(crate) fn instant(at: Nanos) -> String {
    let text = rfc3339(at);
    format!("{} {} UTC", text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default())
}

/// The time of day of an instant, to the second: `09:16:50`.
pub(crate) fn second(at: Nanos) -> String {
    rfc3339(at).get(11..19).unwrap_or_default().to_owned()
}

/// The time of day of an instant, to the minute: `09:16`.
pub(crate) fn minute(at: Nanos) -> String {
    rfc3339(at).get(11..16).unwrap_or_default().to_owned()
}
