//! Nothing changed, and pods differ in samples for the same requests: is a cost per request significant?

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::families::{bh, selected};
use fleetdiff_statistics::g::g_rate;
use fleetdiff_statistics::requests::PerRequest;
use fleetdiff_statistics::tails::ln_chi1_tail;
use fleetdiff_statistics::{Arm, Arms, BucketRow, Contrast, MIN_COUNT};

use super::chance::poisson;
use super::figure::{Figure, Observed, Seen};
use super::model::{FUNCTIONS, Means, Noise, Pod, Table, pods, shares};
use super::plain::rejections;
use super::quiet::{figures, of_numbers};
use super::row::{Chance, Q, Row};

const PODS: Arms<usize> = Arms { head: 12, base: 60 };
/// Samples of the median pod, and the requests that it serves.
const SAMPLES: f64 = 60_000.0;
const REQUESTS: f64 = 6_000.0;

pub(super) fn rows() -> Vec<Row> {
    let shares = shares(FUNCTIONS);
    let simulates =
        "12 v 60 pods, CV 10 % in each function and sd .1 in samples for the same requests; cost per request";
    let mut figures = figures(0.10);
    figures.push(Figure::rate("P(all samples together significant)").at_most(0.10));
    let row = Row::new("aa-per-request", simulates, figures, move |chance: &mut Chance| {
        let noise = Noise { cost_sd: 0.1, ..Noise::of(0.1) };
        let arms = Arms::of(|side| {
            let pods = pods(PODS[side], &shares, &noise, &mut chance.rng);
            Serving::of(&pods, &[1.0; FUNCTIONS], SAMPLES, REQUESTS, chance)
        });
        let measured = PerRequest::measure(&contrast(&arms));
        let all = measured.all.levels[0].ln_p(1.0);
        let ln_p_plain = plain(&arms);
        let (ln_p_of_all, ln_p_of_functions) = ln_p_plain.split_last().unwrap_or((&f64::NAN, &[]));
        let mut observed = of_numbers(rejections(&ln_p(&measured)), rejections(ln_p_of_functions));
        let alone = |ln_p: f64| Seen::whether(bh(&[ln_p]).iter().any(|&q| selected(q, Q)));
        observed.push(Observed::beside(alone(all), alone(*ln_p_of_all)));
        observed
    });
    vec![row]
}

/// One arm in one stratum with the requests that it served.
pub(super) struct Serving {
    pub(super) counts: Table,
    /// In the order of the table's rows.
    requests: Vec<u64>,
}

impl Serving {
    /// For pods of which the median one takes `samples` for `requests`, where function f costs `costs[f]` times as much.
    pub(super) fn of(pods: &[Pod], costs: &[f64], samples: f64, requests: f64, chance: &mut Chance) -> Self {
        let counts = Means::of(pods, samples, costs).draw(&mut chance.rng);
        let mut served = |bucket: u16| {
            let size: f64 = pods.iter().filter(|pod| pod.bucket == bucket).map(|pod| pod.size).sum();
            u64::from(poisson(size * requests, &mut chance.rng))
        };
        let requests = counts.rows.iter().map(|row| served(row.bucket)).collect();
        Self { counts, requests }
    }

    fn arm(&self) -> Arm<'_> {
        let mut arm = self.counts.arm();
        let with_requests = |(row, &requests): (&mut BucketRow<'_>, &u64)| row.requests = requests;
        arm.rows.iter_mut().zip(&self.requests).for_each(with_requests);
        arm
    }
}

/// The input of the tests.
pub(super) fn contrast(arms: &Arms<Serving>) -> Contrast<'_> {
    let functions = arms.head.counts.rows.first().map_or(0, |row| row.counts.len());
    let stratum = arms.as_ref().map(Serving::arm);
    Contrast::new(functions, vec![stratum], arms.as_ref().map(|arm| arm.counts.pods.clone()))
}

/// ln p of each function's cost per request.
pub(super) fn ln_p(measured: &PerRequest) -> Vec<f64> {
    (0..measured.functions.tested.len()).map(|place| measured.ln_p(place)).collect()
}

/// The same from merged counts and requests; last that of all samples together.
fn plain(arms: &Arms<Serving>) -> Vec<f64> {
    let requests = arms.as_ref().map(|arm| float(arm.requests.iter().sum()));
    let one = |(a, b): (u64, u64)| {
        let tested = float(a + b) >= MIN_COUNT;
        if tested { ln_chi1_tail(g_rate(float(a), requests.head, float(b), requests.base)) } else { f64::NAN }
    };
    let Arms { head, base } = arms.as_ref().map(|arm| {
        let merged = arm.counts.merged();
        let all = merged.iter().sum();
        [merged, vec![all]].concat()
    });
    head.into_iter().zip(base).map(one).collect()
}
