//! Nothing changed, and the cells of a region share its pods, since a cohort is a label of requests: is anything
//! significant?

use std::collections::BTreeMap;

use fleetdiff_statistics::families::{TwoLevel, selected, two_level};
use fleetdiff_statistics::rows_of_cell;

use super::model::{Means, Noise, Pair, SAMPLES, contrast, pods, pods_together, zipf};
use super::plain::{calls, ln_p_pooled};
use super::quiet::{figures, of_calls};
use super::row::{Chance, Q, Row};

const REGIONS: usize = 3;
const COHORTS: usize = 3;

pub(super) fn rows() -> Vec<Row> {
    let shares = zipf();
    let simulates = "3 regions of 13 v 253 pods, CV 10 %, each of which serves 3 cohorts: 9 cells, two-level";
    let row = Row::new("aa-shared-pods", simulates, figures(0.10), move |chance: &mut Chance| {
        let unchanged = vec![1.0; shares.len()];
        let regions: Vec<[Means; 2]> = (0..REGIONS)
            .map(|_| {
                [13, 253].map(|count| {
                    Means::of(&pods(count, &shares, &Noise::of(0.1), &mut chance.rng), SAMPLES / 3.0, &unchanged)
                })
            })
            .collect();
        let mut cells = Vec::new();
        for [head, base] in &regions {
            cells.extend(
                (0..COHORTS).map(|_| Pair { head: head.draw(&mut chance.rng), base: base.draw(&mut chance.rng) }),
            );
        }
        // A region's pods are those of any of its cells.
        let arm = |of: fn(&Pair) -> &BTreeMap<u16, u32>| pods_together(cells.iter().step_by(COHORTS).map(of));
        let together = contrast(shares.len(), &cells, arm(|pair| &pair.head.pods), arm(|pair| &pair.base.pods));
        let plain: Vec<f64> = cells.iter().flat_map(|cell| ln_p_pooled([cell])).collect();
        let ln_p: Vec<Vec<f64>> =
            cells.iter().map(|cell| rows_of_cell(&cell.contrast(), None, 0.0).adjusted.ln_p).collect();
        let levels = two_level(
            &ln_p.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &rows_of_cell(&together, None, 0.0).adjusted.ln_p,
        );
        of_calls(significant_rows(&levels), calls(&plain))
    });
    vec![row]
}

/// Rows of single cells that the two levels select.
fn significant_rows(levels: &TwoLevel) -> usize {
    levels.q_value.iter().flatten().filter(|&&q| selected(q, Q)).count()
}
