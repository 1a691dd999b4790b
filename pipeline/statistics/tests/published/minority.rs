//! Fleets of pods in which nothing changed, and twins in which a few pods did: how often is the test for a minority wrong, how
//! often does it find them?
//!
//! Each pod has a log-normal multiplier of its own for each of 500 Zipf-like functions, 180,000 samples give or take 30 %, and
//! Poisson counts. A limit is the promised rate and three binomial standard errors of the runs made.

use fleetdiff_statistics::BucketCounts;
use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::outliers::{Outliers, PodRow, Settings, outliers};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

const FUNCTIONS: usize = 500;
/// Zipf rank 15 of 500 has 1 % of the samples.
const CHANGED: usize = 14;
const Q: f64 = 0.05;

/// Random numbers by seed.
pub struct Noise(Xoshiro256PlusPlus);

impl Noise {
    pub fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// In (0, 1).
    #[expect(clippy::as_conversions, reason = "53 bits fit a float")]
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    }

    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    /// Student's t with 5 degrees of freedom, of variance 1.
    fn heavy(&mut self) -> f64 {
        let square: f64 = (0..5).map(|_| self.normal().powi(2)).sum();
        self.normal() / (square / 5.0).sqrt() * (3.0_f64 / 5.0).sqrt()
    }

    /// Products of uniform numbers below a mean of 10, transformed rejection (Hörmann 1993) above.
    fn poisson(&mut self, mean: f64) -> f64 {
        if mean < 10.0 {
            let (limit, mut product, mut count) = (libm::exp(-mean), self.uniform(), 0.0);
            while product > limit {
                product *= self.uniform();
                count += 1.0;
            }
            return count;
        }
        let b = 0.931 + 2.53 * mean.sqrt();
        let a = -0.059 + 0.024_83 * b;
        loop {
            let (u, v) = (self.uniform() - 0.5, self.uniform());
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
            if k < 0.0 || us < 0.013 && v > us {
                continue;
            }
            let accept = libm::log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b));
            if accept <= k * libm::log(mean) - mean - libm::lgamma(k + 1.0) {
                return k;
            }
        }
    }
}

/// A fleet to draw.
#[derive(Clone, Copy)]
struct Fleet {
    head: usize,
    base: usize,
    cv: f64,
    samples: f64,
    /// Head pods whose changed function costs this much more.
    outlying: usize,
    ratio: f64,
    /// Multipliers have the tails of t with 5 degrees of freedom.
    heavy: bool,
    /// Kinds of hardware, each with costs of its own; pods take turns.
    hardware: usize,
}

const PLAIN: Fleet =
    Fleet { head: 40, base: 760, cv: 0.05, samples: 180_000.0, outlying: 0, ratio: 1.6, heavy: false, hardware: 1 };

impl Fleet {
    /// The pods of an arm: stratum and counts.
    fn pods(&self, pods: usize, outlying: usize, costs: &[Vec<f64>], noise: &mut Noise) -> Vec<(usize, Vec<f64>)> {
        let sigma = libm::log1p(self.cv * self.cv).sqrt();
        let pod = |number: usize| {
            let stratum = number % self.hardware;
            let size = self.samples * libm::exp(0.3 * noise.normal());
            let deviation = |noise: &mut Noise| if self.heavy { noise.heavy() } else { noise.normal() };
            let mut rates: Vec<f64> =
                costs[stratum].iter().map(|cost| cost * libm::exp(sigma * deviation(noise))).collect();
            if number < outlying {
                rates[CHANGED] *= self.ratio;
            }
            let normalization = size / rates.iter().sum::<f64>();
            (stratum, rates.iter().map(|rate| noise.poisson(rate * normalization)).collect())
        };
        (0..pods).map(pod).collect()
    }

    fn run(&self, seed: u64) -> Outliers {
        let mut noise = Noise::seeded(seed);
        let zipf: Vec<f64> = (1..=u32::try_from(FUNCTIONS).expect("few")).map(|rank| 1.0 / f64::from(rank)).collect();
        let spread = if self.hardware > 1 { 0.2 } else { 0.0 };
        let costs: Vec<Vec<f64>> = (0..self.hardware)
            .map(|_| zipf.iter().map(|cost| cost * libm::exp(spread * noise.normal())).collect())
            .collect();
        let head = self.pods(self.head, self.outlying, &costs, &mut noise);
        let base = self.pods(self.base, 0, &costs, &mut noise);
        let settings = Settings { ..Settings::default() };
        outliers(FUNCTIONS, &rows(&head), &rows(&base), &settings)
    }

    /// Runs every seed and says what came of it.
    fn runs(&self, what: &str, seeds: u64) -> Rates {
        let half = |odd: u64| -> Vec<Outcome> {
            (1..=seeds).filter(|seed| seed % 2 == odd).map(|seed| self.outcome(seed)).collect()
        };
        let mut outcomes = std::thread::scope(|scope| {
            let other = scope.spawn(|| half(0));
            let mut all = half(1);
            all.extend(other.join().expect("the other half runs through"));
            all
        });
        let rate = |of: fn(&Outcome) -> f64| {
            outcomes.iter().map(of).sum::<f64>() / f64::from(u32::try_from(seeds).expect("few"))
        };
        let rates = Rates {
            any: rate(|o| o.any),
            found: rate(|o| o.found),
            named: rate(|o| o.named),
            false_part: rate(|o| o.false_part),
            wrong_pods: rate(|o| o.wrong_pods),
        };
        outcomes.retain(|outcome| outcome.tests < 100);
        assert!(outcomes.is_empty(), "too few functions were tested");
        eprintln!("{what}, seeds 1..={seeds}: {rates:?}");
        rates
    }

    fn outcome(&self, seed: u64) -> Outcome {
        let found = self.run(seed);
        let significant: Vec<usize> =
            bh(&found.ln_p).iter().enumerate().filter(|&(_, &q)| selected(q, Q)).map(|(f, _)| f).collect();
        let hit = self.outlying > 0 && significant.contains(&CHANGED);
        let named = found.minority(CHANGED, Q).filter(|_| hit).unwrap_or_default();
        let right = named
            .iter()
            .filter(|pod| usize::try_from(pod.pod).is_ok_and(|pod| pod < self.outlying) && pod.t > 0.0)
            .count();
        let wrong = significant.len() - usize::from(hit);
        let yes = |yes: bool| f64::from(u8::from(yes));
        Outcome {
            tests: found.tests,
            any: yes(wrong > 0),
            found: yes(hit),
            named: yes(hit && 4 * right >= 3 * self.outlying),
            false_part: float(wrong) / float(significant.len().max(1)),
            wrong_pods: float(named.len() - right) / float(named.len().max(1)),
        }
    }
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("small"))
}

fn held(counts: &Vec<f64>) -> &dyn BucketCounts {
    counts
}

fn rows(pods: &[(usize, Vec<f64>)]) -> Vec<PodRow<'_>> {
    let samples = |counts: &[f64]| format!("{}", counts.iter().sum::<f64>()).parse().expect("whole counts");
    let row = |(pod, (stratum, counts)): (u32, &'_ (usize, Vec<f64>))| (pod, *stratum, samples(counts));
    (0..)
        .zip(pods)
        .map(|numbered| (row(numbered), &numbered.1.1))
        .map(|((pod, stratum, samples), counts)| PodRow { stratum, pod, samples, counts: vec![held(counts)] })
        .collect()
}

/// One run.
struct Outcome {
    tests: usize,
    /// A function in which nothing changed was called.
    any: f64,
    /// The changed function was called.
    found: f64,
    /// And three quarters of its outlying pods named, as a minority.
    named: f64,
    /// Of the functions called, the part in which nothing changed.
    false_part: f64,
    /// Of the pods named, the part in which nothing changed.
    wrong_pods: f64,
}

/// Means over runs.
#[derive(Clone, Copy, Debug)]
struct Rates {
    any: f64,
    found: f64,
    named: f64,
    false_part: f64,
    wrong_pods: f64,
}

/// A rate that is promised to be at most `rate`, with three standard errors of `runs`.
fn limit(rate: f64, runs: f64) -> f64 {
    rate + 3.0 * (rate * (1.0 - rate) / runs).sqrt()
}

#[test]
fn null_minority_of_many_pods() {
    for cv in [0.05, 0.10] {
        let rates = Fleet { cv, ..PLAIN }.runs(&format!("40 v 760 pods, CV {cv}, nothing changed"), 40);
        assert!(rates.any <= limit(0.05, 40.0), "{rates:?}");
    }
}

#[test]
fn twin_minority_of_many_pods() {
    for cv in [0.05, 0.10] {
        let rates = Fleet { cv, outlying: 4, ..PLAIN }.runs(&format!("40 v 760 pods, CV {cv}, 4 pods x 1.6"), 40);
        assert!(rates.found >= 0.9 && rates.named >= 0.9, "{rates:?}");
        assert!(rates.false_part <= limit(0.06, 40.0) && rates.wrong_pods <= limit(0.05, 40.0), "{rates:?}");
    }
}

/// Few head pods; few base pods; base pods fewer than head pods; few samples; pods on unlike hardware; pods that are heavy-tailed by
/// nature. Without its remedies the test would be wrong in .97 of runs at 90 v 10 pods, and in .93 with heavy tails.
#[test]
fn null_minority_elsewhere() {
    let few = Fleet { head: 5, base: 84, ..PLAIN };
    let fleets = [
        ("5 v 84 pods, CV .05", few),
        ("5 v 84 pods, CV .1", Fleet { cv: 0.1, ..few }),
        ("5 v 84 pods, CV .5", Fleet { cv: 0.5, ..few }),
        ("5 v 5 pods, CV .1", Fleet { base: 5, cv: 0.1, ..few }),
        ("90 v 10 pods, CV .1", Fleet { head: 90, base: 10, cv: 0.1, ..few }),
        ("20 v 60 pods, 6,000 samples a pod", Fleet { head: 20, base: 60, samples: 6000.0, ..few }),
        ("20 v 60 pods on 3 kinds of hardware, CV .1", Fleet { head: 20, base: 60, cv: 0.1, hardware: 3, ..few }),
    ];
    for (what, fleet) in fleets {
        let rates = fleet.runs(what, 40);
        assert!(rates.any <= limit(0.05, 40.0), "{what}: {rates:?}");
    }
    // not promised: 200 seeds have .13
    let heavy =
        Fleet { head: 40, base: 100, cv: 0.3, heavy: true, ..few }.runs("40 v 100 pods, CV .3, heavy tails", 40);
    assert!(heavy.any <= 0.25, "{heavy:?}");
}

/// The twins of those fleets: what is far out is found there too.
#[test]
fn twin_minority_elsewhere() {
    let few = Fleet { head: 5, base: 84, outlying: 1, ..PLAIN };
    let fleets = [
        ("5 v 84 pods, CV .05, one x 1.6", few),
        (
            "20 v 60 pods on 3 kinds of hardware, 3 x 2",
            Fleet { head: 20, base: 60, cv: 0.1, hardware: 3, outlying: 3, ratio: 2.0, ..few },
        ),
        ("90 v 10 pods, 30 x 2", Fleet { head: 90, base: 10, outlying: 30, ratio: 2.0, ..few }),
        (
            "40 v 100 pods, CV .3, heavy tails, 4 x 20",
            Fleet { head: 40, base: 100, cv: 0.3, heavy: true, outlying: 4, ratio: 20.0, ..few },
        ),
    ];
    for (what, fleet) in fleets {
        let rates = fleet.runs(what, 20);
        assert!(rates.found >= 0.9 && rates.named >= 0.9, "{what}: {rates:?}");
    }
}
