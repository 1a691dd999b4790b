//! The test of one cell, from counts to p and interval.

use fleetdiff_statistics::{Arms, Hops, Measure, Model, Side, Tests};
use serde_json::Value;

use crate::vectors::{ArmData, Compared, arms, cases, contrast, float, list};

const TOLERANCE: f64 = 1e-8;
/// Of what sums of squares and moments of logarithms go into.
const OF_SQUARES: f64 = 1e-7;

fn compare_pooled(compared: &mut Compared, tests: &Tests, expect: &Value, at: &str) {
    let spread = [tests.pooled.spread.head, tests.pooled.spread.base];
    for (side, tau2) in spread.into_iter().enumerate() {
        compared.relative_above(tau2, float(&expect["tau2"][side]), OF_SQUARES, 1e-9, &format!("{at} tau2 {side}"));
    }
    let groups = list(&expect["prior"]);
    compared.equal(&tests.pooled.priors.len(), &groups.len(), &format!("{at} groups"));
    let per_pod = tests.exposure() / (tests.size.head.pods + tests.size.base.pods);
    for (found, expected) in tests.pooled.priors.iter().zip(groups) {
        compared.relative(found.least_share * per_pod, float(&expected[0]), TOLERANCE, &format!("{at} lowest mean"));
        for (prior, expected) in [found.arms.head, found.arms.base].iter().zip(&list(expected)[1..]) {
            compared.relative_above(prior.df, float(&expected[0]), OF_SQUARES, 1e-9, &format!("{at} d0"));
            compared.relative(prior.dispersion, float(&expected[1]), OF_SQUARES, &format!("{at} s0"));
        }
    }
}

/// What a function shows in one arm, under the names of the file.
fn compare_arm(compared: &mut Compared, tests: &Tests, f: usize, side: Side, expect: &Value) {
    let arm = if side == Side::Head { "1" } else { "0" };
    let (level, shown) = (tests.levels[f].arms[side], tests.dispersion[side][f]);
    let want = |name: &str| float(&expect[format!("{name}{arm}")][f]);
    let exact = [("p", level.share), ("A", level.counting), ("B", level.between)];
    for (name, value) in exact {
        let tolerance = if name == "p" { TOLERANCE } else { OF_SQUARES };
        compared.relative_above(value, want(name), tolerance, 1e-25, &format!("{name}{arm} {f}"));
    }
    for (name, value) in [("s", shown.ratio), ("d", shown.df), ("phi", shown.phi)] {
        compared.relative_above(value, want(name), OF_SQUARES, 1e-14, &format!("{name}{arm} {f}"));
    }
}

fn compare_tests(compared: &mut Compared, tests: &Tests, f: usize, expect: &Value, at: &str) {
    let want = |name: &str| float(&expect[name][f]);
    let name = |name: &str| format!("{at} {name} {f}");
    let levels = tests.levels[f];
    compared.relative(levels.df, want("df"), OF_SQUARES, &name("df"));
    compared.relative_above(levels.theta(), want("theta"), TOLERANCE, 1e-13, &name("theta"));
    compared.relative(levels.variance(), want("v"), OF_SQUARES, &name("v"));
    compared.ln_p(levels.ln_p(1.0), want("p"), TOLERANCE, &name("p"));
    compared.ln_p(levels.ln_p(1.02), want("p_102"), TOLERANCE, &name("p at 1.02"));
    compared.ln_p(levels.tests().ln_p_min_effect(1.0, 0.01), want("p_delta"), TOLERANCE, &name("p of the band"));
    // The reference bounds the whole integrand by that of the smaller end, which is looser.
    let (least, exact, most) = (levels.deviance_at_least(1.0), levels.deviance(1.0), levels.deviance_at_most(1.0));
    assert!(most <= want("bound") * (1.0 + OF_SQUARES) + 1e-12, "{}: {most}", name("bound"));
    assert!(
        least <= exact * (1.0 + 1e-12) && exact <= most * (1.0 + 1e-12),
        "{}: {least} {exact} {most}",
        name("bounds")
    );
    let interval = levels.interval(libm::log(0.05));
    for (bound, value) in [("low", interval.low), ("high", interval.high)] {
        compared.absolute(value, want(bound), 1e-8, &name(bound));
    }
}

#[test]
fn published_tests() {
    let (mut pooled, mut shown, mut tested) = (
        Compared::new("what functions share"),
        Compared::new("levels and variances"),
        Compared::new("tests of a cell"),
    );
    let (mut cases_seen, mut strata_dropped) = (0, 0);
    for case in cases("test.json") {
        let (arms, expect, at) = (arms(&case), &case["expect"], case["name"].to_string());
        let model = if case["model"] == "rate" { Model::Rate } else { Model::Share };
        let fano: Option<Arms<Vec<f64>>> =
            case["use_fano"].as_bool().unwrap_or(false).then(|| arms.as_ref().map(ArmData::fano));
        for (side, found) in fano.iter().flat_map(Arms::both).enumerate() {
            for (f, &found) in found.iter().enumerate() {
                shown.relative(found, float(&expect["fano"][side][f]), TOLERANCE, &format!("{at} fano {f}"));
            }
        }
        let hops = fano.as_ref().map_or(Hops::Unknown, Hops::Factors);
        let tests = Tests::measure(&contrast(&arms), &Measure { hops, ..Measure::afresh(model) });
        compare_pooled(&mut pooled, &tests, expect, &at);
        for f in 0..tests.tested.len() {
            shown.equal(&Some(tests.tested[f]), &expect["tested"][f].as_bool(), &format!("{at} tested {f}"));
            if tests.tested[f] {
                shown.equal(&Some(tests.class[f]), &expect["cls"][f].as_u64().and_then(|c| c.try_into().ok()), &at);
                Side::BOTH.iter().for_each(|&side| compare_arm(&mut shown, &tests, f, side, expect));
                compare_tests(&mut tested, &tests, f, expect, &at);
            } else {
                assert!(tests.levels[f].df.is_nan() || tests.levels[f].df > 0.0, "{at} {f}");
            }
        }
        cases_seen += 1;
        strata_dropped += tests.strata_dropped;
    }
    assert!(cases_seen == 66 && strata_dropped > 0, "{cases_seen} cases, {strata_dropped} strata dropped");
    pooled.finish();
    shown.finish();
    tested.finish();
}
