//! By how much functions differ between two single runs of one program, as the functions of these two runs themselves show.
//!
//! Runs differ in load, in layout, in what the compiler of a runtime chose and in what else the machine did. With one run a side this
//! cannot be measured for a single function, but the functions of a profile share it, so it can be learned from all others (an
//! empirical null, Efron 2004). Most differ little and some much more, so one standard deviation does not do: what a log ratio has
//! beyond independent samples is taken for a scale times Student's t, a normal whose variance differs from function to function.
//! Neither scale nor degrees of freedom are known, least of all in a profile of few functions: all are kept, weighted by how well
//! they explain the other functions and by what is known before ([`Expected`]). If most functions really changed, that counts as
//! variation between runs too: two files cannot distinguish the two.

use std::sync::LazyLock;

use fleetdiff_formats::names::FrameClass;
use fleetdiff_schemas::number::length_float;
use fleetdiff_statistics::special::ln_add;
use fleetdiff_statistics::tails::ln_chi1_tail;

/// Variances are e to a whole number of these.
const STEP: f64 = 0.5;

/// ln of the first squared scale, in steps: scales go from .01 % to a factor of 2.7.
const FIRST_SCALE: i32 = -36;

/// ln of the smallest variance of a function in units of the squared scale, in steps.
const FIRST_SPREAD: i32 = -5;

const SCALE_COUNT: usize = 41;
const SPREAD_COUNT: usize = 34;

/// Variances: each scale with each spread.
const VARIANCES: usize = SCALE_COUNT + SPREAD_COUNT - 1;

/// Degrees of freedom of t; the last stands for a normal.
const FREEDOMS: [f64; 6] = [1.0, 2.0, 3.0, 5.0, 10.0, f64::INFINITY];

/// By degrees of freedom, how often each spread occurs: df over chi-square of df degrees of freedom.
static SPREAD: LazyLock<[[f64; SPREAD_COUNT]; FREEDOMS.len()]> = LazyLock::new(|| {
    FREEDOMS.map(|df| {
        let ln_spread = |place: usize| at(FIRST_SPREAD, place);
        let weight = |place: usize| match df.is_finite() {
            true => libm::exp(-0.5 * df * (ln_spread(place) + libm::exp(-ln_spread(place)) - 1.0)),
            false => f64::from(u8::from(ln_spread(place).abs() < 0.5 * STEP)),
        };
        normalised(std::array::from_fn(weight))
    })
});

/// All variances.
static VARIANCE: LazyLock<[f64; VARIANCES]> =
    LazyLock::new(|| std::array::from_fn(|place| libm::exp(at(FIRST_SCALE + FIRST_SPREAD, place))));

fn at(first: i32, place: usize) -> f64 {
    STEP * (f64::from(first) + length_float(place))
}

fn normalised<const N: usize>(weights: [f64; N]) -> [f64; N] {
    let all: f64 = weights.iter().sum();
    weights.map(|weight| weight / all)
}

/// What is expected of the variation between runs before any profile is seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The scale: the middle of what is expected.
    scale: f64,
    /// Of each number of degrees of freedom.
    freedoms: [f64; FREEDOMS.len()],
}

/// How far, as a log ratio, a scale may be from the one that is expected: the standard deviation.
const UNCERTAIN: f64 = 0.9;

impl Expected {
    /// Of the program's own functions.
    const PROGRAM: Self = Self { scale: 0.04, freedoms: [0.001, 0.1, 0.2, 0.25, 0.25, 0.199] };

    /// Of runtimes and kernels, which schedule, collect and wait as the machine has it: a lock or a scheduler takes a quarter of all samples of one run
    /// and a thousandth of the next.
    const SURROUNDINGS: Self = Self { scale: 0.15, freedoms: [0.3, 0.25, 0.2, 0.1, 0.1, 0.05] };

    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::PROGRAM, Self::SURROUNDINGS];

    /// Which of them is expected of a function of this class.
    pub(super) fn place_of(class: FrameClass) -> usize {
        match class {
            FrameClass::Program | FrameClass::Unknown => 0,
            FrameClass::Runtime | FrameClass::Native | FrameClass::Kernel => 1,
        }
    }
}

/// A log ratio beside the one that is expected, and its variance if samples are independent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviation {
    pub(super) beyond: f64,
    pub(super) variance: f64,
}

/// A figure of each scale and degrees of freedom.
type Weights = [[f64; SCALE_COUNT]; FREEDOMS.len()];

/// What functions show of the variation between runs.
#[derive(Clone, Debug)]
pub(super) struct EmpiricalNull {
    ln_weights: Weights,
}

impl EmpiricalNull {
    /// What is expected, and nothing seen.
    pub(super) fn expected(expected: &Expected) -> Self {
        let ln_scale = libm::log(expected.scale);
        let of = |place: usize| {
            let off = (0.5 * at(FIRST_SCALE, place) - ln_scale) / UNCERTAIN;
            -0.5 * off * off
        };
        Self { ln_weights: expected.freedoms.map(|part| std::array::from_fn(|place| of(place) + libm::log(part))) }
    }

    /// Learns from one more function.
    pub(super) fn learn(&mut self, function: Deviation) {
        self.weigh(function, 1.0);
    }

    fn weigh(&mut self, function: Deviation, sign: f64) {
        for (of, add) in self.ln_weights.iter_mut().zip(likelihoods(function)) {
            of.iter_mut().zip(add).for_each(|(weight, add)| *weight += sign * add);
        }
    }

    /// The null of one function: what all others show.
    pub(super) fn without(&self, function: Option<Deviation>) -> Null {
        let mut others = self.clone();
        function.into_iter().for_each(|function| others.weigh(function, -1.0));
        let mut parts = [0.0; VARIANCES];
        for (weights, spreads) in others.weights().iter().zip(SPREAD.iter()) {
            for (scale, weight) in weights.iter().enumerate() {
                parts[scale..].iter_mut().zip(spreads).for_each(|(part, spread)| *part += weight * spread);
            }
        }
        let all: f64 = parts.iter().sum();
        let parts = parts
            .iter()
            .zip(VARIANCE.iter())
            .map(|(part, &variance)| Part { variance, ln_part: libm::log(part / all) });
        Null { parts: parts.filter(|part| part.ln_part > LEAST).collect() }
    }

    /// The scale: the middle, by its logarithm, of all scales.
    pub(super) fn scale(&self) -> f64 {
        let weights = self.weights();
        let all: f64 = weights.iter().flatten().sum();
        let ln_scales =
            weights.iter().flat_map(|of| (0..).zip(of)).map(|(place, weight)| weight * 0.5 * at(FIRST_SCALE, place));
        libm::exp(ln_scales.sum::<f64>() / all)
    }

    /// Weights of which the largest is 1.
    fn weights(&self) -> Weights {
        let most = self.ln_weights.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        self.ln_weights.map(|of| of.map(|weight| libm::exp(weight - most)))
    }
}

/// ln of how likely a function is under each scale and degrees of freedom.
fn likelihoods(function: Deviation) -> Weights {
    let Deviation { beyond, variance } = function;
    let density = |more: f64| libm::exp(-0.5 * beyond * beyond / (variance + more)) / libm::sqrt(variance + more);
    let densities = VARIANCE.map(density);
    SPREAD.map(|spreads| {
        std::array::from_fn(|scale| {
            let sum: f64 = densities[scale..].iter().zip(spreads).map(|(density, part)| density * part).sum();
            libm::log(sum.max(f64::MIN_POSITIVE))
        })
    })
}

/// What one function may differ by between runs if nothing changed: a normal of one of many variances.
#[derive(Clone, Debug)]
pub(super) struct Null {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    variance: f64,
    /// ln of how often it has this variance.
    ln_part: f64,
}

/// What occurs less often than this, by its logarithm, is left out.
const LEAST: f64 = -28.0;

/// Halvings of the interval in the search for a quantile.
const HALVINGS: usize = 24;

impl Null {
    /// A normal of this standard deviation; of 0, samples alone decide.
    pub(super) fn of_scale(scale: f64) -> Self {
        Self { parts: vec![Part { variance: scale * scale, ln_part: 0.0 }] }
    }

    /// ln of the probability that a function differs by as much if nothing changed.
    ///
    /// `statistic` would be chi-square with 1 degree of freedom if samples were independent: G, or the squared deviation over its
    /// `variance`.
    pub(super) fn ln_p(&self, statistic: f64, variance: f64) -> f64 {
        let tail = |part: &Part| part.ln_part + ln_chi1_tail(statistic / (1.0 + part.variance / variance));
        self.parts.iter().map(tail).fold(f64::NEG_INFINITY, ln_add).min(0.0)
    }

    /// What a log ratio with this variance of samples stays within in 95 of 100 cases if nothing changed.
    pub(super) fn half_of_interval(&self, variance: f64) -> f64 {
        let ln_level = libm::log(0.05);
        let is_within = |half: f64| self.ln_p(half * half / variance, variance) > ln_level;
        let (mut low, mut high) = (0.0, 2.0 * libm::sqrt(variance));
        while is_within(high) && high < 1e3 {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            *(if is_within(middle) { &mut low } else { &mut high }) = middle;
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use fleetdiff_statistics::special::normal_quantile;
    use fleetdiff_statistics::tails::{ln_f_tail, t_quantile};

    use super::*;

    /// 400 functions, each with the same variance of samples, whose log ratios are the quantiles of a normal of this deviation.
    fn normals(deviation: f64, variance: f64) -> Vec<Deviation> {
        let level = |place: u32| (f64::from(place) + 0.5) / 400.0;
        (0..400).map(|place| Deviation { beyond: deviation * normal_quantile(level(place)), variance }).collect()
    }

    fn learned(functions: &[Deviation]) -> EmpiricalNull {
        let mut null = EmpiricalNull::expected(&Expected::PROGRAM);
        functions.iter().for_each(|function| null.learn(*function));
        null
    }

    fn p(null: &Null, beyond: f64, variance: f64) -> f64 {
        libm::exp(null.ln_p(beyond * beyond / variance, variance))
    }

    #[test]
    fn a_variation_between_runs_is_measured() {
        let scale = learned(&normals(0.05, 0.0009)).scale();
        assert!((scale - 0.04).abs() < 0.006, "{scale}");
        let none = learned(&normals(0.03, 0.0009));
        // 400 functions tell a variance to .0009 sqrt(2/400), a scale of .008.
        assert!(none.scale() < 0.008, "independent samples: {}", none.scale());
        // Two standard deviations of a normal of .05.
        let found = p(&learned(&normals(0.05, 0.0009)).without(None), 0.1, 0.0009);
        assert!((0.04..0.06).contains(&found), "{found}");
    }

    #[test]
    fn a_minority_that_changed_hardly_counts() {
        let mut functions = normals(0.05, 1e-6);
        functions.iter_mut().step_by(10).for_each(|function| function.beyond += 0.5);
        let scale = learned(&functions).scale();
        assert!((0.03..0.055).contains(&scale), "{scale}, .05 without those that changed");
    }

    /// What is learned of a function is not held against it: taken out again, it leaves what was there before.
    #[test]
    fn a_function_is_held_against_all_others() {
        let (others, one) = (normals(0.03, 0.0004), Deviation { beyond: 0.9, variance: 0.0001 });
        let (mut with, without) = (learned(&others), learned(&others).without(None));
        with.learn(one);
        let found = with.without(Some(one));
        for beyond in [0.01, 0.1, 0.5, 0.9] {
            let (a, b) = (p(&found, beyond, 0.0001), p(&without, beyond, 0.0001));
            assert!((a / b - 1.0).abs() < 1e-6, "{beyond}: {a} {b}");
        }
    }

    /// Where samples are exact, spreads at even steps of their logarithm are Student's t.
    #[test]
    fn spreads_make_students_t() {
        for (spreads, df) in SPREAD.iter().zip(FREEDOMS).filter(|(_, df)| df.is_finite()) {
            let parts = spreads
                .iter()
                .enumerate()
                .map(|(place, part)| Part { variance: libm::exp(at(FIRST_SPREAD, place)), ln_part: libm::log(*part) });
            let null = Null { parts: parts.collect() };
            for t in [0.5_f64, 1.0, 2.0, 5.0, 20.0] {
                let (found, true_p) = (p(&null, t, 1e-9), libm::exp(ln_f_tail(t * t, 1.0, df)));
                assert!((found / true_p - 1.0).abs() < 0.05, "df {df}, t {t}: {found} {true_p}");
            }
        }
    }

    #[test]
    fn an_interval_leaves_out_a_twentieth() {
        let samples = Null::of_scale(0.0).half_of_interval(0.04);
        assert!((samples - 0.2 * normal_quantile(0.975)).abs() < 1e-6, "{samples}");
        let null = learned(&normals(0.05, 0.0009)).without(None);
        let half = null.half_of_interval(0.0009);
        assert!((p(&null, half, 0.0009) - 0.05).abs() < 1e-6, "{half}");
        // With nothing learned tails are heavy: wider than a normal of the scale that is expected.
        let expected = EmpiricalNull::expected(&Expected::PROGRAM).without(None).half_of_interval(1e-9);
        assert!(expected > 0.04 * t_quantile(0.95, 3.0), "{expected}");
    }
}
