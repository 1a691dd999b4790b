//! Intervals one below the other, as in a meta-analysis: one row for each cell.

use fleetdiff_diff::shorten::shortened;
use fleetdiff_pipeline::rules::advice::effect_of;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::rows::Interval;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{AXIS, Ink, RatioAxis, UNITS, Undrawn, WIDTH, above_axis, picture, printable, stroke, written};
use crate::document::Tone;

/// Height of a row in pixels: a line of text above the interval.
const ROW: u32 = 38;
/// Most characters of a row's name beside its figures.
const NAME: usize = 30;
/// Height of a row in units of the picture.
const ROW_UNITS: i32 = (ROW * UNITS).cast_signed();
/// Room beside texts, in units.
const MARGIN: i32 = (4 * UNITS).cast_signed();
/// The right edge of the picture, in units.
const RIGHT: i32 = (WIDTH * UNITS).cast_signed();

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    /// Where.
    pub(crate) place: String,
    /// How many times as expensive; none where that is not known.
    pub(crate) ratio: Option<Interval>,
    /// What that means.
    pub(crate) tone: Tone,
    /// Whether it is flagged.
    pub(crate) is_flagged: bool,
}

/// The rows, first on top, and what the picture shows in words.
pub(crate) fn forest(rows: &[Effect], describes: &str) -> Result<String, Undrawn> {
    let names: Vec<(String, String)> = rows
        .iter()
        .map(|row| {
            let whole = printable(&row.place);
            (shortened(&whole, NAME), whole)
        })
        .collect();
    let height = ROW * u32::try_from(rows.len()).unwrap_or(1) + AXIS;
    picture(height, describes, &names, |area| {
        let axis = RatioAxis::of(rows.iter().filter_map(|row| row.ratio));
        let bottom = length_float(rows.len());
        let mut chart = above_axis(area, axis.range(), rows.len(), |place| axis.label(place))?;
        let one = axis.place(1.0);
        let still = PathElement::new(vec![(one, 0.0), (one, bottom)], stroke(Ink::Soft, 1));
        chart.draw_series([still]).map_err(Undrawn::of)?;
        for (place, (row, (short, _))) in rows.iter().zip(&names).enumerate() {
            let line = length_float(place) + 0.72;
            let figures = row.ratio.map_or_else(|| "not tested".to_owned(), effect_of);
            let ink = if row.is_flagged { Ink::Text } else { Ink::Soft };
            let top = i32::try_from(place).unwrap_or(0) * ROW_UNITS + ROW_UNITS * 3 / 10;
            let texts = [
                Text::new(short.clone(), (MARGIN, top), written(ink, HPos::Left)),
                Text::new(figures, (RIGHT - MARGIN, top), written(ink, HPos::Right)),
            ];
            texts.iter().try_for_each(|text| area.draw(text)).map_err(Undrawn::of)?;
            let Some(ratio) = row.ratio else { continue };
            let ends = vec![(axis.place(ratio.low), line), (axis.place(ratio.high), line)];
            let interval = PathElement::new(ends, stroke(Ink::of(row.tone), 2));
            chart.draw_series([interval]).map_err(Undrawn::of)?;
            let colour = Ink::of(row.tone).colour();
            let (radius, style) = if row.is_flagged { (5, colour.filled()) } else { (4, stroke(Ink::of(row.tone), 2)) };
            let estimate = Circle::new((axis.place(ratio.value), line), radius * UNITS, style);
            chart.draw_series([estimate]).map_err(Undrawn::of)?;
        }
        Ok(())
    })
}
