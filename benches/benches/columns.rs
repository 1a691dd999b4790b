//! What each column of `cells` costs: measures the statistics behind it, one after the other, on one cell of the medium
//! size.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench columns -- [--quick]`; see README.md of this folder.

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::cell::OneCell;
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_benches::workload::Mix;
use fleetdiff_pipeline::evidence::arms::CellArms;
use fleetdiff_pipeline::evidence::family::Family;
use fleetdiff_pipeline::evidence::look::{LookMemory, look};
use fleetdiff_pipeline::evidence::pods::WindowPods;
use fleetdiff_pipeline::evidence::report::report;
use fleetdiff_pipeline::evidence::snapshot::Snapshot;
use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_statistics::effect::LnInterval;
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::one_pod::{LeaveOneOut, OnePod};
use fleetdiff_statistics::outliers::{Settings, outliers};
use fleetdiff_statistics::power::{Design, detection_z, samples_by_rule};
use fleetdiff_statistics::rare::{RareArm, ln_p_rare};
use fleetdiff_statistics::requests::{PerRequest, all_samples, anchor};
use fleetdiff_statistics::tails::ln_chi1_tail;
use fleetdiff_statistics::{CellRows, Contrast, MIN_COUNT, Measure, Model, Scales, Tests, rows_of_cell};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Requests for a thousand samples.
const REQUESTS: u64 = 500;

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick"]) else { return ExitCode::from(2) };
    let times = if asked.has("--quick") { 5 } else { 21 };
    for (mix, what) in [
        (Mix::CanaryInEveryCell, "2 of 19 pods are the head's, 1 stratum"),
        (Mix::Half, "half of 19 pods are the head's, 2 strata"),
    ] {
        measure(mix, what, times);
    }
    ExitCode::SUCCESS
}

/// One line for each group of columns, self counts of the window.
fn measure(mix: Mix, what: &str, times: u32) {
    let cell = OneCell::after(0, mix, REQUESTS);
    let (view, kind) = (cell.view(), CountKind::SelfCount);
    let arms = CellArms::of(&cell.counts, Scope::Window, &cell.comparison);
    let contrast = || arms.contrast(kind, [None; 2]);
    let afresh = Measure { min_count: view.min_count, ..Measure::afresh(Model::Share) };
    let tests = Tests::measure(&contrast(), &afresh);
    let per_request = anchor(&all_samples(&contrast()));
    let rows = rows_of_cell(tests.clone(), Scales::of(&tests, per_request), view.min_effect);
    let pods = WindowPods::of(&cell.counts, &cell.comparison.id);
    let functions = cell.counts.functions().len();
    say(&format!(
        "one cell of medium, {what}: {functions} functions, {} tested; median [quartiles] of {times}, ms",
        tests.tests
    ));
    let line = |columns: &str, run: &mut dyn FnMut()| timed(columns, times, run);
    line("g, ln_p_iid", &mut || drop(black_box(independent(&rows))));
    line("dispersions, df (counts read, variances moderated)", &mut || {
        drop(black_box(Tests::measure(&contrast(), &afresh)))
    });
    line("the same with what functions share held from an earlier look", &mut || {
        drop(black_box(Tests::measure(&contrast(), &Measure { held: Some(&tests.pooled), ..afresh })))
    });
    line("normalization_factor, admissible_factors", &mut || drop(black_box(Scales::of(&tests, per_request))));
    line("ln_p, statistic, adjusted_ln_p, ln_p_min_effect, ln_p_row, ln_e", &mut || {
        drop(black_box(rows_of_cell(tests.clone(), rows.scales.clone(), view.min_effect)))
    });
    line("ratio, adjusted_ratio", &mut || drop(black_box(intervals(&rows))));
    line("always_valid_ratio", &mut || drop(black_box(always_valid(&rows))));
    line("minimum_detectable_ratio, seconds_to_significance, pods_needed, samples_needed_iid", &mut || {
        drop(black_box(power(&rows)))
    });
    line("per_request_ratio, per_request_ln_p and the row (all)", &mut || {
        drop(black_box(PerRequest::measure(&contrast())))
    });
    line("one_pod: buckets left out one by one", &mut || drop(black_box(made_by_one_pod(&rows, &contrast()))));
    line("rare_ln_p", &mut || drop(black_box(rare(&rows, &pods))));
    line("samples by pod, from the ring", &mut || drop(black_box(WindowPods::of(&cell.counts, &cell.comparison.id))));
    line("outlier_ln_p, outlying_pods", &mut || {
        let (head, base) = (pods.rows(Side::Head, kind), pods.rows(Side::Base, kind));
        drop(black_box(outliers(functions, &head, &base, &Settings::default())))
    });
    line("counts for the rows over several cells and the A/A check", &mut || {
        drop(black_box(Snapshot::of(cell.counts.functions(), &arms)))
    });
    measure_whole(&cell, times);
}

/// One line for each report, and two for looks.
fn measure_whole(cell: &OneCell, times: u32) {
    let (view, time) = (cell.view(), cell.time_of_look());
    let memory = || {
        let mut memory = LookMemory::default();
        memory.families.resize_with(CountKind::ALL.len(), Family::default);
        memory
    };
    for (what, scope, kinds) in [
        ("a report of self counts, window", Scope::Window, &CountKind::ALL[..1]),
        ("a report of self and total counts, window", Scope::Window, &CountKind::ALL[..]),
        ("a report of self and total counts, epoch", Scope::Epoch, &CountKind::ALL[..]),
    ] {
        timed(what, times, &mut || drop(black_box(report(&view, scope, kinds, &memory()))));
    }
    timed("a look at self and total counts, measured afresh", times, &mut || {
        drop(black_box(look(&view, time, &CountKind::ALL, &mut memory())))
    });
    let mut held = memory();
    drop(look(&view, time, &CountKind::ALL, &mut held));
    timed("a look at self and total counts, with what is held", times, &mut || {
        drop(black_box(look(&view, time, &CountKind::ALL, &mut held)))
    });
}

fn timed(columns: &str, times: u32, run: &mut dyn FnMut()) {
    let each = (0..times).map(|_| {
        let start = Instant::now();
        run();
        milliseconds(start)
    });
    let spread = Spread::of(each.collect());
    say(&format!("  {columns:<84}{:>20}", spread.to_string()));
}

fn tested(rows: &CellRows) -> impl Iterator<Item = usize> {
    (0..rows.theta.len()).filter(|&place| rows.tests.tested[place])
}

fn independent(rows: &CellRows) -> Vec<f64> {
    let (counts, size) = (&rows.tests.counts, &rows.tests.size);
    let [n_head, n_base] = [size.head.exposure, size.base.exposure].map(number::whole);
    let g = |place: usize| g_2x2(number::whole(counts.head[place]), n_head, number::whole(counts.base[place]), n_base);
    (0..rows.theta.len()).map(g).map(ln_chi1_tail).collect()
}

fn intervals(rows: &CellRows) -> Vec<LnInterval> {
    tested(rows).map(|place| rows.interval(place, 0.95)).collect()
}

fn always_valid(rows: &CellRows) -> Vec<LnInterval> {
    tested(rows).map(|place| rows.against_scales(place).always_valid_interval(0.05)).collect()
}

fn made_by_one_pod(rows: &CellRows, contrast: &Contrast<'_>) -> Vec<Option<OnePod>> {
    let (left_out, ln_scale) = (LeaveOneOut::new(contrast, Model::Share), rows.scales.deciding.ln_scale);
    tested(rows).map(|place| left_out.one_pod(&rows.tests, place, ln_scale)).collect()
}

fn power(rows: &CellRows) -> Vec<(f64, f64, Option<u32>, f64)> {
    let (tests, pods) = (&rows.tests, rows.tests.size.map(|arm| arm.pods));
    let samples_per_pod = tests.exposure() / (pods.head + pods.base);
    let z = detection_z(1e-4, 0.8);
    let row = |place: usize| {
        let design = Design { z, pods, share: tests.share_of_cost(place), tau2: tests.pooled.spread };
        let seconds = design.seconds_to_detect(samples_per_pod / 1800.0, 1.05);
        let pods = seconds.is_infinite().then(|| design.pods_needed(samples_per_pod / 1800.0, 1.05, 1800.0)).flatten();
        (design.mde(samples_per_pod), seconds, pods, samples_by_rule(design.share, 0.05))
    };
    tested(rows).map(row).collect()
}

/// Functions under the floor; without any the line costs nothing.
fn rare(rows: &CellRows, pods: &WindowPods) -> Vec<f64> {
    let tests = &rows.tests;
    let showing = [Side::Head, Side::Base].map(|side| pods.showing(side, CountKind::SelfCount));
    let number = |side| u64::try_from(pods.len(side)).unwrap_or(0);
    let arm = |side, count: f64, total: f64, showing: &[u64], f: usize| RareArm {
        count: number::whole(count),
        total: number::whole(total),
        showing: showing.get(f).copied().unwrap_or(0),
        pods: number(side),
    };
    let ln_p = |f: usize| {
        ln_p_rare(
            arm(Side::Head, tests.counts.head[f], tests.size.head.exposure, &showing[0], f),
            arm(Side::Base, tests.counts.base[f], tests.size.base.exposure, &showing[1], f),
        )
    };
    let under = (0..rows.theta.len()).filter(|&f| tests.count(f) < MIN_COUNT && tests.count(f) > 0.0);
    under.map(ln_p).collect()
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
