//! Nothing changed, and pods differ in samples for the same requests: is a cost per request significant?

use fleetdiff_schemas::number::float;
use fleetdiff_statistics::MIN_COUNT;
use fleetdiff_statistics::g::g_rate;
use fleetdiff_statistics::requests::{PerRequest, Served, ServedRow, ServedStratum};
use fleetdiff_statistics::tails::ln_chi1_tail;

use super::chance::poisson;
use super::model::{FUNCTIONS, Means, Noise, Pod, SAMPLES, Table, pods, zipf};
use super::plain::calls;
use super::quiet::{figures, of_calls};
use super::row::{Chance, Row};

/// Requests that an average pod serves in a window.
const REQUESTS: f64 = 18_000.0;

pub(super) fn rows() -> Vec<Row> {
    let shares = zipf();
    let simulates = "40 v 760 pods, CV 10 % in each function and CV 10 % in samples for the same requests; cost per request, all samples together included";
    let row = Row::new("aa-per-request", simulates, figures(0.10), move |chance: &mut Chance| {
        let noise = Noise { cv: 0.1, cost_cv: 0.1 };
        let mut arm = |count| {
            let pods = pods(count, &shares, &noise, &mut chance.rng);
            Serving::of(&pods, &[1.0; FUNCTIONS], SAMPLES, REQUESTS, chance)
        };
        let (head, base) = (arm(40), arm(760));
        of_calls(calls(&ln_p(&head, &base)), calls(&plain(&head, &base)))
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
    /// For pods that take `samples` for `requests` each on average, where function f costs `costs[f]` times as much.
    pub(super) fn of(pods: &[Pod], costs: &[f64], samples: f64, requests: f64, chance: &mut Chance) -> Self {
        let counts = Means::of(pods, samples, costs).draw(&mut chance.rng);
        let mut served = |bucket: u16| {
            let size: f64 = pods.iter().filter(|pod| pod.bucket == bucket).map(|pod| pod.size).sum();
            u64::from(poisson(size * requests, &mut chance.rng))
        };
        let requests = counts.rows.iter().map(|row| served(row.bucket)).collect();
        Self { counts, requests }
    }

    fn rows(&self) -> Vec<ServedRow<'_>> {
        let row = |(row, &requests)| served_row(row, requests);
        self.counts.rows.iter().zip(&self.requests).map(row).collect()
    }
}

fn served_row(row: &super::model::Row, requests: u64) -> ServedRow<'_> {
    ServedRow { bucket: row.bucket, requests, samples: row.exposure, counts: vec![&row.counts] }
}

/// ln p of each function's cost per request, and last that of all samples together.
pub(super) fn ln_p(head: &Serving, base: &Serving) -> Vec<f64> {
    let served = Served {
        functions: head.counts.rows.first().map_or(0, |row| row.counts.len()),
        strata: vec![ServedStratum { head: head.rows(), base: base.rows() }],
        head_pods: head.counts.pods.clone(),
        base_pods: base.counts.pods.clone(),
        ..Served::default()
    };
    let PerRequest { functions, all } = PerRequest::measure(&served);
    [functions.test.ln_p, all.test.ln_p].concat()
}

/// The same from merged counts and requests.
fn plain(head: &Serving, base: &Serving) -> Vec<f64> {
    let (of_head, of_base) = (float(head.requests.iter().sum()), float(base.requests.iter().sum()));
    let one = |(a, b): (u64, u64)| {
        let tested = float(a + b) >= MIN_COUNT;
        if tested { ln_chi1_tail(g_rate(float(a), of_head, float(b), of_base)) } else { f64::NAN }
    };
    let with_all = |arm: &Serving| [arm.counts.merged(), vec![arm.counts.merged().iter().sum()]].concat();
    with_all(head).into_iter().zip(with_all(base)).map(one).collect()
}
