//! Pictures: what plotters draws, in the colours of the page.
//!
//! A picture is drawn once for every screen and scheme. It is as wide as a phone, so that its text can be read there, and on a
//! desktop two stand side by side. Its colours are written as CSS variables of the page, so that it follows light, dark and
//! paper.

use std::fmt;

use fleetdiff_diff::escape::for_text;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

mod course;
mod forest;
mod load_curve;
mod pods;
mod quadrant;

pub(crate) use course::{Course, Moment, course};
pub(crate) use forest::{Effect, forest};
pub(crate) use load_curve::{Minute, load_curve};
pub(crate) use pods::{Bucket, Lane, pods};
pub(crate) use quadrant::{Dot, quadrant};

use fleetdiff_schemas::number::length_float;

use crate::document::Tone;

/// Width of a picture in pixels of the page.
const WIDTH: u32 = 380;
/// Units of a picture a pixel: plotters places everything at whole units.
const UNITS: u32 = 4;
/// Room at the left and right end of an axis, where half of a label stands over, in pixels.
const EDGE: u32 = 22;
/// Height of the axis below lanes.
const AXIS: u32 = 30;
/// Height of text in pixels.
const TEXT: u32 = 13;
/// plotters divides the size of a font by this.
const FONT: f64 = 1.24;

/// Something that plotters could not draw.
#[derive(Debug, thiserror::Error)]
#[error("a picture cannot be drawn: {0}; this is an error in fleetdiff, please report it")]
pub struct Undrawn(String);

impl Undrawn {
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// What is drawn in the same colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ink {
    Text,
    Soft,
    Line,
    More,
    Less,
    Same,
    Open,
}

/// Every ink, the colour that stands for it while plotters draws, and its variable in the page.
const INKS: [(Ink, RGBColor, &str); 7] = [
    (Ink::Text, RGBColor(1, 0, 0), "var(--text)"),
    (Ink::Soft, RGBColor(2, 0, 0), "var(--soft)"),
    (Ink::Line, RGBColor(3, 0, 0), "var(--line)"),
    (Ink::More, RGBColor(4, 0, 0), "var(--more)"),
    (Ink::Less, RGBColor(5, 0, 0), "var(--less)"),
    (Ink::Same, RGBColor(6, 0, 0), "var(--same)"),
    (Ink::Open, RGBColor(7, 0, 0), "var(--open)"),
];

impl Ink {
    fn of(tone: Tone) -> Self {
        match tone {
            Tone::More => Self::More,
            Tone::Less => Self::Less,
            Tone::Same => Self::Same,
            Tone::Open => Self::Open,
        }
    }

    fn colour(self) -> RGBColor {
        INKS.iter().find(|(ink, ..)| *ink == self).map_or(BLACK, |(_, colour, _)| *colour)
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A picture of this height, in pixels, as an SVG element that `describes` itself in words. `names` are shortened texts in it with
/// what they stand for.
fn picture(
    height: u32,
    describes: &str,
    names: &[(String, String)],
    draw: impl FnOnce(&Area<'_>) -> Result<(), Undrawn>,
) -> Result<String, Undrawn> {
    let mut drawn = String::new();
    {
        let area = SVGBackend::with_string(&mut drawn, (WIDTH * UNITS, height * UNITS)).into_drawing_area();
        draw(&area)?;
        area.present().map_err(Undrawn::of)?;
    }
    let mut svg = drawn.split_once('>').map(|(_, inner)| inner.to_owned()).unwrap_or_default();
    for (_, RGBColor(red, green, blue), variable) in INKS {
        svg = svg.replace(&format!("=\"#{red:02X}{green:02X}{blue:02X}\""), &format!("=\"{variable}\""));
    }
    for tidied in [" opacity=\"1\"", " font-family=\"sans-serif\""] {
        svg = svg.replace(tidied, "");
    }
    for (short, whole) in names.iter().filter(|(short, whole)| short != whole) {
        let (short, whole) = (escaped(short), escaped(whole));
        svg = svg.replace(&format!(">\n{short}\n</text>"), &format!("><title>{whole}</title>{short}</text>"));
    }
    let (width, height) = (WIDTH * UNITS, height * UNITS);
    let describes = escaped(describes);
    Ok(format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{describes}\">{svg}"))
}

/// A plain pair of axes.
type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// An area with `rows` lanes, first on top, above one axis with these labels.
fn above_axis<'a, 'b>(
    area: &'a Area<'b>,
    range: std::ops::Range<f64>,
    rows: usize,
    label: impl Fn(f64) -> String,
) -> Result<Plane<'a, 'b>, Undrawn> {
    let mut chart = ChartBuilder::on(area)
        .margin_left(EDGE * UNITS)
        .margin_right(EDGE * UNITS)
        .x_label_area_size(AXIS * UNITS)
        .build_cartesian_2d(range, length_float(rows)..0.0)
        .map_err(Undrawn::of)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(5)
        .x_label_formatter(&|place: &f64| label(*place))
        .x_label_style(written(Ink::Soft, HPos::Center))
        .axis_style(stroke(Ink::Line, 1))
        .bold_line_style(stroke(Ink::Line, 1))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(Undrawn::of)?;
    Ok(chart)
}

/// Text within an element or an attribute, as plotters writes it.
fn escaped(text: &str) -> String {
    for_text(text).replace("&#39;", "&apos;")
}

/// Text of a picture: without the control characters that XML does not allow.
fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// Text in this ink, beside its point as `to` says.
fn written(ink: Ink, to: HPos) -> TextStyle<'static> {
    let size = f64::from(TEXT * UNITS) * FONT;
    let font = ("sans-serif", size).into_font();
    TextStyle { font, color: ink.colour().to_backend_color(), pos: Pos::new(to, VPos::Center) }
}

/// A line of this ink, in pixels.
fn stroke(ink: Ink, width: u32) -> ShapeStyle {
    ShapeStyle { color: ink.colour().to_rgba(), filled: false, stroke_width: width * UNITS }
}

/// Ratios as an axis shows them: on a plain scale, or by factors of two if they span more than that shows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RatioAxis {
    low: f64,
    high: f64,
    doubles: bool,
}

impl RatioAxis {
    /// An axis with all estimates, with 1, and with intervals unless they are far wider than that.
    fn of(intervals: impl Iterator<Item = fleetdiff_schemas::rows::Interval> + Clone) -> Self {
        let low = intervals.clone().map(|of| of.low.max(of.value / 1.5)).fold(1.0, f64::min);
        let high = intervals.map(|of| of.high.min(of.value * 1.5)).fold(1.0, f64::max);
        let (low, high) = (low.max(1e-6), high.min(1e6));
        let doubles = high / low > 4.0;
        let room = if doubles { 1.1 } else { libm::pow(high / low, 0.06).max(1.005) };
        Self { low: low / room, high: high * room, doubles }
    }

    fn range(self) -> std::ops::Range<f64> {
        self.place(self.low)..self.place(self.high)
    }

    /// The place of a ratio; what lies beyond the axis is at its end.
    fn place(self, ratio: f64) -> f64 {
        let ratio = ratio.clamp(self.low, self.high);
        if self.doubles { libm::log2(ratio) } else { ratio }
    }

    fn label(self, place: f64) -> String {
        if self.doubles { format!("x {}", trimmed(libm::exp2(place))) } else { format!("x {}", trimmed(place)) }
    }
}

/// A number with at most three digits behind the point, and none that are 0.
fn trimmed(number: f64) -> String {
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
