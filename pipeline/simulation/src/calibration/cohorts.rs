//! Nothing changed, and the cells of a region share its pods, since a cohort is a label of requests: is anything
//! significant?

use std::collections::BTreeMap;

use fleetdiff_statistics::{Arms, MIN_EFFECT};

use super::model::{FUNCTIONS, Means, Noise, Pair, contrast, contrast_of_one, pods, pods_together, shares};
use super::plain::{ln_p_pooled, rejections};
use super::quiet::{figures, of_numbers};
use super::row::{Chance, Row};
use super::window::{Window, two_level};

const REGIONS: usize = 3;
const COHORTS: usize = 3;
/// Pods of a region.
const PODS: Arms<usize> = Arms { head: 4, base: 16 };
/// Samples that the median pod takes of one cohort.
const SAMPLES: f64 = 60_000.0;

pub(super) fn rows() -> Vec<Row> {
    let shares = shares(FUNCTIONS);
    let simulates = "3 regions of 4 v 16 pods, CV 10 %, each of which serves 3 cohorts: 9 cells, two-level";
    let row = Row::new("aa-shared-pods", simulates, figures(0.10), move |chance: &mut Chance| {
        let unchanged = [1.0; FUNCTIONS];
        let mut cells: Vec<Pair> = Vec::new();
        for _ in 0..REGIONS {
            let means = Arms::of(|side| {
                Means::of(&pods(PODS[side], &shares, &Noise::of(0.1), &mut chance.rng), SAMPLES, &unchanged)
            });
            cells.extend((0..COHORTS).map(|_| means.as_ref().map(|arm| arm.draw(&mut chance.rng))));
        }
        // A region's pods are those of any of its cells.
        let pods: Arms<BTreeMap<u16, u32>> =
            Arms::of(|side| pods_together(cells.iter().step_by(COHORTS).map(|cell| &cell[side].pods)));
        let together = Window::of(contrast(FUNCTIONS, &cells, pods), MIN_EFFECT);
        let windows = cells.iter().map(|cell| Window::of(contrast_of_one(cell), MIN_EFFECT)).collect::<Vec<_>>();
        let significant = two_level(&windows, &together);
        let plain: Vec<f64> = cells.iter().flat_map(|cell| ln_p_pooled([cell])).collect();
        of_numbers(significant.iter().flatten().filter(|&&significant| significant).count(), rejections(&plain))
    });
    vec![row]
}
