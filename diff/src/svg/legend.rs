//! The legend above the static picture: both sides, the headline, and what the colours mean.

use std::fmt::Write;

use crate::escape::for_text;
use crate::paint::Colours;
use crate::report::{Report, ReportSide};
use crate::svg::of;

/// Left and right of all that is drawn, in pixels.
pub(super) const MARGIN: f64 = 10.0;

/// Pixels that the legend takes.
pub(super) const HEIGHT: f64 = 96.0;

/// Width of one step of a ramp in pixels.
const STEP: f64 = 3.0;

/// The position and height of the colour keys.
const TOP: f64 = 70.0;
const HIGH: f64 = 13.0;

/// What stands out and the two greys: their left edges, and the width of a colour.
const APART: f64 = 730.0;
const QUIET: f64 = 925.0;
const UNKNOWN: f64 = 1125.0;
const SWATCH: f64 = 14.0;

/// Title, headline, both sides, and the colour keys; `strongest` is the change that the strongest colour represents.
pub(super) fn legend(report: &Report, colours: &Colours, strongest: f64) -> String {
    let hatch = colours.hatch;
    let mut text = format!(
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect width=\"1.5\" height=\"6\" fill=\"{hatch}\"/></pattern></defs>\n"
    );
    let mut line = |y: f64, style: &str, words: &str| {
        let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"{y}\" {style}>{}</text>", for_text(words));
    };
    line(22.0, "font-size=\"15\" font-weight=\"bold\" fill=\"#111111\"", &report.title);
    line(41.0, "font-size=\"12\" fill=\"#111111\"", &report.headline);
    let side = |name: &str, side: &ReportSide, whole: u64| {
        let whole = of(report.values(), side.samples.unwrap_or(whole));
        format!("{name}: {} ({} {}s, {whole})", side.label, side.runs, side.replicate.name())
    };
    let whole = report.tree.totals().first().copied().unwrap_or_default();
    let (base, head) = (side("base", &report.base, whole.base), side("head", &report.head, whole.head));
    let sides = format!("{base}   {head}   widths: average of both");
    line(58.0, "fill=\"#555555\"", &sides);
    keys(&mut text, colours, strongest);
    text
}

/// The ramp from less to more, and the two greys, with their labels.
fn keys(text: &mut String, colours: &Colours, strongest: f64) {
    let mut left = MARGIN;
    for fill in colours.less.iter().rev().chain(&colours.more) {
        block(text, left, STEP, &fill.fill.to_string());
        left += STEP;
    }
    let changed = if strongest > 0.0 {
        let percent = 100.0 * strongest;
        format!(
            "cheaper to more expensive: -{percent:.2} % to +{percent:.2} % of the base. Only significant functions are saturated."
        )
    } else {
        "cheaper to more expensive. Only significant functions are saturated.".to_owned()
    };
    caption(text, left + 6.0, &changed);
    let [more, less] = colours.apart;
    block(text, APART, SWATCH, &less.fill.to_string());
    block(text, APART + SWATCH, SWATCH, &more.fill.to_string());
    caption(text, APART + 2.0 * SWATCH + 4.0, "stands out (one run a side)");
    let [quiet, ..] = colours.quiet;
    block(text, QUIET, SWATCH, &quiet.fill.to_string());
    caption(text, QUIET + SWATCH + 4.0, "equivalent or moved by others");
    let [unknown, ..] = colours.unknown;
    block(text, UNKNOWN, SWATCH, &unknown.fill.to_string());
    caption(text, UNKNOWN + SWATCH + 4.0, "not known");
}

fn block(text: &mut String, left: f64, width: f64, fill: &str) {
    let _ = write!(text, "<rect x=\"{left}\" y=\"{TOP}\" width=\"{width}\" height=\"{HIGH}\" fill=\"{fill}\"/>");
}

fn caption(text: &mut String, left: f64, words: &str) {
    let _ = writeln!(text, "<text x=\"{left}\" y=\"{}\" fill=\"#333333\">{words}</text>", TOP + 10.5);
}
