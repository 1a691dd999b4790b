//! The tests of shares of one kind of count in a cell, or in several together.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::verdict::Support;
use fleetdiff_statistics::normalization::Anchor;
use fleetdiff_statistics::one_pod::LeaveOneOut;
use fleetdiff_statistics::{Arms, CellRows, Contrast, Measure, Model, Pooled, Scales, Tests, rows_of_cell};

use super::others::FromOthers;

/// The tests of shares of one kind of count, with what they were made of.
pub struct ShareTests<'a> {
    /// What was compared.
    pub contrast: Contrast<'a>,
    /// The tests, by places of results.
    pub tests: Tests,
}

impl<'a> ShareTests<'a> {
    /// Tests the functions of a contrast with at least `min_count` samples; what they share is measured afresh. A function
    /// with fewer than 2 degrees of freedom is in no family.
    pub fn measure(contrast: Contrast<'a>, min_count: f64) -> Self {
        Self::measured(contrast, &Measure { min_count, ..Measure::afresh(Model::Share) })
    }

    /// The same of functions whose samples are summed already; what they share is `held`, or measured afresh.
    pub fn of_summed(contrast: Contrast<'a>, counts: &Arms<Vec<f64>>, min_count: f64, held: Option<&Pooled>) -> Self {
        Self::measured(contrast, &Measure { min_count, counts: Some(counts), held, ..Measure::afresh(Model::Share) })
    }

    fn measured(contrast: Contrast<'a>, measure: &Measure<'_>) -> Self {
        let mut tests = Tests::measure(&contrast, measure);
        for (tested, levels) in tests.tested.iter_mut().zip(&tests.levels) {
            *tested = *tested && levels.df >= LEAST_DF;
        }
        tests.tests = tests.tested.iter().filter(|&&tested| tested).count();
        Self { contrast, tests }
    }

    /// The same with only the functions at these places, ascending.
    pub fn only(&self, places: &[usize]) -> Self {
        Self::at(&self.contrast, &self.tests, places)
    }

    /// What was measured on a contrast, with only the functions at these places, ascending.
    pub fn at(contrast: &Contrast<'a>, tests: &Tests, places: &[usize]) -> Self {
        let ids = places.iter().map(|&place| contrast.id(place)).collect();
        Self {
            contrast: Contrast { only: Some(ids), order: Vec::new(), ..contrast.clone() },
            tests: tests.only(places),
        }
    }

    /// The scales of these tests, if they are those of self counts. Of few functions shares say where unchanged is only if
    /// requests are not known.
    pub fn scales(&self, anchor: Option<Anchor>, requests_known: bool) -> Scales {
        self.or_of_few(Scales::of(&self.tests, anchor), requests_known)
    }

    /// The same for a look.
    pub fn scales_of_look(&self, anchor: Option<Anchor>, requests_known: bool) -> Scales {
        self.or_of_few(Scales::of_look(&self.tests, anchor), requests_known)
    }

    fn or_of_few(&self, scales: Scales, requests_known: bool) -> Scales {
        if scales.measured || requests_known { scales } else { Scales::of_few(&self.tests) }
    }

    /// Every test of every function.
    pub fn rows(self, scales: &Scales, min_effect: f64) -> ShareRows<'a> {
        ShareRows { rows: rows_of_cell(self.tests, scales.clone(), min_effect), contrast: self.contrast }
    }
}

/// Fewer degrees of freedom than these carry no test.
pub const LEAST_DF: f64 = 2.0;

/// All tests of shares of one kind of count.
pub struct ShareRows<'a> {
    contrast: Contrast<'a>,
    /// The tests, by places of results.
    pub rows: CellRows,
}

impl ShareRows<'_> {
    /// What the test at a place takes from the other functions.
    pub fn taken_from_others(&self, place: usize) -> FromOthers {
        FromOthers::of(&self.rows.tests, &self.rows.scales, self.contrast.id(place), place)
    }

    /// Finds the bucket without which a row does not hold.
    pub fn leave_one_out(&self) -> impl Fn(usize) -> Option<(Side, u16)> + '_ {
        let left_out = LeaveOneOut::new(&self.contrast, Model::Share);
        let ln_scale = self.rows.scales.deciding.ln_scale;
        move |place| {
            let one = left_out.one_pod(&self.rows.tests, place, ln_scale)?;
            let side = match one.side {
                fleetdiff_statistics::Side::Head => Side::Head,
                fleetdiff_statistics::Side::Base => Side::Base,
            };
            Some((side, one.bucket))
        }
    }
}

/// The support that so many pods of head and base give to a test with `df` degrees of freedom, as tables name it.
pub fn support_of(head_pods: i64, base_pods: i64, df: f64) -> Support {
    let pods = |pods: i64| fleetdiff_schemas::number::signed_float(pods);
    match fleetdiff_statistics::support(pods(head_pods), pods(base_pods), df) {
        fleetdiff_statistics::Support::Firm => Support::Firm,
        fleetdiff_statistics::Support::Tentative => Support::Tentative,
        fleetdiff_statistics::Support::Untestable => Support::Untestable,
    }
}

/// Functions by their own numbers, each with its place in a contrast.
#[derive(Clone, Copy)]
pub struct Places<'a>(pub Option<&'a [u32]>);

impl Places<'_> {
    /// The place of a function in the contrast.
    pub fn of(self, function: usize) -> usize {
        self.0.map_or(function, |places| index_of(places[function]))
    }
}
