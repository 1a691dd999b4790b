//! Nothing changed in how many bytes are allocated where: is anything significant?
//!
//! A sample of an allocation profile represents many bytes, and more of them the larger the object. If bytes are taken
//! for counts, the test assumes half a million times too many samples; divided by their unit, sum w^2 / sum w, they
//! count as many samples as were taken.

use std::collections::BTreeMap;

use fleetdiff_schemas::number::{length_float, whole};
use fleetdiff_statistics::{Arm, Arms, BucketRow, Contrast, MIN_EFFECT};

use super::chance::{Multipliers, poisson};
use super::figure::{Figure, Observed, Seen};
use super::model::{Noise, Pod, pods, to_one};
use super::plain::{self, rejections};
use super::row::{Chance, Row};
use super::window::Window;
use crate::fleet::random::{Generator, next_uniform};

const SITES: usize = 60;
const PODS: Arms<usize> = Arms { head: 20, base: 180 };
/// Allocations that the median pod's profile samples in a window.
const SAMPLED: f64 = 5_000.0;
/// Bytes from one sampled allocation to the next: the Go runtime's default.
const RATE: f64 = 524_288.0;
/// Sizes of objects: a site's typical size is between these, log-uniform; its objects differ by CV 100 %.
const SIZES: (f64, f64) = (64.0, 4_194_304.0);

pub(super) fn rows() -> Vec<Row> {
    let simulates = "bytes of 60 allocation sites, 20 v 180 pods, CV 10 %; the plain test takes bytes for counts";
    let figures = vec![Figure::mean("sites significant a run").at_most(0.2)];
    let row = Row::new("aa-alloc-bytes", simulates, figures, |chance: &mut Chance| {
        let shares = to_one((1..=SITES).map(|rank| 1.0 / length_float(rank)).collect());
        let typical: Vec<f64> =
            (0..SITES).map(|_| SIZES.0 * libm::pow(SIZES.1 / SIZES.0, next_uniform(&mut chance.rng))).collect();
        let arms = Arms::of(|side| {
            let pods = pods(PODS[side], &shares, &Noise::of(0.1), &mut chance.rng);
            Sampled::of(&pods, &typical, &mut chance.rng)
        });
        let bytes = arms.as_ref().map(Sampled::bytes);
        let plain = plain::ln_p(&bytes.head, bytes.head.iter().sum(), &bytes.base, bytes.base.iter().sum());
        vec![Observed::beside(Seen::count(significant_by_unit(&arms)), Seen::count(rejections(&plain)))]
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
            for (site, share) in pod.weights.iter().enumerate() {
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

    /// By bucket, the values of each site divided by its unit.
    fn scaled(&self, units: &[f64]) -> Vec<(u16, Vec<f64>)> {
        let of_bucket = |bytes: &[f64]| bytes.iter().zip(units).map(|(bytes, unit)| bytes / unit).collect();
        self.buckets.iter().map(|(&bucket, (_, bytes))| (bucket, of_bucket(bytes))).collect()
    }

    fn pods(&self) -> BTreeMap<u16, u32> {
        self.buckets.iter().map(|(&bucket, (pods, _))| (bucket, *pods)).collect()
    }
}

/// How many sites are significant in the standard test of bytes over sum w^2 / sum w of the site over both arms.
fn significant_by_unit(arms: &Arms<Sampled>) -> usize {
    let bytes = |site: usize| {
        arms.both().into_iter().flat_map(|arm| arm.buckets.values()).map(|(_, bytes)| bytes[site]).sum::<f64>()
    };
    let units: Vec<f64> =
        (0..SITES).map(|site| (arms.head.squares[site] + arms.base.squares[site]) / bytes(site).max(1.0)).collect();
    let scaled = arms.as_ref().map(|arm| arm.scaled(&units));
    let stratum = scaled.as_ref().map(|rows| arm(rows));
    let contrast = Contrast::new(SITES, vec![stratum], arms.as_ref().map(Sampled::pods));
    Window::of(contrast, MIN_EFFECT).significant().into_iter().filter(|&significant| significant).count()
}

fn arm(rows: &[(u16, Vec<f64>)]) -> Arm<'_> {
    let mut arm = Arm::default();
    for (bucket, values) in rows {
        arm.rows.push(BucketRow {
            bucket: *bucket,
            samples: whole(libm::round(values.iter().sum::<f64>())),
            requests: 0,
            hop_concentration: 1.0,
            counts: vec![values],
        });
    }
    arm
}
