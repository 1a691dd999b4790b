//! What is measured, with which precision, and whether it is within its bound.

use fleetdiff_schemas::number::{float, length_float, whole};

use fleetdiff_statistics::intervals::wilson;

/// How the runs of a row make one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The share of trials that hit: P(any), power.
    Rate,
    /// The mean over runs.
    Mean,
    /// The median over runs; a run in which it never happened counts as infinite.
    Median,
    /// The smallest of all runs.
    Least,
    /// The largest of all runs.
    Most,
}

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// From this to that.
    Between(f64, f64),
}

/// One figure of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What it is, in words.
    pub name: &'static str,
    /// How it is made from runs.
    pub statistic: Statistic,
    /// Its bound; none if it is only reported.
    pub required: Option<Bound>,
}

impl Figure {
    pub(super) const fn rate(name: &'static str) -> Self {
        Self { name, statistic: Statistic::Rate, required: None }
    }

    pub(super) const fn mean(name: &'static str) -> Self {
        Self { name, statistic: Statistic::Mean, required: None }
    }

    pub(super) const fn median(name: &'static str) -> Self {
        Self { name, statistic: Statistic::Median, required: None }
    }

    pub(super) const fn most(name: &'static str) -> Self {
        Self { name, statistic: Statistic::Most, required: None }
    }

    pub(super) const fn at_most(self, bound: f64) -> Self {
        Self { required: Some(Bound::AtMost(bound)), ..self }
    }

    pub(super) const fn between(self, low: f64, high: f64) -> Self {
        Self { required: Some(Bound::Between(low, high)), ..self }
    }

    pub(super) const fn at_least(self, bound: f64) -> Self {
        Self { required: Some(Bound::AtLeast(bound)), ..self }
    }
}

/// What one run shows of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seen {
    /// A number of hits in a number of trials.
    Hits { hits: u32, of: u32 },
    /// A number.
    Number(f64),
}

impl Seen {
    /// One trial per run.
    pub(super) fn whether(hit: bool) -> Self {
        Self::Hits { hits: u32::from(hit), of: 1 }
    }

    /// A count.
    pub(super) fn count(number: usize) -> Self {
        Self::Number(length_float(number))
    }

    fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Hits { hits, of } => f64::from(hits) / f64::from(of.max(1)),
        }
    }
}

/// What one run shows of one figure: by fleetdiff's statistics, and by the plain test if it has such a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observed {
    pub(super) ours: Seen,
    pub(super) plain: Option<Seen>,
}

impl Observed {
    pub(super) fn only(ours: Seen) -> Self {
        Self { ours, plain: None }
    }

    pub(super) fn beside(ours: Seen, plain: Seen) -> Self {
        Self { ours, plain: Some(plain) }
    }
}

/// A measured figure and its precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure itself.
    pub value: f64,
    /// Its standard error: binomial for a rate, of the mean for a mean; none for the others.
    pub standard_error: Option<f64>,
    /// Its 95 % interval: Wilson's for a rate, +-1.96 standard errors for a mean, from order statistics for a median.
    pub interval: Option<(f64, f64)>,
    /// Trials of a rate; otherwise runs.
    pub trials: u64,
}

/// Standard errors by which a bound may be missed.
const ALLOWANCE: f64 = 3.0;
/// Standard normal quantile of a 95 % interval.
const Z95: f64 = 1.959_963_984_540_054;

impl Estimate {
    /// Combines runs.
    pub(super) fn of(statistic: Statistic, seen: &[Seen]) -> Self {
        let numbers = || -> Vec<f64> { seen.iter().copied().map(Seen::number).collect() };
        match statistic {
            Statistic::Rate => Self::rate(seen),
            Statistic::Mean => Self::mean(&numbers()),
            Statistic::Median => Self::median(numbers()),
            Statistic::Least => Self::extreme(&numbers(), f64::min),
            Statistic::Most => Self::extreme(&numbers(), f64::max),
        }
    }

    fn rate(seen: &[Seen]) -> Self {
        let (mut hits, mut trials) = (0u64, 0u64);
        for seen in seen {
            if let Seen::Hits { hits: of_run, of } = *seen {
                hits += u64::from(of_run);
                trials += u64::from(of);
            }
        }
        let value = part(hits, trials);
        let interval = wilson(hits, trials, 0.95);
        Self {
            value,
            standard_error: Some(binomial_error(value, trials)),
            interval: Some((interval.low, interval.high)),
            trials,
        }
    }

    fn mean(numbers: &[f64]) -> Self {
        let runs = length_float(numbers.len());
        let value = numbers.iter().sum::<f64>() / runs;
        let squares: f64 = numbers.iter().map(|number| (number - value) * (number - value)).sum();
        let error = if numbers.len() > 1 { libm::sqrt(squares / (runs - 1.0) / runs) } else { f64::NAN };
        let interval = (value - Z95 * error, value + Z95 * error);
        Self { value, standard_error: Some(error), interval: Some(interval), trials: length(numbers) }
    }

    fn median(mut numbers: Vec<f64>) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let runs = numbers.len();
        if runs == 0 {
            return Self { value: f64::NAN, standard_error: None, interval: None, trials: 0 };
        }
        let (low, high) = (numbers[(runs - 1) / 2], numbers[runs / 2]);
        let value = if high.is_finite() { 0.5 * (low + high) } else { high };
        let reach = 0.5 * Z95 * libm::sqrt(length_float(runs));
        let rank = |of: f64| numbers[usize::try_from(whole(of.clamp(0.0, length_float(runs - 1)))).unwrap_or(0)];
        let middle = 0.5 * length_float(runs);
        let interval = (rank(libm::floor(middle - reach)), rank(libm::ceil(middle + reach)));
        Self { value, standard_error: None, interval: Some(interval), trials: length(&numbers) }
    }

    fn extreme(numbers: &[f64], pick: fn(f64, f64) -> f64) -> Self {
        let value = numbers.iter().copied().reduce(pick).unwrap_or(f64::NAN);
        Self { value, standard_error: None, interval: None, trials: length(numbers) }
    }

    /// Whether the figure keeps to a bound.
    ///
    /// A rate may miss x by three standard errors of x at this number of trials, a mean by three of its own; a median,
    /// a smallest and a largest value may not. NaN keeps to no bound.
    #[must_use]
    pub(crate) fn keeps_to(&self, bound: Bound, statistic: Statistic) -> bool {
        let room = |x: f64| match statistic {
            Statistic::Rate => ALLOWANCE * binomial_error(x, self.trials),
            Statistic::Mean => ALLOWANCE * self.standard_error.filter(|error| !error.is_nan()).unwrap_or(0.0),
            Statistic::Median | Statistic::Least | Statistic::Most => 0.0,
        };
        // A figure exactly at the bound is within it, whatever the last bit.
        let rounding = 1e-9;
        match bound {
            Bound::AtMost(x) => self.value <= x + room(x) + rounding,
            Bound::AtLeast(x) => self.value >= x - room(x) - rounding,
            Bound::Between(low, high) => {
                self.keeps_to(Bound::AtLeast(low), statistic) && self.keeps_to(Bound::AtMost(high), statistic)
            }
        }
    }
}

/// sqrt(p (1-p) / n).
fn binomial_error(p: f64, trials: u64) -> f64 {
    libm::sqrt(p * (1.0 - p) / float(trials))
}

fn part(hits: u64, trials: u64) -> f64 {
    float(hits) / float(trials)
}

fn length(numbers: &[f64]) -> u64 {
    u64::try_from(numbers.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(hits: u32, of: u32) -> Vec<Seen> {
        (0..of).map(|run| Seen::whether(run < hits)).collect()
    }

    fn keeps(statistic: Statistic, seen: &[Seen], bound: Bound) -> bool {
        Estimate::of(statistic, seen).keeps_to(bound, statistic)
    }

    #[test]
    fn a_rate_may_miss_its_bound_by_three_standard_errors_of_the_bound() {
        // .05 + 3 sqrt(.05 x .95 / 200) = .0962: 19 of 200 are within, 20 are not.
        assert!(keeps(Statistic::Rate, &runs(19, 200), Bound::AtMost(0.05)));
        assert!(!keeps(Statistic::Rate, &runs(20, 200), Bound::AtMost(0.05)));
        // .95 - 3 sqrt(.95 x .05 / 200) = .9038: 181 of 200 are within, 180 are not.
        assert!(keeps(Statistic::Rate, &runs(181, 200), Bound::AtLeast(0.95)));
        assert!(!keeps(Statistic::Rate, &runs(180, 200), Bound::AtLeast(0.95)));
        assert!(!keeps(Statistic::Rate, &runs(199, 200), Bound::AtLeast(1.0)));
        assert!(keeps(Statistic::Rate, &runs(0, 200), Bound::AtMost(0.0)));
        assert!(!keeps(Statistic::Rate, &[], Bound::AtMost(0.05)), "no run shows nothing");
    }

    #[test]
    fn a_mean_may_miss_it_by_three_of_its_own() {
        // Mean .5, standard deviation .5129 of 20 runs: standard error .1147.
        let seen: Vec<Seen> = (0..20).map(|run| Seen::Number(f64::from(run % 2))).collect();
        assert!(keeps(Statistic::Mean, &seen, Bound::AtMost(0.16)));
        assert!(!keeps(Statistic::Mean, &seen, Bound::AtMost(0.15)));
        assert!(!keeps(Statistic::Mean, &[Seen::Number(0.3)], Bound::AtMost(0.2)), "one run has no standard error");
    }

    #[test]
    fn a_median_counts_never_as_infinite() {
        let of = |numbers: &[f64]| {
            Estimate::of(Statistic::Median, &numbers.iter().map(|&n| Seen::Number(n)).collect::<Vec<_>>())
        };
        assert!((of(&[30.0, f64::INFINITY, 50.0]).value - 50.0).abs() < 1e-12);
        assert!(of(&[30.0, 50.0, f64::INFINITY, f64::INFINITY]).value.is_infinite());
        assert!(of(&[80.0, 90.0, 100.0]).keeps_to(Bound::AtMost(90.0), Statistic::Median));
        assert!(!of(&[90.0, 100.0, 100.0]).keeps_to(Bound::AtMost(90.0), Statistic::Median));
    }

    #[test]
    fn extremes_are_those_of_all_runs() {
        let seen = [3.0, 1.0, 2.0].map(Seen::Number);
        assert_eq!(
            (Estimate::of(Statistic::Least, &seen).value, Estimate::of(Statistic::Most, &seen).value),
            (1.0, 3.0)
        );
    }
}
