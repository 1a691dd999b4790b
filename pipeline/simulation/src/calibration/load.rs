//! Load that doubles and falls back: is the elasticity of functions found whose requests cost more at peak, and of no others?
//!
//! Each fleet has one function of fixed cost, whose samples do not depend on requests (elasticity -1): at twice the load it has half of
//! its share, and every other function more. The plain test is G of shares at low against high load.

use std::collections::BTreeSet;

use fleetdiff_schemas::number::{length_float, whole};
use fleetdiff_statistics::MIN_COUNT;
use fleetdiff_statistics::scaling::{BAND, Load, LoadInterval, Slope, Withheld};

use super::chance::{Multipliers, Normal, poisson};
use super::figure::{Figure, Observed, Seen};
use super::model::{FUNCTIONS, ONE_PERCENT, SIZE_SD, shares};
use super::plain;
use super::row::{Chance, Row};
use crate::fleet::random::Generator;

/// Intervals of a minute.
const MINUTES: usize = 30;
/// Samples that an average pod gives in one at the lowest load: one core at 100 a second.
const SAMPLES: f64 = 6_000.0;
/// The heaviest function, of 18 %, has a fixed cost.
const FIXED: usize = 0;
/// The elasticity that is to be found, of a function of 1 %.
const ELASTICITY: f64 = 0.3;
/// CV of requests between pods and minutes beside the load.
const UNEVEN: f64 = 0.05;

/// The least that functions drift.
const LITTLE: f64 = 0.02;

/// The course of load.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    /// Doubles and falls back.
    Hump,
    /// Doubles.
    Ramp,
    /// Is twice as high from one minute on.
    Step,
}

/// A build in a cell.
#[derive(Clone, Copy)]
struct Build {
    pods: usize,
    cv: f64,
    course: Course,
    /// Half of the pods serve at high load only.
    autoscaled: bool,
    /// What a function costs moves over time for all pods at once, with this CV and a correlation time of two minutes.
    drift: f64,
    /// Only each fifth function drifts so much.
    of_some: bool,
    /// Of a function of 1 %.
    elasticity: f64,
}

const TWENTY: Build = Build {
    pods: 20,
    cv: 0.1,
    course: Course::Hump,
    autoscaled: false,
    drift: LITTLE,
    of_some: false,
    elasticity: 0.0,
};

pub(super) fn rows() -> Vec<Row> {
    let found = Build { elasticity: ELASTICITY, ..TWENTY };
    vec![
        one(
            "load",
            "20 pods, CV 10 %, 30 min in which load doubles and falls back; the heaviest of 300 functions has a fixed cost; drift of 2 %; the plain test compares shares at low and high load",
            TWENTY,
        ),
        one(
            "load-autoscaled",
            "as `load`, with CV 30 %, and half of the pods serve at high load only",
            Build { cv: 0.3, autoscaled: true, ..TWENTY },
        ),
        one("load-5", "as `load`, with 5 pods", Build { pods: 5, ..TWENTY }),
        one("load-drift", "as `load`, with a drift of 15 %", Build { drift: 0.15, ..TWENTY }),
        one(
            "load-drift-of-some",
            "as `load`, with a drift of 10 % in each fifth function",
            Build { drift: 0.1, of_some: true, ..TWENTY },
        ),
        one("load-found", "as `load`; a function of 1 % has elasticity .3", found),
        between(
            "load-builds",
            "`load` twice, as head and base: is the elasticity of any function another one?",
            TWENTY,
        ),
        between("load-builds-found", "as `load-builds`; a function of 1 % has elasticity .3 in the head", found),
        confounded("load-ramp", "as `load`, but load only doubles", Course::Ramp),
        confounded("load-step", "as `load`, but load doubles at once and stays", Course::Step),
    ]
}

fn one(name: &'static str, simulates: &'static str, build: Build) -> Row {
    let coverage = Figure::mean("coverage of 95 % intervals");
    // With few pods intervals are too wide: their degrees of freedom are those of pods even where time is what varies.
    let coverage = if build.pods < 10 { coverage.at_least(0.93) } else { coverage.between(0.93, 0.985) };
    let mut figures = vec![Figure::rate("P(any innocent function)").at_most(0.05), coverage];
    let is_to_be_found = build.elasticity > 0.0;
    if is_to_be_found {
        figures.push(Figure::rate("power").at_least(0.8));
    }
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let recorded = Recorded::of(build, &shares(FUNCTIONS), &mut chance.rng);
        let slopes = recorded.slopes();
        let significant = significant(&slopes);
        let plain = recorded.significant_shares();
        let innocent = |found: &[bool]| (0..FUNCTIONS).any(|f| found[f] && build.truth(f) == 0.0);
        let covers = |(f, slope): (usize, &Option<Slope>)| {
            let (low, high) = slope.as_ref()?.interval(0.95);
            Some(low <= build.truth(f) && build.truth(f) <= high)
        };
        let covered: Vec<bool> = slopes.iter().enumerate().filter_map(covers).collect();
        let coverage = length_float(covered.iter().filter(|&&holds| holds).count()) / length_float(covered.len());
        let any = Observed::beside(Seen::whether(innocent(&significant)), Seen::whether(innocent(&plain)));
        let mut observed = vec![any, Observed::only(Seen::Number(coverage))];
        observed.extend(is_to_be_found.then(|| Observed::only(Seen::whether(significant[ONE_PERCENT]))));
        observed
    })
}

fn between(name: &'static str, simulates: &'static str, head: Build) -> Row {
    let mut figures = vec![Figure::rate("P(any innocent function)").at_most(0.05)];
    let is_to_be_found = head.elasticity > 0.0;
    if is_to_be_found {
        figures.push(Figure::rate("power"));
    }
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let shares = shares(FUNCTIONS);
        let [head_slopes, base_slopes] =
            [head, TWENTY].map(|build| Recorded::of(build, &shares, &mut chance.rng).slopes());
        let less = |(head, base): (&Option<Slope>, &Option<Slope>)| Some((*head)?.less((*base)?));
        let significant = significant(&head_slopes.iter().zip(&base_slopes).map(less).collect::<Vec<_>>());
        let innocent = (0..FUNCTIONS).any(|f| significant[f] && !(is_to_be_found && f == ONE_PERCENT));
        let mut observed = vec![Observed::only(Seen::whether(innocent))];
        observed.extend(is_to_be_found.then(|| Observed::only(Seen::whether(significant[ONE_PERCENT]))));
        observed
    })
}

fn confounded(name: &'static str, simulates: &'static str, course: Course) -> Row {
    let figures = vec![Figure::rate("P(withheld)").at_least(0.99)];
    Row::new(name, simulates, figures, move |chance: &mut Chance| {
        let recorded = Recorded::of(Build { course, ..TWENTY }, &shares(FUNCTIONS), &mut chance.rng);
        vec![Observed::only(Seen::whether(recorded.load().withheld() == Some(Withheld::LoadIsTime)))]
    })
}

impl Build {
    fn truth(&self, function: usize) -> f64 {
        match function {
            FIXED => -1.0,
            ONE_PERCENT => self.elasticity,
            _ => 0.0,
        }
    }

    fn drift_of(&self, function: usize) -> f64 {
        if self.of_some && !function.is_multiple_of(5) { LITTLE } else { self.drift }
    }

    /// ln of the load of a minute, over the lowest.
    fn load(&self, minute: usize) -> f64 {
        let part = length_float(minute) / length_float(MINUTES - 1);
        let doublings = match self.course {
            Course::Hump => libm::sin(std::f64::consts::PI * part),
            Course::Ramp => part,
            Course::Step => f64::from(u8::from(minute >= MINUTES / 2)),
        };
        doublings * std::f64::consts::LN_2
    }

    fn serves(&self, pod: usize, minute: usize) -> bool {
        !self.autoscaled || pod.is_multiple_of(2) || self.load(minute) > 0.5 * std::f64::consts::LN_2
    }
}

/// What was recorded of a build.
struct Recorded {
    /// By minute and pod.
    requests: Vec<Vec<f64>>,
    /// By function, minute and pod.
    samples: Vec<Vec<Vec<f64>>>,
}

impl Recorded {
    fn of(build: Build, shares: &[f64], rng: &mut Generator) -> Self {
        let (sizes, uneven, own) =
            (Multipliers::with_sd(SIZE_SD), Multipliers::with_cv(UNEVEN), Multipliers::with_cv(build.cv));
        let sizes: Vec<f64> = (0..build.pods).map(|_| sizes.next(rng)).collect();
        let served = |minute: usize, pod: usize, rng: &mut Generator| {
            let requests = sizes[pod] * libm::exp(build.load(minute)) * uneven.next(rng);
            if build.serves(pod, minute) { requests } else { 0.0 }
        };
        let requests: Vec<Vec<f64>> =
            (0..MINUTES).map(|minute| (0..build.pods).map(|pod| served(minute, pod, rng)).collect()).collect();
        let of_function = |(function, share): (usize, &f64)| {
            let levels: Vec<f64> = (0..build.pods).map(|_| own.next(rng) * share * SAMPLES).collect();
            let drift = drift(build.drift_of(function), rng);
            let each = |minute: usize, pod: usize, rng: &mut Generator| {
                let scaled = libm::exp(build.truth(function) * build.load(minute));
                f64::from(poisson(levels[pod] * requests[minute][pod] * scaled * drift[minute], rng))
            };
            (0..MINUTES).map(|minute| (0..build.pods).map(|pod| each(minute, pod, rng)).collect()).collect()
        };
        let samples = shares.iter().enumerate().map(of_function).collect();
        Self { requests, samples }
    }

    fn load(&self) -> Load {
        let interval = |(number, requests): (u64, &Vec<f64>)| LoadInterval::of_pods(number, requests.clone());
        Load::of((0..).zip(&self.requests).map(interval))
    }

    /// Of the functions with enough samples.
    fn slopes(&self) -> Vec<Option<Slope>> {
        let is_enough = |function: &usize| self.samples[*function].iter().flatten().sum::<f64>() >= MIN_COUNT;
        let enough: Vec<usize> = (0..FUNCTIONS).filter(is_enough).collect();
        let at = |function: usize, minute: usize, pod: usize| self.samples[enough[function]][minute][pod];
        let found = self.load().elasticities(enough.len(), enough.len(), at).slopes;
        let mut slopes = vec![None; FUNCTIONS];
        enough.iter().zip(found).for_each(|(&function, slope)| slopes[function] = slope);
        slopes
    }

    /// Whose shares differ between the thirds of lowest and highest load.
    fn significant_shares(&self) -> Vec<bool> {
        let (low, high) = self.load().thirds();
        let counts = |minutes: &[usize]| -> Vec<u64> {
            let minutes: BTreeSet<usize> = minutes.iter().copied().collect();
            let sum = |samples: &Vec<Vec<f64>>| minutes.iter().flat_map(|&minute| &samples[minute]).sum::<f64>();
            self.samples.iter().map(|samples| whole(sum(samples))).collect()
        };
        let (low, high) = (counts(&low), counts(&high));
        plain::significant(&plain::ln_p(&high, high.iter().sum(), &low, low.iter().sum()))
    }
}

/// What a function costs over time, of all pods.
fn drift(cv: f64, rng: &mut Generator) -> Vec<f64> {
    let (normal, kept) = (Normal::new(), libm::exp(-0.5));
    let mut at = cv * normal.next(rng);
    let step = |_| {
        let now = libm::exp(at);
        at = kept * at + cv * libm::sqrt(1.0 - kept * kept) * normal.next(rng);
        now
    };
    (0..MINUTES).map(step).collect()
}

/// Which elasticities are beyond the band, in one family.
fn significant(slopes: &[Option<Slope>]) -> Vec<bool> {
    plain::significant(&slopes.iter().map(|slope| slope.map_or(f64::NAN, |slope| slope.ln_p(BAND))).collect::<Vec<_>>())
}
