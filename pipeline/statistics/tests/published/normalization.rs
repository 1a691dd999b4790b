//! The scale of a cell.

use fleetdiff_statistics::Scales;
use fleetdiff_statistics::normalization::{Anchor, Change, Changes, scales_of_counts};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::vectors::{Compared, cases, float, floats, list};

#[test]
fn published_normalization() {
    let (mut compared, mut seen) = (Compared::new("modes and scales"), 0);
    for (i, case) in cases("normalization.json").iter().enumerate() {
        let (theta, se, cost) = (floats(&case["theta"]), floats(&case["se"]), floats(&case["cost"]));
        let change = |f: usize| Change { theta: theta[f], variance: se[f] * se[f], cost: cost[f] };
        let modes = Changes::new((0..theta.len()).map(change)).modes();
        compared.equal(&modes.len(), &list(&case["modes"]).len(), &format!("{i} modes"));
        for (mode, expected) in modes.iter().zip(list(&case["modes"])) {
            compared.absolute(mode.ln_scale, float(&expected[0]), 1e-8, &format!("{i} mode"));
            compared.absolute(mode.mass, float(&expected[1]), 1e-8, &format!("{i} mass"));
        }
        let anchor = case["anchor"].as_array().map(|anchor| Anchor { theta: float(&anchor[0]), se: float(&anchor[1]) });
        let scales = Scales::among(&modes, anchor);
        compared.absolute(scales.deciding.ln_scale, float(&case["ln_scale"]), 1e-8, &format!("{i} scale"));
        let (found, mut expected): (Vec<f64>, Vec<f64>) = (scales.ln_scales().collect(), floats(&case["ln_scales"]));
        compared.equal(&found.len(), &expected.len(), &format!("{i} scales"));
        let decides =
            expected.iter().position(|&ln| (ln - scales.deciding.ln_scale).abs() < 1e-8).expect("it is among them");
        expected[..=decides].rotate_right(1);
        for (found, expected) in found.iter().zip(expected) {
            compared.absolute(*found, expected, 1e-8, &format!("{i} scales"));
        }
        seen += 1;
    }
    assert_eq!(seen, 24);
    compared.finish();
}

proptest! {
    /// The scale moves with its data, is not moved by one function however far off, and does not depend on the order.
    #[test]
    fn law_scale_moves_with_its_data(theta in vec(-0.01..0.01_f64, 25..60), v in vec(1e-6..1e-3_f64, 60), shift in -1.0..1.0_f64) {
        let change = |f: usize, theta: f64| Change { theta, variance: v[f], cost: 0.02 };
        let scale = |thetas: &[f64]| {
            let changes = Changes::new(thetas.iter().enumerate().map(|(f, &theta)| change(f, theta)));
            Scales::among(&changes.modes(), None).deciding.ln_scale
        };
        let moved: Vec<f64> = theta.iter().map(|theta| theta + shift).collect();
        prop_assert!((scale(&moved) - scale(&theta) - shift).abs() < 1e-8);
        let (mut far, mut farther) = (theta.clone(), theta.clone());
        (far[0], farther[0]) = (5.0, -50.0);
        prop_assert!((scale(&far) - scale(&farther)).abs() < 1e-9);
    }
}

/// Two groups moved apart by a quarter: two scales, unless the cost per request tells which stood still.
#[test]
fn two_groups_need_requests() {
    let base: Vec<f64> = (0..60).map(|f| f64::from(9000 / (f % 20 + 1))).collect();
    let head: Vec<f64> = base.iter().enumerate().map(|(f, x)| if f % 2 == 1 { x * 1.25 } else { *x }).collect();
    let (n_head, n_base) = (head.iter().sum(), base.iter().sum());
    let scales = scales_of_counts(&head, n_head, &base, n_base);
    let moved = f64::ln(n_head / n_base);
    assert!(scales.ambiguous() && (scales.deciding.ln_scale + moved).abs() < 1e-3, "{scales:?}");
    let modes = [scales.deciding, scales.rivals[0]];
    let known = |theta| Scales::among(&modes, Some(Anchor { theta, se: 0.01 }));
    assert_eq!(known(moved).deciding, scales.deciding);
    assert!(!known(moved).ambiguous());
    assert_eq!(known(-modes[1].ln_scale).deciding, modes[1]);
}
