//! Elasticities of cost to load: a port of `reference_scaling.py`.

use fleetdiff_schemas::number::length_float;

use super::tails::{bisect, ln_f1_tail, t_quantile};

/// An elasticity of at most this is none.
const BAND: f64 = 0.05;
const BLOCKS: u64 = 15;
/// Functions with so many samples show how long drift lasts.
const TELLING: f64 = 200.0;

/// What all functions have in common. Minutes are places; a replicate has requests and samples in some.
#[derive(Clone, Debug)]
pub struct Course {
    /// Number of each minute.
    pub numbers: Vec<u64>,
    /// ln load less its median.
    pub load: Vec<f64>,
    /// By minute and replicate.
    pub requests: Vec<Vec<f64>>,
    /// The greatest rise and fall of the course.
    pub rise: f64,
    /// See `rise`.
    pub fall: f64,
}

/// An elasticity, or the difference of two.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    /// The estimate.
    pub beta: f64,
    /// Its standard error.
    pub error: f64,
    /// Its degrees of freedom.
    pub df: f64,
}

/// One function's fit.
struct Fit {
    beta: f64,
    samples: f64,
    information: f64,
    between: f64,
    over_time: f64,
    relative: Vec<f64>,
}

impl Course {
    /// From minutes, ascending: number, requests by replicate, pods that serve.
    pub fn of(minutes: Vec<(u64, Vec<f64>, f64)>) -> Self {
        let mut load: Vec<f64> =
            minutes.iter().map(|(_, requests, serving)| (requests.iter().sum::<f64>() / serving).ln()).collect();
        let mut sorted = load.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        let middle = if sorted.len() % 2 == 1 { sorted[half] } else { 0.5 * (sorted[half - 1] + sorted[half]) };
        load.iter_mut().for_each(|one| *one -= middle);
        let numbers: Vec<u64> = minutes.iter().map(|(number, _, _)| *number).collect();
        let first = numbers[0];
        let each = (numbers[numbers.len() - 1] - first + 1).div_ceil(BLOCKS);
        let mut means: Vec<f64> = Vec::new();
        for block in 0..BLOCKS {
            let here = || numbers.iter().zip(&load).filter(|(number, _)| (*number - first) / each == block);
            if here().next().is_some() {
                means.push(here().map(|(_, load)| load).sum::<f64>() / length_float(here().count()));
            }
        }
        let (mut rise, mut fall) = (0.0_f64, 0.0_f64);
        for (later, mean) in means.iter().enumerate() {
            for earlier in &means[..later] {
                rise = rise.max(mean - earlier);
                fall = fall.max(earlier - mean);
            }
        }
        Self { numbers, load, requests: minutes.into_iter().map(|(_, requests, _)| requests).collect(), rise, fall }
    }

    /// Replicates that served at all.
    pub fn replicates(&self) -> usize {
        let all = self.requests.first().map_or(0, Vec::len);
        (0..all).filter(|&replicate| self.requests.iter().any(|minute| minute[replicate] > 0.0)).count()
    }

    /// Persistence, degrees of freedom and slopes of functions, by function, minute and replicate; the first `telling` show persistence.
    pub fn elasticities(&self, functions: &[Vec<Vec<f64>>], telling: usize) -> (f64, f64, Vec<Option<Slope>>) {
        let fits: Vec<Option<Fit>> = functions.iter().map(|samples| self.fit(samples)).collect();
        let n = length_float(self.numbers.len());
        let rho = self.persistence(&fits[..telling]);
        let lasting = (1.0 + rho) / (1.0 - rho);
        let left = n - 2.0 * lasting;
        let df = (left * (1.0 - rho * rho) / (1.0 + rho * rho)).min(length_float(self.replicates()) - 1.0);
        let slope = |fit: &Option<Fit>| {
            let fit = fit.as_ref()?;
            let drift = (fit.over_time * n / left - fit.information).max(0.0) * lasting;
            let error = (fit.between.max(fit.information) + drift).sqrt() / fit.information;
            (df >= 2.0 && left > 0.0 && error.is_finite() && error > 0.0).then_some(Slope { beta: fit.beta, error, df })
        };
        (rho, df, fits.iter().map(slope).collect())
    }

    fn persistence(&self, fits: &[Option<Fit>]) -> f64 {
        let telling: Vec<&Fit> = fits.iter().flatten().filter(|fit| fit.samples >= TELLING).collect();
        let n = length_float(self.numbers.len());
        let (mut excess, mut after) = (0.0, 0.0);
        for fit in &telling {
            excess += fit.relative.iter().map(|one| one * one).sum::<f64>() / (n - 2.0) - 1.0;
            let (mut sum, mut pairs) = (0.0, 0.0);
            for later in 1..self.numbers.len() {
                if self.numbers[later] == self.numbers[later - 1] + 1 {
                    sum += fit.relative[later] * fit.relative[later - 1];
                    pairs += 1.0;
                }
            }
            after += sum / f64::max(pairs, 1.0);
        }
        let functions = length_float(telling.len());
        let (excess, after) = (excess / functions, after / functions);
        if telling.is_empty() || excess <= 2.0 * (2.0 / (n * functions)).sqrt() {
            return 0.0;
        }
        ((after / excess + 2.0 / n) / (1.0 - 4.0 / n)).clamp(0.0, 0.95)
    }

    fn fit(&self, samples: &[Vec<f64>]) -> Option<Fit> {
        let replicates = self.requests.first()?.len();
        let seen = |minute: usize, replicate: usize| {
            if self.requests[minute][replicate] > 0.0 { samples[minute][replicate] } else { 0.0 }
        };
        let minutes = || 0..self.numbers.len();
        let sums: Vec<f64> = (0..replicates).map(|k| minutes().map(|w| seen(w, k)).sum()).collect();
        let grown = |beta: f64| -> Vec<f64> { self.load.iter().map(|load| (beta * load).exp()).collect() };
        // By minute and replicate: what is expected, and the load less its mean where that is expected.
        let expected = |beta: f64| {
            let grown = grown(beta);
            let mut table = vec![vec![(0.0, 0.0); replicates]; self.numbers.len()];
            for k in (0..replicates).filter(|&k| sums[k] > 0.0) {
                let weight = |w: usize| self.requests[w][k] * grown[w];
                let whole: f64 = minutes().map(weight).sum();
                let centre = minutes().map(|w| weight(w) * self.load[w]).sum::<f64>() / whole;
                for w in minutes().filter(|&w| self.requests[w][k] > 0.0) {
                    table[w][k] = (sums[k] * weight(w) / whole, self.load[w] - centre);
                }
            }
            table
        };
        let information =
            |table: &[Vec<(f64, f64)>]| table.iter().flatten().map(|(mean, off)| mean * off * off).sum::<f64>();
        if information(&expected(0.0)) <= 1e-12 * sums.iter().sum::<f64>() {
            return None;
        }
        // What was seen, less what is expected, by load: falls with beta.
        let met: f64 =
            (0..replicates).flat_map(|k| minutes().map(move |w| (w, k))).map(|(w, k)| seen(w, k) * self.load[w]).sum();
        let score = |beta: f64| -> f64 {
            let grown = grown(beta);
            let centre = |k: usize| {
                let weighted =
                    |of: &dyn Fn(usize) -> f64| minutes().map(|w| self.requests[w][k] * grown[w] * of(w)).sum::<f64>();
                weighted(&|w| self.load[w]) / weighted(&|_| 1.0)
            };
            met - (0..replicates).filter(|&k| sums[k] > 0.0).map(|k| sums[k] * centre(k)).sum::<f64>()
        };
        let (low, high) = (-19.0, 19.0);
        if sums.iter().all(|&sum| sum == 0.0) || score(low) <= 0.0 || score(high) >= 0.0 {
            return None;
        }
        let beta = bisect(low, high, |beta| score(beta) > 0.0);
        let table = expected(beta);
        let of = |w: usize, k: usize| (seen(w, k) - table[w][k].0) * table[w][k].1;
        let information = information(&table);
        let pods = length_float(self.replicates());
        let between: f64 = (0..replicates).map(|k| minutes().map(|w| of(w, k)).sum::<f64>().powi(2)).sum();
        let over_time = minutes().map(|w| (0..replicates).map(|k| of(w, k)).sum::<f64>().powi(2)).sum();
        let relative = |w: usize| {
            let mean: f64 = table[w].iter().map(|(mean, _)| mean).sum();
            let all: f64 = (0..replicates).filter(|&k| sums[k] > 0.0).map(|k| seen(w, k)).sum();
            if mean > 0.0 { (all - mean) / mean.sqrt() } else { 0.0 }
        };
        (information > 0.0).then(|| Fit {
            beta,
            samples: sums.iter().sum(),
            information,
            between: between * pods / (pods - 1.0),
            over_time,
            relative: minutes().map(relative).collect(),
        })
    }
}

impl Slope {
    /// This less another.
    pub fn less(self, other: Self) -> Self {
        let (a, b) = (self.error.powi(2), other.error.powi(2));
        let df = (a + b).powi(2) / (a * a / self.df + b * b / other.df);
        Self { beta: self.beta - other.beta, error: (a + b).sqrt(), df }
    }

    /// ln p of at most the band.
    pub fn ln_p(self) -> f64 {
        let half = |off: f64| ln_f1_tail((off / self.error).powi(2), self.df) - std::f64::consts::LN_2;
        let size = self.beta.abs();
        let (near, far) = (half(size - BAND), half(size + BAND));
        if size > BAND {
            return (near + (far - near).exp().ln_1p()).min(0.0);
        }
        (far.exp() - near.exp()).ln_1p().min(0.0)
    }

    /// Estimate and the ends of the 95 % interval.
    pub fn interval(self) -> [f64; 3] {
        let reach = t_quantile(0.95, self.df) * self.error;
        [self.beta, self.beta - reach, self.beta + reach]
    }
}
