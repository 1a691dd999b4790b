//! Nothing changed in how many bytes are allocated where: is anything significant?
//!
//! A sample of an allocation profile represents many bytes, and more of them the larger the object. If bytes are taken
//! for counts, the test assumes half a million times too many samples; divided by their unit, sum w^2 / sum w, they
//! count as many samples as were taken.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::{length_float, whole};
use fleetdiff_statistics::{Arm, BucketCounts, BucketRow, Contrast, Stratum, rows_of_cell};

use super::chance::{Multipliers, poisson};
use super::figure::{Figure, Observed, Seen};
use super::model::{Noise, Pod, pods, to_one};
use super::plain::{self, calls};
use super::row::{Chance, Row};
use crate::fleet::random::{Generator, next_uniform};

const SITES: usize = 60;
/// Allocations that an average pod's profile samples in a window.
const SAMPLED: f64 = 5_000.0;
/// Bytes from one sampled allocation to the next: the Go runtime's default.
const RATE: f64 = 524_288.0;
/// Sizes of objects: a site's typical size is between these, log-uniform; its objects differ by CV 100 %.
const SIZES: (f64, f64) = (64.0, 4_194_304.0);

pub(super) fn rows() -> Vec<Row> {
    let simulates = "bytes of 60 allocation sites, 20 v 180 pods, CV 10 %; the plain test takes bytes for counts";
    let figures = vec![Figure::mean("sites called a run").at_most(0.2)];
    let row = Row::new("aa-alloc-bytes", simulates, figures, |chance: &mut Chance| {
        let shares = to_one((1..=SITES).map(|rank| 1.0 / length_float(rank)).collect());
        let typical: Vec<f64> =
            (0..SITES).map(|_| SIZES.0 * libm::pow(SIZES.1 / SIZES.0, next_uniform(&mut chance.rng))).collect();
        let mut arm = |count| {
            let pods = pods(count, &shares, &Noise::of(0.1), &mut chance.rng);
            Sampled::of(&pods, &typical, &mut chance.rng)
        };
        let (head, base) = (arm(20), arm(180));
        let plain = plain::ln_p(&head.bytes(), head.bytes().iter().sum(), &base.bytes(), base.bytes().iter().sum());
        let ours = adjusted_ln_p(&head, &base);
        vec![Observed::beside(Seen::count(calls(&ours)), Seen::count(calls(&plain)))]
    });
    vec![row]
}

/// What the profiles of an arm's pods hold.
#[derive(Default)]
struct Sampled {
    /// By bucket: pods, and bytes by site.
    buckets: BTreeMap<u16, (u32, Vec<f64>)>,
    /// By site, the sum of squares of the bytes that each sample represents.
    squares: Vec<f64>,
}

impl Sampled {
    fn of(pods: &[Pod], typical: &[f64], rng: &mut Generator) -> Self {
        let spread = Multipliers::with_cv(1.0);
        let mut all = Self { squares: vec![0.0; SITES], ..Self::default() };
        for pod in pods {
            let (held, bytes) = all.buckets.entry(pod.bucket).or_insert_with(|| (0, vec![0.0; SITES]));
            *held += 1;
            for (site, share) in pod.shares.iter().enumerate() {
                for _ in 0..poisson(SAMPLED * pod.size * share, rng) {
                    let size = typical[site] * spread.next(rng);
                    let value = libm::round(size / -libm::expm1(-size / RATE));
                    bytes[site] += value;
                    all.squares[site] += value * value;
                }
            }
        }
        all
    }

    /// Bytes by site.
    fn bytes(&self) -> Vec<u64> {
        (0..SITES).map(|site| whole(self.buckets.values().map(|(_, bytes)| bytes[site]).sum::<f64>())).collect()
    }

    /// The input of the tests, with each site divided by its unit.
    fn scaled(&self, units: &[f64]) -> Vec<(u16, u64, Scaled)> {
        let row = |(&bucket, (_, bytes)): (&u16, &(u32, Vec<f64>))| {
            let values = Scaled(bytes.iter().zip(units).map(|(bytes, unit)| bytes / unit).collect());
            (bucket, values.exposure(), values)
        };
        self.buckets.iter().map(row).collect()
    }

    fn pods(&self) -> BTreeMap<u16, u32> {
        self.buckets.iter().map(|(&bucket, (pods, _))| (bucket, *pods)).collect()
    }
}

/// Values divided by their unit, instead of counts.
struct Scaled(Vec<f64>);

impl Scaled {
    fn exposure(&self) -> u64 {
        whole(libm::round(self.0.iter().sum::<f64>()))
    }
}

impl BucketCounts for Scaled {
    fn add_to(&self, start: usize, out: &mut [f64]) {
        let held = self.0.get(start..).unwrap_or_default();
        out.iter_mut().zip(held).for_each(|(sum, value)| *sum += value);
    }
}

/// sum w^2 / sum w of each site over both arms, then the standard test.
fn adjusted_ln_p(head: &Sampled, base: &Sampled) -> Vec<f64> {
    let bytes = |site: usize| {
        [head, base].iter().flat_map(|arm| arm.buckets.values()).map(|(_, bytes)| bytes[site]).sum::<f64>()
    };
    let units: Vec<f64> =
        (0..SITES).map(|site| (head.squares[site] + base.squares[site]) / bytes(site).max(1.0)).collect();
    let (of_head, of_base) = (head.scaled(&units), base.scaled(&units));
    let stratum = Stratum { head: arm(&of_head), base: arm(&of_base) };
    rows_of_cell(&Contrast::new(SITES, vec![stratum], head.pods(), base.pods()), None, 0.0).adjusted.ln_p
}

fn arm(rows: &[(u16, u64, Scaled)]) -> Arm<'_> {
    let mut arm = Arm::default();
    for (bucket, exposure, values) in rows {
        arm.rows.push(BucketRow { bucket: *bucket, exposure: *exposure, counts: vec![values] });
    }
    arm
}
