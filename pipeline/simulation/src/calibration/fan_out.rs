//! The article's example of a fan-out: one of five functions costs 10 % more in two of nine cells. What happens to `_other`,
//! which did not change, but is two thirds of the profile and so loses share?

use fleetdiff_schemas::number::{float, length_float};
use fleetdiff_statistics::normalization::scales_of_counts;
use fleetdiff_statistics::requests::PerRequest;
use fleetdiff_statistics::{Arms, MIN_EFFECT, Measure, Model, Scales, Side, Tests, rows_of_cell};

use super::figure::{Figure, Observed, Seen};
use super::model::{Noise, Pair, contrast_of_one, pods, to_one};
use super::plain::{ln_p_pooled, significant};
use super::requests::{Serving, contrast, ln_p as ln_p_per_request};
use super::row::{Chance, Row};

/// Samples of the article's base in nine cells: the function that changes, three others, `_other`.
const ARTICLE: [f64; 5] = [128_908.0, 50_145.0, 35_971.0, 28_820.0, 474_544.0];
const OTHER: usize = 4;
const CELLS: usize = 9;
/// Cells in which the first function costs more.
const HIT: [usize; 2] = [0, 3];
const FACTOR: f64 = 1.10;
/// Pods of an arm in a cell, and samples of an arm there.
const PODS: usize = 20;
const SAMPLES: f64 = 80_000.0;

pub(super) fn rows() -> Vec<Row> {
    let simulates = "the article's 9 cells of 5 functions, 80,000 samples an arm from 20 pods that do not differ; the first costs 10 % more in 2 cells";
    let figures = vec![
        Figure::rate("`_other` significant in hit cells, after normalization").at_most(0.05),
        // The requirement is 0, to two digits.
        Figure::rate("`_other` significant in hit cells, per request").at_most(0.005),
        Figure::rate("`_other` significant in hit cells, by the whole rule").at_most(0.005),
        Figure::rate("the change found in hit cells, by the whole rule"),
        Figure::rate("`_other` significant in hit cells, by the whole rule without requests").at_most(0.05),
        Figure::rate("the change found in hit cells, by the whole rule without requests"),
        Figure::rate("the change found in hit cells, after normalization"),
    ];
    let row = Row::new("fan-out", simulates, figures, |chance: &mut Chance| {
        let cells: Vec<Arms<Serving>> = (0..CELLS).map(|cell| cell_of(HIT.contains(&cell), chance)).collect();
        let requests: Vec<PerRequest> = cells.iter().map(|cell| PerRequest::measure(&contrast(cell))).collect();
        let per_request = significant_in_one_family(requests.iter().map(ln_p_per_request).collect());
        let pairs: Vec<Pair> = cells.into_iter().map(|cell| cell.map(|arm| arm.counts)).collect();
        let of = |ln_p: &dyn Fn(&Pair) -> Vec<f64>| significant_in_one_family(pairs.iter().map(ln_p).collect());
        let adjusted = of(&against_the_scale);
        let whole = by_the_whole_rule(&pairs, &requests);
        let blind = of(&without_requests);
        let plain = of(&|pair| ln_p_pooled([pair]));
        vec![
            Observed::beside(hits(&adjusted, OTHER), hits(&plain, OTHER)),
            Observed::beside(hits(&per_request, OTHER), hits(&plain, OTHER)),
            Observed::only(hits(&whole, OTHER)),
            Observed::only(hits(&whole, 0)),
            Observed::only(hits(&blind, OTHER)),
            Observed::only(hits(&blind, 0)),
            Observed::beside(hits(&adjusted, 0), hits(&plain, 0)),
        ]
    });
    vec![Row { repeats: 5, ..row }]
}

fn cell_of(is_hit: bool, chance: &mut Chance) -> Arms<Serving> {
    let shares = to_one(ARTICLE.to_vec());
    Arms::of(|side| {
        let pods = pods(PODS, &shares, &Noise::of(0.0), &mut chance.rng);
        let factor = if is_hit && side == Side::Head { FACTOR } else { 1.0 };
        let samples = SAMPLES / length_float(PODS);
        Serving::of(&pods, &[factor, 1.0, 1.0, 1.0, 1.0], samples, samples / 10.0, chance)
    })
}

/// ln p against the scale of the merged counts, which the rules do not estimate from fewer than 20 functions.
fn against_the_scale(pair: &Pair) -> Vec<f64> {
    let Arms { head, base } = pair.as_ref().map(|arm| arm.merged().into_iter().map(float).collect::<Vec<f64>>());
    let scales = scales_of_counts(&head, head.iter().sum(), &base, base.iter().sum());
    rows_of_cell(tests(pair), scales, MIN_EFFECT).ln_p
}

/// Shares decide with what a function costs per request, since there are too few functions for a scale.
fn by_the_whole_rule(pairs: &[Pair], requests: &[PerRequest]) -> Vec<Vec<bool>> {
    let ln_p = |(pair, requests): (&Pair, &PerRequest)| -> Vec<f64> {
        let rows = rows_of_cell(tests(pair), Scales::UNCHANGED, MIN_EFFECT);
        let decides = |(place, ln_p_row): (usize, &f64)| {
            let levels = &requests.functions.levels[place];
            let agrees = levels.theta() * rows.theta[place] > 0.0;
            let ln_p = if agrees { requests.ln_p(place) } else { 0.0 };
            ln_p_row.max(ln_p).max(levels.tests().ln_p_min_effect(1.0, MIN_EFFECT))
        };
        rows.ln_p_row.iter().enumerate().map(decides).collect()
    };
    significant_in_one_family(pairs.iter().zip(requests).map(ln_p).collect())
}

/// Without requests shares decide against the scale of few functions.
fn without_requests(pair: &Pair) -> Vec<f64> {
    let tests = tests(pair);
    let scales = Scales::of_few(&tests);
    rows_of_cell(tests, scales, MIN_EFFECT).ln_p_row
}

fn tests(pair: &Pair) -> Tests {
    Tests::measure(&contrast_of_one(pair), &Measure::afresh(Model::Share))
}

/// By cell, then function: which rows are significant, with all cells in one family.
fn significant_in_one_family(ln_p: Vec<Vec<f64>>) -> Vec<Vec<bool>> {
    let rows = ln_p.first().map_or(1, Vec::len);
    significant(&ln_p.concat()).chunks(rows).map(<[bool]>::to_vec).collect()
}

fn hits(significant: &[Vec<bool>], function: usize) -> Seen {
    Seen::Hits { hits: HIT.iter().map(|&cell| u32::from(significant[cell][function])).sum(), of: 2 }
}
