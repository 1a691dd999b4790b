//! Nothing changed, one window, one stratum: how often is anything significant?

use fleetdiff_statistics::rows_of_cell;

use super::figure::{Figure, Observed, Seen};
use super::model::{Means, Noise, Pair, Pod, SAMPLES, bucket, flat_zipf, pods, to_one, zipf};
use super::plain::{calls, ln_p_pooled};
use super::row::{Chance, Row};

/// Tenants among whom pods are spread.
const TENANTS: u64 = 20;

pub(super) fn rows() -> Vec<Row> {
    vec![
        cells("aa", "40 v 760 pods, CV 10 %, one cell", zipf(), Size { cells: 1, head: 40, base: 760, cv: 0.10 }, 0.08),
        cells(
            "aa-flat",
            "the same with shares that fall as 1/i, so that twice as many functions are well counted",
            flat_zipf(),
            Size { cells: 1, head: 40, base: 760, cv: 0.10 },
            0.08,
        ),
        cells(
            "aa-one-pod",
            "42 cells of 1 v 18 pods, CV 20 %, tested as if one pod could be",
            zipf(),
            Size { cells: 42, head: 1, base: 18, cv: 0.20 },
            0.08,
        ),
        cells(
            "aa-three-pods",
            "42 cells of 3 v 16 pods, CV 50 %",
            zipf(),
            Size { cells: 42, head: 3, base: 16, cv: 0.50 },
            0.08,
        ),
        tenants(),
    ]
}

struct Size {
    cells: usize,
    head: usize,
    base: usize,
    cv: f64,
}

/// The figures of a row in which nothing changed.
pub(super) fn figures(bound: f64) -> Vec<Figure> {
    vec![Figure::rate("P(any row called)").at_most(bound), Figure::mean("rows called a run")]
}

/// What a run shows of them, from ln p of one flat family.
pub(super) fn observed(ours: &[f64], plain: &[f64]) -> Vec<Observed> {
    of_calls(calls(ours), calls(plain))
}

/// What a run shows of them, from numbers of significant rows.
pub(super) fn of_calls(ours: usize, plain: usize) -> Vec<Observed> {
    vec![
        Observed::beside(Seen::whether(ours > 0), Seen::whether(plain > 0)),
        Observed::beside(Seen::count(ours), Seen::count(plain)),
    ]
}

/// Cells that share no pod: BH over the adjusted p of all of them.
fn cells(name: &'static str, simulates: &'static str, shares: Vec<f64>, size: Size, bound: f64) -> Row {
    Row::new(name, simulates, figures(bound), move |chance: &mut Chance| {
        let noise = Noise::of(size.cv);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..size.cells {
            let mut arm = |count| pods(count, &shares, &noise, &mut chance.rng);
            let (head, base) = (arm(size.head), arm(size.base));
            test(&head, &base, chance, &mut ours, &mut plain);
        }
        observed(&ours, &plain)
    })
}

/// Pods serve one tenant each, and all pods of a tenant have the same costs.
fn tenants() -> Row {
    let shares = zipf();
    let simulates = "40 v 760 pods of 20 tenants that differ by CV 50 %; pods of a tenant are alike";
    Row::new("aa-tenants", simulates, figures(0.10), move |chance: &mut Chance| {
        let tenants = pods(usize::try_from(TENANTS).unwrap_or(1), &shares, &Noise::of(0.5), &mut chance.rng);
        let sizes = pods(800, &shares, &Noise::of(0.0), &mut chance.rng);
        let mut serving = |pod: Pod| {
            let tenant = usize::from(bucket(&mut chance.rng)) % tenants.len();
            Pod { shares: to_one(tenants[tenant].shares.clone()), ..pod }
        };
        let all: Vec<Pod> = sizes.into_iter().map(&mut serving).collect();
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        test(&all[..40], &all[40..], chance, &mut ours, &mut plain);
        observed(&ours, &plain)
    })
}

fn test(head: &[Pod], base: &[Pod], chance: &mut Chance, ours: &mut Vec<f64>, plain: &mut Vec<f64>) {
    let unchanged = vec![1.0; head[0].shares.len()];
    let mut draw = |pods: &[Pod]| Means::of(pods, SAMPLES, &unchanged).draw(&mut chance.rng);
    let pair = Pair { head: draw(head), base: draw(base) };
    ours.extend(rows_of_cell(&pair.contrast(), None, 0.0).adjusted.ln_p);
    plain.extend(ln_p_pooled([&pair]));
}
