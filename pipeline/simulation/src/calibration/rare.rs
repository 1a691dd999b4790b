//! Nothing changed in functions too rare for the test between pods, whose samples come from a few pods: is anything
//! significant?

use fleetdiff_schemas::number::{float, length_float, whole};
use fleetdiff_statistics::MIN_COUNT;
use fleetdiff_statistics::exact::binomial_two_sided;
use fleetdiff_statistics::rare::{RareArm, ln_p_rare};

use super::chance::{Multipliers, poisson};
use super::model::{Noise, SAMPLES, pods};
use super::plain::rejections;
use super::quiet::{figures, of_numbers};
use super::row::{Chance, Row};
use crate::fleet::random::{Generator, next_uniform};

const FUNCTIONS: usize = 500;
/// Expected samples of a function in both arms together: between these, log-uniform.
const EXPECTED: (f64, f64) = (1.0, 60.0);
/// Masses this close are equally likely.
const TIE: f64 = 1e-9;

pub(super) fn rows() -> Vec<Row> {
    let simulates = "500 functions of under 30 samples in 20 v 180 pods, clumped: pods differ by CV 300 %; the plain test is the exact mid-p of the counts";
    let row = Row::new("aa-rare", simulates, figures(0.10), |chance: &mut Chance| {
        let mut sizes = |count| -> Vec<f64> {
            pods(count, &[1.0], &Noise::of(0.0), &mut chance.rng).iter().map(|pod| pod.size).collect()
        };
        let (head, base) = (sizes(20), sizes(180));
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..FUNCTIONS {
            let expected = EXPECTED.0 * libm::pow(EXPECTED.1 / EXPECTED.0, next_uniform(&mut chance.rng));
            let mut arm = |sizes: &[f64]| arm(sizes, expected / 200.0, &mut chance.rng);
            let (head, base) = (arm(&head), arm(&base));
            let both = head.count + base.count;
            if both > 0 && float(both) < MIN_COUNT {
                ours.push(ln_p_rare(head, base));
                let counts = binomial_two_sided(head.count, float(head.total), base.count, float(base.total), TIE);
                plain.push(counts.map_or(f64::NAN, |counts| counts.ln_p_mid));
            }
        }
        of_numbers(rejections(&ours), rejections(&plain))
    });
    vec![Row { repeats: 5, ..row }]
}

/// A function in one arm: `mean` samples in an average pod.
fn arm(sizes: &[f64], mean: f64, rng: &mut Generator) -> RareArm {
    let own = Multipliers::with_cv(3.0);
    let counts: Vec<u32> = sizes
        .iter()
        .map(|size| {
            let mean = mean * size * own.next(rng);
            poisson(mean, rng)
        })
        .collect();
    let showing = counts.iter().map(|&count| u64::from(count > 0)).sum();
    RareArm {
        count: counts.iter().copied().map(u64::from).sum(),
        total: whole(sizes.iter().sum::<f64>() * SAMPLES),
        showing,
        pods: whole(length_float(sizes.len())),
    }
}
