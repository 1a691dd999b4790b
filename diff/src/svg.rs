//! The differential flame graph as a static picture, for documents and mail: with the colours of the page, and titles
//! that browsers show for the frame under the pointer.
//!
//! Widths are the average of both sides. Frames narrower than a thousandth of the whole are left out, and their number is stated.

mod legend;

use std::fmt::Write;

use self::legend::MARGIN;
use fleetdiff_formats::Values;

use crate::escape::for_text;
use crate::figures::amount;
use crate::flame::{Node, place};
use crate::paint::{Colours, Paint, Painter, Palette, Scheme, changes, count, is_split, weights};
use crate::report::{FrameClass, Function, Report};
use crate::sides::Sides;

/// Width of the picture in pixels.
const WIDTH: f64 = 1200.0;
/// Height of a row of frames in pixels.
const ROW: f64 = 18.0;
/// Share of the whole below which a frame is left out.
const NARROWEST: f64 = 0.001;
/// Height of a line of the caution below the picture in pixels.
const CAUTION: f64 = 15.0;
/// Most letters of such a line.
const LINE: usize = 170;
/// Approximate width of a letter in pixels; Verdana at 11 pixels is no wider for most names.
const LETTER: f64 = 6.6;

/// The static picture of a report.
pub fn svg(report: &Report, palette: Palette) -> String {
    let picture = Picture::of(report, palette);
    let frames = picture.frames();
    let cautions = cautions(&report.caution);
    let room = CAUTION * f64::from(u32::try_from(cautions.len()).unwrap_or(0));
    let height = legend::HEIGHT + ROW * (picture.rows() + 1.0) + 2.0 * MARGIN + room;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"Verdana, DejaVu Sans, sans-serif\" font-size=\"11\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        for_text(&report.title)
    );
    text.push_str(&legend::legend(report, &picture.colours, picture.painter.strongest()));
    text.push_str(&frames);
    let left_out = picture.nodes().filter(|frame| !frame.is_shown).count();
    let below = legend::HEIGHT + ROW * picture.rows() + 1.5 * MARGIN;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<text x=\"{MARGIN}\" y=\"{}\" fill=\"#555555\">{left_out} of {} frames are narrower than 0.1 % of the whole and left out.</text>",
        below + 11.0,
        report.tree.nodes().len(),
    );
    let mut y = below + 11.0;
    for line in &cautions {
        y += CAUTION;
        let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#555555\">{}</text>", for_text(line));
    }
    text.push_str("</svg>\n");
    text
}

/// The layout of the picture.
struct Picture<'a> {
    report: &'a Report,
    colours: Colours,
    painter: Painter<'a>,
    totals: Vec<Sides<u64>>,
    changes: Vec<f64>,
    /// Left edge and width of each node in pixels.
    spans: Vec<(f64, f64)>,
}

/// One node of the tree, at its place.
struct Frame<'a> {
    node: &'a Node,
    total: Sides<u64>,
    change: f64,
    left: f64,
    width: f64,
    is_shown: bool,
}

impl<'a> Picture<'a> {
    fn of(report: &'a Report, palette: Palette) -> Self {
        let totals = report.tree.totals();
        let changes = changes(report, &totals);
        let painter = Painter::new(report, &changes);
        let spans = spans(report, &totals);
        Self { report, colours: Colours::of(Scheme::Light, palette), painter, totals, changes, spans }
    }

    fn nodes(&self) -> impl Iterator<Item = Frame<'_>> {
        let nodes = self.report.tree.nodes().iter().zip(&self.totals).zip(&self.changes).zip(&self.spans);
        nodes.map(|(((node, &total), &change), &(left, width))| {
            let is_shown = width >= (WIDTH - 2.0 * MARGIN) * NARROWEST;
            Frame { node, total, change, left, width, is_shown }
        })
    }

    /// The number of rows.
    fn rows(&self) -> f64 {
        let deepest = self.nodes().filter(|frame| frame.is_shown).map(|frame| frame.node.depth).max();
        deepest.map_or(0.0, |depth| f64::from(depth) + 1.0)
    }

    fn frames(&self) -> String {
        let mut text = String::new();
        for frame in self.nodes().filter(|frame| frame.is_shown) {
            let function = self.painter.function(self.report, frame.node);
            let is_root = frame.node.depth == 0;
            let paint =
                if is_root { Paint::Quiet(FrameClass::User) } else { self.painter.paint(function, frame.change) };
            self.draw(&mut text, &frame, function, paint);
        }
        text
    }

    fn draw(&self, text: &mut String, frame: &Frame<'_>, function: Option<&Function>, paint: Paint) {
        let name = self.report.tree.name(frame.node);
        let top = legend::HEIGHT + MARGIN + ROW * f64::from(frame.node.depth);
        let colours = paint.fill(&self.colours);
        let place = format!(
            "x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{}\"",
            frame.left,
            (frame.width - 0.5).max(0.5),
            ROW - 1.0
        );
        let _ = write!(
            text,
            "<g><title>{}</title><rect {place} fill=\"{}\"/>",
            for_text(&self.title(frame, function)),
            colours.fill
        );
        if function.is_some_and(is_split) {
            let _ = write!(text, "<rect {place} fill=\"url(#hatch)\"/>");
        }
        if let Some(label) = label(name, frame.width) {
            let (x, y) = (frame.left + 4.0, top + ROW - 5.5);
            let _ = write!(text, "<text x=\"{x:.2}\" y=\"{y}\" fill=\"{}\">{}</text>", colours.ink, for_text(&label));
        }
        text.push_str("</g>\n");
    }

    /// The words of a frame: its name, its shares, and the verdict on its function.
    fn title(&self, frame: &Frame<'_>, function: Option<&Function>) -> String {
        let whole = self.totals.first().copied().unwrap_or_default();
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { 100.0 * count(part) / count(whole) };
        let mut words = format!(
            "{}: base {} ({:.2} %), head {} ({:.2} %)",
            self.report.tree.name(frame.node),
            of(self.report.values(), frame.total.base),
            share(frame.total.base, whole.base),
            of(self.report.values(), frame.total.head),
            share(frame.total.head, whole.head),
        );
        if let Some(row) = function {
            let _ = write!(words, "; function {}", row.verdict);
            if let Some(ratio) = row.ratio {
                let _ = write!(words, ", x {:.3} ({:.3} to {:.3})", ratio.estimate, ratio.low, ratio.high);
            }
        }
        words
    }
}

/// The caution as lines that fit into the picture.
fn cautions(caution: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in caution.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < LINE => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Left edge and width of each node in pixels, by the average of both sides.
fn spans(report: &Report, totals: &[Sides<u64>]) -> Vec<(f64, f64)> {
    let weights = weights(report);
    let weight = |total: &Sides<u64>| count(total.base) * weights.base + count(total.head) * weights.head;
    let whole = totals.first().map_or(0.0, weight);
    let pixels = if whole > 0.0 { (WIDTH - 2.0 * MARGIN) / whole } else { 0.0 };
    let mut spans: Vec<(f64, f64)> = Vec::with_capacity(totals.len());
    // Where the next child of each node begins.
    let mut next: Vec<f64> = Vec::with_capacity(totals.len());
    for (node, total) in report.tree.nodes().iter().zip(totals) {
        let width = weight(total) * pixels;
        let left = next.get(place(node.parent)).copied().unwrap_or(MARGIN);
        if let Some(cursor) = next.get_mut(place(node.parent)) {
            *cursor += width;
        }
        spans.push((left, width));
        next.push(left);
    }
    spans
}

/// As much of a name as fits into a frame; none if that is too little to read.
fn label(name: &str, width: f64) -> Option<String> {
    let fits = |letters: usize| f64::from(u32::try_from(letters).unwrap_or(u32::MAX)) * LETTER + 8.0 <= width;
    // People use the part after the last slash as the name.
    let short = name.rsplit('/').next().unwrap_or(name);
    let candidates = [name, short];
    if let Some(whole) = candidates.into_iter().find(|text| fits(text.chars().count())) {
        return Some(whole.to_owned());
    }
    let letters = (3..short.chars().count()).rev().find(|&letters| fits(letters + 1))?;
    Some(short.chars().take(letters).chain(['…']).collect())
}

/// Samples or a time, with its unit.
fn of(values: Values, value: u64) -> String {
    match values {
        Values::Samples => format!("{value} samples"),
        Values::Times => amount(values, value),
    }
}
