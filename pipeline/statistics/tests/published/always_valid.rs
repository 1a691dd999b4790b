//! The e-value read backwards.

use fleetdiff_statistics::always_valid::{Bet, critical_z, ln_p_always_valid};
use fleetdiff_statistics::effect::interval_from_t;
use fleetdiff_statistics::evalue::{ln_e_mixture, ln_e_normalized};
use fleetdiff_statistics::tails::{F1Tail, t_quantile};
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
    let bet = Bet { theta: 0.1, se: f64::NAN, tail: F1Tail::new(20.0), part: 0.0 };
    let unknown = bet.ratio_interval(1.0, 0.05);
    assert!(unknown.low.is_nan() && unknown.high.is_nan());
    assert!(Bet { se: 0.1, ..bet }.ratio_interval(f64::NAN, 0.05).low.is_nan());
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

    /// The always-valid interval holds the estimate and the ordinary interval at the same level, and leaves out no change exactly
    /// if the e-value of the t test is at least 1/alpha.
    #[test]
    fn law_interval_is_the_e_value_read_backwards(
        theta in -1.0..1.0_f64, se in 1e-3..0.5_f64, df in 2.0..200.0_f64, part in 0.0..0.5_f64, alpha in 1e-4..0.2_f64,
    ) {
        let bet = Bet { theta, se, tail: F1Tail::new(df), part };
        let ln_p = F1Tail::new(df).ln_tail((theta / se).powi(2));
        let ln_e = ln_e_normalized(ln_p, se, part);
        let half = bet.half_width(alpha);
        prop_assert!(half >= t_quantile(1.0 - alpha, df) * se / (1.0 - part) * (1.0 - 1e-12));
        let interval = bet.ratio_interval(ln_e, alpha);
        let ordinary = interval_from_t(theta, se / (1.0 - part), t_quantile(1.0 - alpha, df));
        prop_assert!(interval.low <= ordinary.low * (1.0 + 1e-9) && interval.high >= ordinary.high * (1.0 - 1e-9));
        prop_assert!(interval.low < theta.exp() && interval.high > theta.exp());
        let excludes = interval.low >= 1.0 || interval.high <= 1.0;
        prop_assert_eq!(excludes, ln_e >= -alpha.ln());
        // without the row's word, the width alone says the same up to rounding
        prop_assert!((half <= theta.abs()) == excludes || (half / theta.abs() - 1.0).abs() < 1e-9, "{half} {theta}");
    }

    /// Where a row's p is not that of a t test, the interval still does not contradict its e-value.
    #[test]
    fn law_interval_agrees_with_the_row(theta in -1.0..1.0_f64, se in 1e-3..0.5_f64, df in 2.0..200.0_f64, ln_e in -3.0..8.0_f64) {
        let interval = Bet { theta, se, tail: F1Tail::new(df), part: 0.01 }.ratio_interval(ln_e, 0.05);
        prop_assert_eq!(interval.low >= 1.0 || interval.high <= 1.0, ln_e >= 20.0_f64.ln());
    }
}
