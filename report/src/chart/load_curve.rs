//! What a request costs across load: one dot a minute.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{AXIS, EDGE, Ink, UNITS, Undrawn, WIDTH, picture, stroke, trimmed, written};
use crate::document::Tone;

/// Height of the plane in pixels.
const HEIGHT: u32 = 220;
/// Room for the names of the axes and for the labels at the left, in pixels.
const NAMES: u32 = 24;
const LABELS: u32 = 60;

/// One minute of one build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Minute {
    /// Requests a pod.
    pub(crate) load: f64,
    /// Samples a request.
    pub(crate) cost: f64,
    /// Which build, by colour.
    pub(crate) tone: Tone,
    /// Whether the dot is filled.
    pub(crate) is_head: bool,
}

/// The minutes in a plane that begins at no cost.
pub(crate) fn load_curve(minutes: &[Minute], describes: &str) -> Result<String, Undrawn> {
    picture(HEIGHT + AXIS + 2 * NAMES, describes, &[], |area| {
        let loads = || minutes.iter().map(|minute| minute.load);
        let (least, most) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
        let room = ((most - least) * 0.05).max(most * 0.01).max(1e-9);
        let top = minutes.iter().map(|minute| minute.cost).fold(0.0, f64::max).max(1e-9) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .margin_top(NAMES * UNITS)
            .margin_right(EDGE * UNITS)
            .margin_bottom(NAMES * UNITS)
            .x_label_area_size(AXIS * UNITS)
            .y_label_area_size(LABELS * UNITS)
            .build_cartesian_2d(least - room..most + room, 0.0..top)
            .map_err(Undrawn::of)?;
        chart
            .configure_mesh()
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&|load: &f64| trimmed(*load))
            .y_label_formatter(&|cost: &f64| trimmed(*cost))
            .x_label_style(written(Ink::Soft, HPos::Center))
            .y_label_style(written(Ink::Soft, HPos::Right))
            .axis_style(stroke(Ink::Line, 1))
            .bold_line_style(stroke(Ink::Line, 1))
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(Undrawn::of)?;
        let dots = minutes.iter().map(|minute| {
            let ink = Ink::of(minute.tone);
            let style = if minute.is_head { ink.colour().filled() } else { stroke(ink, 1) };
            Circle::new((minute.load, minute.cost), 4 * UNITS, style)
        });
        chart.draw_series(dots).map_err(Undrawn::of)?;
        let place = |pixels: u32| (pixels * UNITS).cast_signed();
        let names = [
            Text::new("samples a request", (place(4), place(NAMES / 2)), written(Ink::Soft, HPos::Left)),
            Text::new(
                "requests a pod in a minute",
                (place(WIDTH - EDGE), place(HEIGHT + AXIS + NAMES + NAMES / 2)),
                written(Ink::Soft, HPos::Right),
            ),
        ];
        names.iter().try_for_each(|name| area.draw(name)).map_err(Undrawn::of)
    })
}
