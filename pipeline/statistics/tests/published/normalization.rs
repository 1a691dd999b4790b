//! The scale of a cell.

use fleetdiff_statistics::Scales;
use fleetdiff_statistics::normalization::{Anchor, Change, Changes};

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
