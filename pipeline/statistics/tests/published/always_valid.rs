//! The e-value read backwards.

use fleetdiff_statistics::always_valid::{critical_z, ln_p_always_valid};
use fleetdiff_statistics::deviance::Level;
use fleetdiff_statistics::evalue::{ln_e, ln_e_mixture};
use fleetdiff_statistics::{Arms, Levels};
use proptest::prelude::*;

use crate::vectors::Compared;

/// Roots of ln e(z^2, v) = -ln alpha in mpmath with 40 digits.
#[test]
fn published_critical_z() {
    let mut compared = Compared::new("z at which the mixture pays 1/alpha");
    let known = [
        (1e-6, 0.05, 4.003_219_721_772_459),
        (1e-4, 0.05, 3.432_437_663_663_244),
        (0.0025, 0.05, 3.348_602_628_320_483),
        (0.04, 0.05, 3.361_219_294_860_471_4),
        (1.0, 0.05, 3.460_113_035_207_295_7),
        (100.0, 0.05, 9.719_798_084_606_137),
        (0.0025, 1e-6, 5.833_418_935_106_877),
        (0.0025, 0.5, 2.399_422_559_341_922),
    ];
    for (v, alpha, z) in known {
        compared.relative(critical_z(v, alpha), z, 1e-12, &format!("v {v}, alpha {alpha}"));
    }
    compared.finish();
}

#[test]
fn always_valid_of_nothing() {
    for (v, alpha) in [(0.0, 0.05), (f64::NAN, 0.05), (1.0, 0.0), (1.0, 1.5), (1.0, f64::NAN), (f64::INFINITY, 0.05)] {
        assert!(critical_z(v, alpha).is_nan(), "v {v}, alpha {alpha}");
    }
    assert!(ln_p_always_valid(f64::NAN).is_nan());
    assert_eq!([ln_p_always_valid(-3.0), ln_p_always_valid(4.0)].map(f64::to_bits), [0.0_f64, -4.0].map(f64::to_bits));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// At the critical z the mixture pays exactly 1/alpha; a smaller alpha asks for more.
    #[test]
    fn law_critical_z_inverts_the_mixture(ln_v in -25.0..6.0_f64, alpha in 1e-9..0.999_f64) {
        let (v, z) = (ln_v.exp(), critical_z(ln_v.exp(), alpha));
        prop_assert!((ln_e_mixture(z * z, v) + alpha.ln()).abs() <= 1e-11 * (1.0 - alpha.ln()), "{z}");
        prop_assert!(critical_z(v, alpha * 0.9) > z);
    }

    /// The always-valid interval holds the ordinary one, and leaves out no change exactly if the e-value is at least 1/alpha.
    #[test]
    fn law_interval_is_the_e_value_read_backwards(
        ln_base in -9.0..-1.0_f64, theta in -1.0..1.0_f64, counting in 1e-8..1e-4_f64, between in 1e-6..1e-2_f64, df in 2.0..200.0_f64, alpha in 1e-4..0.2_f64,
    ) {
        let level = |share: f64| Level { share, counting, between };
        let arms = Arms { head: level((ln_base + theta).exp()), base: level(ln_base.exp()) };
        let levels = Levels::new(arms, Arms { head: df, base: 2.0 * df });
        let (always, ordinary) = (levels.tests().always_valid_interval(alpha), levels.interval(alpha.ln()));
        prop_assert!(always.low <= ordinary.low + 1e-9 && always.high >= ordinary.high - 1e-9, "{always:?} {ordinary:?}");
        let ln_e = ln_e(levels.ln_p(1.0), levels.variance());
        let excludes = always.low > 0.0 || always.high < 0.0;
        prop_assert!(excludes == (ln_e >= -alpha.ln()) || (ln_e + alpha.ln()).abs() < 1e-6, "{always:?} {ln_e}");
    }
}
