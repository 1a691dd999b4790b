//! The course of a ratio over time, with the band that holds however often one looks.

use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::time::Nanos;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{EDGE, Ink, RatioAxis, UNITS, Undrawn, picture, stroke, written};
use crate::document::Tone;
use crate::figures::{minute, second};

/// Height of the picture in pixels.
const HEIGHT: u32 = 250;
/// Seconds of a unit of the axis of time.
const MINUTE: f64 = 60.0;

/// Minutes below which an axis shows seconds.
const SHORT: f64 = 6.0;

/// What was known at one report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// When.
    pub(crate) at: Nanos,
    /// The start of the epoch: at another one, all begins anew.
    pub(crate) epoch: Nanos,
    /// The ratio with its interval at this report.
    pub(crate) ratio: Interval,
    /// The ratio with its interval that holds at every look.
    pub(crate) always: Option<Interval>,
}

/// The course of one ratio.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    /// By time.
    pub(crate) moments: Vec<Moment>,
    /// When its incident was raised.
    pub(crate) raised_at: Nanos,
    /// What the change means.
    pub(crate) tone: Tone,
}

impl Course {
    /// Moments of one epoch after the other.
    fn epochs(&self) -> impl Iterator<Item = &[Moment]> {
        self.moments.chunk_by(|a, b| a.epoch == b.epoch)
    }

    fn axis(&self) -> RatioAxis {
        let always = self.moments.iter().filter_map(|moment| moment.always);
        RatioAxis::of(self.moments.iter().map(|moment| moment.ratio).chain(always))
    }

    /// From the first report, or the moment at which the incident was raised, to the last.
    fn span(&self) -> std::ops::Range<f64> {
        let first = self.moments.iter().map(|moment| moment.at).fold(self.raised_at, Nanos::min);
        let last = self.moments.iter().map(|moment| moment.at).fold(self.raised_at, Nanos::max);
        let (first, last) = (minutes(first), minutes(last));
        let room = ((last - first) * 0.04).max(0.5);
        first - room..last + room
    }
}

/// Minutes since 1970.
fn minutes(at: Nanos) -> f64 {
    at.as_seconds() / MINUTE
}

/// The time of day of a place on the axis, to the second if the axis is short.
fn time_of_day(place: f64, is_short: bool) -> String {
    // NB: places lie between instants, so they can be instants.
    let seconds = fleetdiff_schemas::number::whole(place * MINUTE);
    let at = Nanos::from_seconds(i64::try_from(seconds).unwrap_or(0));
    if is_short { second(at) } else { minute(at) }
}

/// The picture.
pub(crate) fn course(course: &Course, describes: &str) -> Result<String, Undrawn> {
    picture(HEIGHT, describes, &[], |area| {
        let (axis, span) = (course.axis(), course.span());
        let mut chart = ChartBuilder::on(area)
            .margin_left(2 * UNITS)
            .margin_right(EDGE * UNITS)
            .margin_top(10 * UNITS)
            .x_label_area_size(28 * UNITS)
            .y_label_area_size(52 * UNITS)
            .build_cartesian_2d(span.clone(), axis.range())
            .map_err(Undrawn::of)?;
        let is_short = span.end - span.start < SHORT;
        let (time, label) = (|place: &f64| time_of_day(*place, is_short), |place: &f64| axis.label(*place));
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(if is_short { 4 } else { 6 })
            .y_labels(6)
            .x_label_formatter(&time)
            .y_label_formatter(&label)
            .x_label_style(written(Ink::Soft, HPos::Center))
            .y_label_style(written(Ink::Soft, HPos::Right))
            .axis_style(stroke(Ink::Line, 1))
            .bold_line_style(stroke(Ink::Line, 1))
            .light_line_style(TRANSPARENT)
            .draw()
            .map_err(Undrawn::of)?;
        bands(&mut chart, course)?;
        let ink = Ink::of(course.tone);
        let lines = [
            PathElement::new(vec![(span.start, axis.place(1.0)), (span.end, axis.place(1.0))], stroke(Ink::Soft, 1)),
            PathElement::new(
                [axis.low, axis.high].map(|end| (minutes(course.raised_at), axis.place(end))).to_vec(),
                stroke(ink, 1),
            ),
        ];
        chart.draw_series(lines).map_err(Undrawn::of)?;
        lines_of(&mut chart, course)?;
        let range = axis.range();
        let corner =
            (minutes(course.raised_at) + (span.end - span.start) * 0.015, range.end - (range.end - range.start) * 0.03);
        let raised = Text::new("raised", corner, written(ink, HPos::Left));
        chart.draw_series([raised]).map_err(Undrawn::of)?;
        Ok(())
    })
}

/// The plane of the picture: minutes across, places of ratios up.
type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The band of each epoch.
fn bands(chart: &mut Plane<'_, '_>, course: &Course) -> Result<(), Undrawn> {
    let axis = course.axis();
    let ink = Ink::of(course.tone);
    let band = ink.colour().mix(0.22).filled();
    for epoch in course.epochs() {
        let always: Vec<(f64, Interval)> =
            epoch.iter().filter_map(|moment| Some((minutes(moment.at), moment.always?))).collect();
        let upper = always.iter().map(|(at, of)| (*at, axis.place(of.high)));
        let lower = always.iter().rev().map(|(at, of)| (*at, axis.place(of.low)));
        let edge: Vec<(f64, f64)> = upper.chain(lower).collect();
        chart.draw_series([Polygon::new(edge, band)]).map_err(Undrawn::of)?;
    }
    Ok(())
}

/// The estimates of each epoch with their intervals.
fn lines_of(chart: &mut Plane<'_, '_>, course: &Course) -> Result<(), Undrawn> {
    let (axis, ink) = (course.axis(), Ink::of(course.tone));
    for epoch in course.epochs() {
        let line: Vec<(f64, f64)> =
            epoch.iter().map(|moment| (minutes(moment.at), axis.place(moment.ratio.value))).collect();
        let intervals = epoch.iter().map(|Moment { at, ratio, .. }| {
            let ends = [ratio.low, ratio.high].map(|end| (minutes(*at), axis.place(end)));
            PathElement::new(ends.to_vec(), stroke(ink, 2))
        });
        chart.draw_series(intervals).map_err(Undrawn::of)?;
        let dots: Vec<_> = line.iter().map(|dot| Circle::new(*dot, 4 * UNITS, ink.colour().filled())).collect();
        chart.draw_series([PathElement::new(line, stroke(ink, 2))]).map_err(Undrawn::of)?;
        chart.draw_series(dots).map_err(Undrawn::of)?;
    }
    Ok(())
}
