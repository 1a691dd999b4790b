//! Memory: is the change of a level significant where nothing changed, and which classes are given to changes that are known?
//!
//! Each pod has a level of its own, log-normal; a row of the table `heap` compares such levels, each bucket of pods one.

mod classes;

use fleetdiff_statistics::pod_levels::{LevelChange, PodLevel};
use fleetdiff_statistics::{Arms, Side};

use super::chance::Multipliers;
use super::figure::{Figure, Observed, Seen};
use super::row::{Chance, Q, Row};

/// Pods of both arms, their CV, how many times the head's level is the base's; and the figure.
type Design = (Arms<usize>, Arms<f64>, f64, Figure);

pub(super) fn rows() -> Vec<Row> {
    let designs = designs();
    let simulates = "levels of pods (bytes a request, bytes in use), log-normal; each figure is of other pods";
    let figures = designs.iter().map(|(.., figure)| *figure).collect();
    let observe = move |chance: &mut Chance| designs.iter().map(|design| observed(design, chance)).collect();
    vec![Row { repeats: 20, ..Row::new("memory", simulates, figures, observe) }, classes::row()]
}

fn designs() -> Vec<Design> {
    let pods = |head, base| Arms { head, base };
    let cv = |head, base| Arms { head, base };
    let rate = Figure::rate;
    vec![
        (pods(2, 4), cv(0.1, 0.1), 1.0, rate("P(p < .05), 2 v 4 pods, CV 10 %").at_most(0.06)),
        (pods(2, 4), cv(0.3, 0.3), 1.0, rate("P(p < .05), 2 v 4 pods, CV 30 %").at_most(0.06)),
        (pods(3, 16), cv(0.1, 0.1), 1.0, rate("P(p < .05), 3 v 16 pods, CV 10 %").at_most(0.06)),
        (pods(3, 16), cv(0.25, 0.1), 1.0, rate("P(p < .05), 3 v 16 pods, head CV 25 %, base 10 %").at_most(0.07)),
        (pods(5, 84), cv(0.3, 0.3), 1.0, rate("P(p < .05), 5 v 84 pods, CV 30 %").at_most(0.06)),
        (pods(12, 60), cv(0.3, 0.1), 1.0, rate("P(p < .05), 12 v 60 pods, head CV 30 %, base 10 %").at_most(0.07)),
        (pods(2, 6), cv(0.3, 0.1), 1.0, rate("P(p < .05), 2 v 6 pods, head CV 30 %, base 10 %")),
        (pods(2, 4), cv(0.1, 0.1), 2.0, rate("power, x 2, 2 v 4 pods, CV 10 %")),
        (pods(5, 20), cv(0.1, 0.1), 1.25, rate("power, x 1.25, 5 v 20 pods, CV 10 %").at_least(0.8)),
    ]
}

fn observed((pods, cv, factor, _): &Design, chance: &mut Chance) -> Observed {
    let significant = ratio(*pods, *cv, *factor, chance).is_some_and(|change| change.ln_p() < libm::log(Q));
    Observed::only(Seen::whether(significant))
}

/// The change of levels of which the head's are `factor` times the base's.
fn ratio(pods: Arms<usize>, cv: Arms<f64>, factor: f64, chance: &mut Chance) -> Option<LevelChange> {
    let stratum = Arms::of(|side| {
        let spread = Multipliers::with_cv(cv[side]);
        let level = if side == Side::Head { factor } else { 1.0 };
        (0..pods[side]).map(|_| PodLevel { value: level * spread.next(&mut chance.rng), counting: 0.0 }).collect()
    });
    LevelChange::ratio(&[stratum])
}
