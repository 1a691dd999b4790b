//! Two ratios across each other: to the right more of one, above more of the other.

use fleetdiff_schemas::rows::Interval;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{AXIS, EDGE, Ink, RatioAxis, UNITS, Undrawn, WIDTH, picture, stroke, written};
use crate::document::Tone;

/// Height of the plane in pixels.
const HEIGHT: u32 = 260;
/// Room for the names of the axes and for the labels at the left, in pixels.
const NAMES: u32 = 24;
const LABELS: u32 = 60;

/// A dot with both intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot {
    /// What stands beside it.
    pub(crate) number: usize,
    /// To the right.
    pub(crate) across: Interval,
    /// Upwards.
    pub(crate) upwards: Interval,
    /// What that means.
    pub(crate) tone: Tone,
    /// Whether something changed.
    pub(crate) has_changed: bool,
}

/// The dots in a plane with a line at 1 in both directions; the names are of the axes.
pub(crate) fn quadrant(dots: &[Dot], [across, upwards]: [&str; 2], describes: &str) -> Result<String, Undrawn> {
    picture(HEIGHT + AXIS + 2 * NAMES, describes, &[], |area| {
        let to_right = RatioAxis::of(dots.iter().map(|dot| dot.across));
        let to_top = RatioAxis::of(dots.iter().map(|dot| dot.upwards));
        let (left, right) = (to_right.range().start, to_right.range().end);
        let (bottom, top) = (to_top.range().start, to_top.range().end);
        let mut chart = ChartBuilder::on(area)
            .margin_top(NAMES * UNITS)
            .margin_right(EDGE * UNITS)
            .margin_bottom(NAMES * UNITS)
            .x_label_area_size(AXIS * UNITS)
            .y_label_area_size(LABELS * UNITS)
            .build_cartesian_2d(left..right, bottom..top)
            .map_err(Undrawn::of)?;
        chart
            .configure_mesh()
            .x_labels(4)
            .y_labels(5)
            .x_label_formatter(&|place: &f64| to_right.label(*place))
            .y_label_formatter(&|place: &f64| to_top.label(*place))
            .x_label_style(written(Ink::Soft, HPos::Center))
            .y_label_style(written(Ink::Soft, HPos::Right))
            .axis_style(stroke(Ink::Line, 1))
            .bold_line_style(stroke(Ink::Line, 1))
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(Undrawn::of)?;
        let (still, level) = (to_right.place(1.0), to_top.place(1.0));
        let lines = [vec![(still, bottom), (still, top)], vec![(left, level), (right, level)]];
        let lines = lines.map(|line| PathElement::new(line, stroke(Ink::Soft, 1)));
        chart.draw_series(lines).map_err(Undrawn::of)?;
        for dot in dots {
            let (x, y) = (to_right.place(dot.across.value), to_top.place(dot.upwards.value));
            let ends = [
                vec![(to_right.place(dot.across.low), y), (to_right.place(dot.across.high), y)],
                vec![(x, to_top.place(dot.upwards.low)), (x, to_top.place(dot.upwards.high))],
            ];
            let ink = Ink::of(dot.tone);
            chart.draw_series(ends.map(|end| PathElement::new(end, stroke(ink, 1)))).map_err(Undrawn::of)?;
            let style = if dot.has_changed { ink.colour().filled() } else { stroke(ink, 2) };
            chart.draw_series([Circle::new((x, y), 5 * UNITS, style)]).map_err(Undrawn::of)?;
            let beside = (i32_of(8), -i32_of(9));
            let number =
                EmptyElement::at((x, y)) + Text::new(dot.number.to_string(), beside, written(Ink::Text, HPos::Left));
            chart.draw_series([number]).map_err(Undrawn::of)?;
        }
        let names = [
            Text::new(upwards.to_owned(), (i32_of(4), i32_of(NAMES / 2)), written(Ink::Soft, HPos::Left)),
            Text::new(
                across.to_owned(),
                (i32_of(WIDTH - EDGE), i32_of(HEIGHT + AXIS + NAMES + NAMES / 2)),
                written(Ink::Soft, HPos::Right),
            ),
        ];
        names.iter().try_for_each(|name| area.draw(name)).map_err(Undrawn::of)
    })
}

/// Pixels as units of a picture.
fn i32_of(pixels: u32) -> i32 {
    (pixels * UNITS).cast_signed()
}
