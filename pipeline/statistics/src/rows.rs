//! All of one cell for a report: every test of every function.

use crate::deviance::LevelTests;
use crate::effect::LnInterval;
use crate::evalue::ln_e;
use crate::normalization::Scales;
use crate::test::Tests;

/// ln .05: a share that moved the other way at this level contradicts a change against the scale.
const CONTRADICTS: f64 = -2.995_732_273_553_991;

/// The results of one cell; vectors are by function, NaN where not tested.
#[derive(Clone, Debug)]
pub struct CellRows {
    /// By how much all shares moved.
    pub scales: Scales,
    /// ln of the ratio against the deciding scale.
    pub theta: Vec<f64>,
    /// ln p_a: of "unchanged against every admissible scale". What decides; 0 if the scales disagree in direction.
    pub ln_p: Vec<f64>,
    /// ln p of "within the smallest effect worth a flag", of any admissible scale.
    pub ln_p_min_effect: Vec<f64>,
    /// ln p_row, that the two-level selection takes: the larger of both.
    pub ln_p_row: Vec<f64>,
    /// ln p_s: of "the share is unchanged".
    pub ln_p_share: Vec<f64>,
    /// ln p for "moved only because shares sum to one": the share's, by more than the smallest effect.
    pub ln_p_comp: Vec<f64>,
    /// ln of the e-value of `ln_p`.
    pub ln_e: Vec<f64>,
    /// Whether the share itself moved the other way.
    pub contradicts: Vec<bool>,
    /// What does not depend on the scale.
    pub tests: Tests,
}

/// Everything about one cell. `scales` are those of its self counts, also where total counts are tested; `min_effect` is the log
/// ratio that is not worth a flag.
///
/// Checked against the reference program (`cell.json`) to 1e-7.
#[must_use]
pub fn rows_of_cell(tests: Tests, scales: Scales, min_effect: f64) -> CellRows {
    let functions = tests.tested.len();
    let nan = || vec![f64::NAN; functions];
    let mut rows = CellRows {
        scales,
        theta: nan(),
        ln_p: nan(),
        ln_p_min_effect: nan(),
        ln_p_row: nan(),
        ln_p_share: nan(),
        ln_p_comp: nan(),
        ln_e: nan(),
        contradicts: vec![false; functions],
        tests,
    };
    for place in 0..functions {
        if rows.tests.tested[place] {
            rows.fill(place, min_effect);
        }
    }
    rows
}

impl CellRows {
    fn fill(&mut self, place: usize, min_effect: f64) {
        let levels = self.tests.levels[place];
        let (tests, share) = (levels.tests(), levels.theta());
        let against_scales = tests.with_scale_variance(self.scales.variance);
        let against = AgainstScales::of(&against_scales, &self.scales);
        self.theta[place] = against.theta;
        self.ln_p[place] = against.ln_p;
        self.ln_p_min_effect[place] =
            largest(self.scales.ln_scales(), |ratio| against_scales.ln_p_min_effect(ratio, min_effect));
        let row = against.ln_p.max(self.ln_p_min_effect[place]).min(0.0);
        self.ln_p_row[place] = if against.one_direction { row } else { 0.0 };
        self.ln_p_share[place] = tests.ln_p(1.0);
        self.ln_p_comp[place] = self.ln_p_share[place].max(tests.ln_p_min_effect(1.0, min_effect));
        self.ln_e[place] = ln_e(against.ln_p, against_scales.variance());
        self.contradicts[place] = contradicts(share, against.theta, || self.ln_p_share[place]);
    }

    /// The interval of theta against the deciding scale, at `level` (.95).
    #[must_use]
    pub fn interval(&self, place: usize, level: f64) -> LnInterval {
        if !self.tests.tested[place] {
            return LnInterval::UNKNOWN;
        }
        self.against_scales(place).interval(libm::log1p(-level)).against(self.scales.deciding.ln_scale)
    }

    /// The tests of a function against a scale.
    #[must_use]
    pub fn against_scales(&self, place: usize) -> LevelTests {
        self.tests.levels[place].tests().with_scale_variance(self.scales.variance)
    }
}

/// Whether a share that changed by `share` contradicts a change by `theta` against the scale: the other way, p_s <= .05.
pub(crate) fn contradicts(share: f64, theta: f64, ln_p_share: impl Fn() -> f64) -> bool {
    share * theta < 0.0 && ln_p_share() <= CONTRADICTS
}

/// One function against every admissible scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgainstScales {
    /// ln of its ratio against the deciding scale.
    pub theta: f64,
    /// The largest ln p; 0 if the scales disagree in direction.
    pub ln_p: f64,
    /// Whether it changed in the same direction against each.
    pub one_direction: bool,
}

impl AgainstScales {
    pub fn of(tests: &LevelTests, scales: &Scales) -> Self {
        let raw = tests.levels.theta();
        let theta = raw - scales.deciding.ln_scale;
        let one_direction = scales.rivals.iter().all(|rival| (raw - rival.ln_scale) * theta > 0.0);
        let ln_p = if one_direction { largest(scales.ln_scales(), |ratio| tests.ln_p(ratio)) } else { 0.0 };
        Self { theta, ln_p, one_direction }
    }
}

fn largest(ln_scales: impl Iterator<Item = f64>, ln_p: impl Fn(f64) -> f64) -> f64 {
    ln_scales.map(|ln_scale| ln_p(libm::exp(ln_scale))).fold(f64::NEG_INFINITY, f64::max)
}
