//! Rows of a cell, and what is decided from them.
//!
//! The decision of a row belongs to the program, with its identities, reasons and sentences; what stands here is the published
//! order of its lines, to see that rows carry what each line asks for.

use fleetdiff_statistics::effect::{EQUIVALENCE_LEVEL, LnInterval};
use fleetdiff_statistics::families::{bh, selected, weighted, weights};
use fleetdiff_statistics::median::median;
use fleetdiff_statistics::normalization::Anchor;
use fleetdiff_statistics::one_pod::LeaveOneOut;
use fleetdiff_statistics::requests::{PerRequest, anchor};
use fleetdiff_statistics::{
    Arms, CellRows, Hops, MIN_EFFECT, Measure, Model, Scales, Support, Tests, rows_of_cell, support,
};
use serde_json::Value;

use crate::vectors::{ArmData, Compared, arms, cases, contrast, float, list};

const TOLERANCE: f64 = 1e-7;
const Q: f64 = 0.05;

/// All that is known of a cell.
struct Cell {
    rows: CellRows,
    one_pod: Vec<bool>,
    per_request: PerRequest,
    weights: Vec<f64>,
    q_values: Vec<f64>,
    compositional: Vec<f64>,
    support: Support,
}

impl Cell {
    fn of(arms: &Arms<ArmData>, anchor: Option<Anchor>) -> Self {
        let contrast = contrast(arms);
        let fano = arms.as_ref().map(ArmData::fano);
        let tests = Tests::measure(&contrast, &Measure { hops: Hops::Factors(&fano), ..Measure::afresh(Model::Share) });
        let scales = Scales::of(&tests, anchor);
        let rows = rows_of_cell(tests, scales, MIN_EFFECT);
        let left_out = LeaveOneOut::new(&contrast, Model::Share);
        let functions = 0..rows.tests.tested.len();
        let ln_scale = rows.scales.deciding.ln_scale;
        let one_pod = functions.clone().map(|f| left_out.one_pod(&rows.tests, f, ln_scale).is_some()).collect();
        let cost = |f: usize| if rows.ln_p_row[f].is_nan() { f64::NAN } else { rows.tests.share_of_cost(f) };
        let weights = weights(&functions.clone().map(cost).collect::<Vec<_>>());
        let q_values = bh(&weighted(&rows.ln_p_row, &weights));
        let df: Vec<f64> = functions.filter(|&f| rows.tests.tested[f]).map(|f| rows.tests.levels[f].df).collect();
        let pods = rows.tests.size.map(|arm| arm.pods);
        Self {
            one_pod,
            per_request: PerRequest::measure(&contrast),
            weights,
            q_values,
            compositional: bh(&rows.ln_p_comp),
            support: support(pods.head, pods.base, median(&df)),
            rows,
        }
    }

    fn theta_per_request(&self, f: usize) -> f64 {
        let tests = &self.per_request.functions;
        if tests.tested[f] { tests.levels[f].theta() } else { f64::NAN }
    }

    /// The published lines from the third on, for functions whose window q-value decides.
    fn verdict(&self, f: usize) -> [&'static str; 2] {
        let (tests, theta) = (&self.rows.tests, self.rows.theta[f]);
        let share = tests.levels[f].theta();
        if tests.count(f) >= tests.exposure() {
            return ["untestable", "whole_profile"];
        }
        if self.support == Support::Untestable {
            return ["untestable", "few_pods"];
        }
        if tests.count(f) < 30.0 {
            return ["too_rare", "count_needed"];
        }
        if selected(self.q_values[f], Q) && theta.abs() >= MIN_EFFECT {
            return self.decided(f);
        }
        let (rejected, scale) = (selected(self.compositional[f], Q), self.rows.scales.deciding.ln_scale);
        if self.rows.scales.ambiguous() && rejected {
            return ["inconclusive", "ambiguous_scale"];
        }
        if rejected && scale.abs() >= MIN_EFFECT && share * scale > 0.0 && theta.abs() < share.abs() {
            return ["compositional", ""];
        }
        let unchanged = tests.levels[f].is_equivalent(scale);
        if self.support == Support::Firm && unchanged { ["equivalent", ""] } else { ["inconclusive", "needs_pods"] }
    }

    fn decided(&self, f: usize) -> [&'static str; 2] {
        let (tests, theta) = (&self.rows.tests, self.rows.theta[f]);
        let per_request = self.per_request.ln_p(f) <= libm::log(Q) && self.theta_per_request(f) * theta > 0.0;
        if self.rows.contradicts[f] && !per_request {
            return ["inconclusive", "contradicts_share"];
        }
        if self.one_pod[f] {
            return ["some_pods_outlying", "one_pod"];
        }
        match (theta > 0.0, tests.counts.base[f] > 0.0, tests.counts.head[f] > 0.0) {
            (true, true, _) => ["regressed", ""],
            (true, false, _) => ["regressed", "only_in_head"],
            (false, _, true) => ["improved", ""],
            (false, _, false) => ["improved", "only_in_base"],
        }
    }
}

fn compare_row(compared: &mut Compared, cell: &Cell, f: usize, expect: &Value, at: &str) {
    let want = |name: &str| float(&expect[name][f]);
    let name = |name: &str| format!("{at} {name} {f}");
    let rows = &cell.rows;
    let p = [
        ("p_a", rows.ln_p[f]),
        ("p_delta", rows.ln_p_min_effect[f]),
        ("p_row", rows.ln_p_row[f]),
        ("p_s", rows.ln_p_share[f]),
        ("p_comp", rows.ln_p_comp[f]),
        ("per_request_p", cell.per_request.ln_p(f)),
    ];
    for (key, ln_p) in p {
        compared.ln_p(ln_p, want(key), TOLERANCE, &name(key));
    }
    for (key, value) in [("weight", cell.weights[f]), ("q_flat", cell.q_values[f])] {
        compared.relative_above(value, want(key), TOLERANCE, 1e-200, &name(key));
    }
    compared.absolute(rows.theta[f], want("theta"), 1e-8, &name("theta"));
    compared.absolute(cell.theta_per_request(f), want("per_request_theta"), 1e-8, &name("theta per request"));
    compared.relative_above(rows.ln_e[f], want("ln_e"), TOLERANCE, 1e-7, &name("ln e"));
    let LnInterval { low, high } = rows.interval(f, 0.95);
    let narrow = rows.interval(f, EQUIVALENCE_LEVEL);
    for (key, value) in [("low", low), ("high", high), ("low90", narrow.low), ("high90", narrow.high)] {
        if rows.tests.tested[f] {
            compared.absolute(value, want(key), 1e-8, &name(key));
        }
    }
    for (key, value) in [("contradicts", rows.contradicts[f]), ("one_pod", cell.one_pod[f])] {
        compared.equal(&Some(value), &expect[key][f].as_bool(), &name(key));
    }
}

#[test]
fn published_rows_of_cells() {
    let (mut rows, mut verdicts, mut all, mut scales) = (
        Compared::new("rows of cells"),
        Compared::new("verdicts"),
        Compared::new("all samples per request"),
        Compared::new("scales of cells"),
    );
    let mut seen = 0;
    for case in cases("cell.json") {
        let (arms, expect) = (arms(&case), &case["expect"]);
        let at = format!("{} anchor {}", case["name"], case["anchor"]);
        let given = case["anchor"].as_array().map(|anchor| Anchor { theta: float(&anchor[0]), se: float(&anchor[1]) });
        let cell = Cell::of(&arms, given);
        let found: Vec<f64> = cell.rows.scales.ln_scales().collect();
        scales.equal(&found.len(), &list(&expect["ln_scales"]).len(), &at);
        for (found, expected) in found.iter().zip(list(&expect["ln_scales"])) {
            scales.absolute(*found, float(expected), 1e-8, &at);
        }
        let row = &cell.per_request.all.levels[0];
        all.ln_p(row.ln_p(1.0), float(&expect["all_p"][0]), TOLERANCE, &at);
        all.absolute(row.theta(), float(&expect["all_theta"][0]), 1e-8, &at);
        all.relative(row.variance(), float(&expect["all_v"][0]), TOLERANCE, &at);
        all.relative(row.df, float(&expect["all_df"][0]), TOLERANCE, &at);
        if let (Some(given), Some(found)) = (given, anchor(&cell.per_request.all)) {
            all.relative(found.theta, given.theta, TOLERANCE, &at);
            all.relative(found.se, given.se, TOLERANCE, &at);
        }
        for f in 0..cell.one_pod.len() {
            compare_row(&mut rows, &cell, f, expect, &at);
            let expected = list(&expect["verdict"][f]).iter().filter_map(Value::as_str).collect::<Vec<_>>();
            verdicts.equal(&cell.verdict(f).to_vec(), &expected, &format!("{at} {f}"));
        }
        seen += 1;
    }
    assert_eq!(seen, 16);
    rows.finish();
    verdicts.finish();
    all.finish();
    scales.finish();
}
