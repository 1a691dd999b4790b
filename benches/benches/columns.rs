//! What each column of `cells` costs: measures the statistics behind it, one after the other, on one cell of the medium
//! size.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench columns -- [--quick]`; see README.md of this folder.

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use fleetdiff_benches::cell::OneCell;
use fleetdiff_benches::spread::{Spread, milliseconds};
use fleetdiff_benches::workload::Mix;
use fleetdiff_pipeline::evidence::arms::CellArms;
use fleetdiff_pipeline::evidence::closed::ClosedStrata;
use fleetdiff_pipeline::evidence::family::Family;
use fleetdiff_pipeline::evidence::look::{LookAt, look};
use fleetdiff_pipeline::evidence::pods::WindowPods;
use fleetdiff_pipeline::evidence::report::report;
use fleetdiff_pipeline::evidence::snapshot::Snapshot;
use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::number;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::verdict::Scope;
use fleetdiff_statistics::always_valid::Bet;
use fleetdiff_statistics::g::g_2x2;
use fleetdiff_statistics::outliers::{Settings, outliers};
use fleetdiff_statistics::power::{Design, detection_z, samples_by_rule};
use fleetdiff_statistics::rare::{RareArm, ln_p_rare};
use fleetdiff_statistics::requests::PerRequest;
use fleetdiff_statistics::rows::rows_of;
use fleetdiff_statistics::tails::{F1Tail, ln_chi1_tail};
use fleetdiff_statistics::{CellRows, MIN_COUNT, Model, Moments};

/// Requests for a thousand samples.
const REQUESTS: u64 = 500;

fn main() -> ExitCode {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let known = ["--bench", "--quick"];
    if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
        let _ = writeln!(std::io::stderr(), "unknown option {unknown}; there is {}", known[1..].join(", "));
        return ExitCode::from(2);
    }
    let times = if options.iter().any(|option| option == "--quick") { 5 } else { 21 };
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
    let moments = Moments::measure(&arms.contrast(kind, None), Model::Share, MIN_COUNT);
    let rows = rows_of(moments.clone(), None, view.min_effect);
    let pods = WindowPods::of(&cell.counts, &cell.comparison.id);
    let (tested, functions) = (rows.moments.tests, cell.counts.functions().len());
    say(&format!(
        "one cell of medium, {what}: {functions} functions, {tested} tested; median [quartiles] of {times}, ms"
    ));
    let line = |columns: &str, run: &dyn Fn()| {
        let each = (0..times).map(|_| {
            let start = Instant::now();
            run();
            milliseconds(start)
        });
        say(&format!("  {columns:<84}{:>20}", Spread::of(each.collect()).to_string()));
    };
    line("g, ln_p_iid", &|| drop(black_box(independent(&rows))));
    line("dispersion, df, ratio (counts read, dispersion moderated)", &|| {
        drop(black_box(Moments::measure(&arms.contrast(kind, None), Model::Share, MIN_COUNT)))
    });
    line("ln_p, f, adjusted_ln_p, ln_p_delta, ln_e and what is compositional", &|| {
        drop(black_box(rows_of(moments.clone(), None, view.min_effect)))
    });
    line("always_valid_ratio", &|| drop(black_box(always_valid(&rows))));
    line("minimum_detectable_ratio, seconds_to_significance, pods_needed, samples_needed_iid", &|| {
        drop(black_box(power(&rows)))
    });
    line("per_request_ratio, per_request_ln_p and the row (all)", &|| {
        drop(black_box(arms.served(kind, None).map(|served| PerRequest::measure(&served))))
    });
    line("rare_ln_p", &|| drop(black_box(rare(&rows, &pods))));
    line("samples by pod, from the ring", &|| drop(black_box(WindowPods::of(&cell.counts, &cell.comparison.id))));
    line("outlier_ln_p, outlying_pods", &|| {
        drop(black_box(outliers(
            functions,
            &pods.rows(Side::Head, kind),
            &pods.rows(Side::Base, kind),
            &Settings::default(),
        )))
    });
    line("counts for the rows over several cells and the A/A check", &|| {
        drop(black_box(Snapshot::of(cell.counts.functions(), &arms)))
    });
    let closed = ClosedStrata::default();
    let families = [Family::default(), Family::default()];
    let whole =
        |scope, kinds: &[CountKind]| drop(black_box(report(&view, &cell.comparison, scope, kinds, &families, &closed)));
    line("a report of self counts, window", &|| whole(Scope::Window, &[kind]));
    line("a report of self and total counts, window", &|| whole(Scope::Window, &CountKind::ALL));
    line("a report of self and total counts, epoch", &|| whole(Scope::Epoch, &CountKind::ALL));
    line("a look at self and total counts", &|| {
        let mut families = [Family::default(), Family::default()];
        drop(black_box(look(
            &LookAt { view: &view, comparison: &cell.comparison, closed: &closed },
            &CountKind::ALL,
            &mut families,
        )));
    });
}

fn tested(rows: &CellRows) -> impl Iterator<Item = usize> {
    (0..rows.moments.a.len()).filter(|&f| rows.moments.tested[f])
}

fn independent(rows: &CellRows) -> Vec<f64> {
    let Moments { a, b, n_head, n_base, .. } = &rows.moments;
    let g = |f: usize| g_2x2(number::whole(a[f]), number::whole(*n_head), number::whole(b[f]), number::whole(*n_base));
    (0..a.len()).map(g).map(ln_chi1_tail).collect()
}

fn always_valid(rows: &CellRows) -> Vec<f64> {
    let tail = F1Tail::new(rows.moments.df_total);
    let bet = |f: usize| Bet { theta: rows.adjusted.theta[f], se: rows.share.se[f], tail, part: rows.moments.part(f) };
    tested(rows).map(|f| bet(f).ratio_interval(rows.ln_e[f], 0.05).low).collect()
}

fn power(rows: &CellRows) -> Vec<(f64, f64, Option<u32>, f64)> {
    let moments = &rows.moments;
    let samples_per_pod = (moments.n_head + moments.n_base) / (moments.k_head + moments.k_base);
    let z = detection_z(1e-4, 0.8);
    let row = |f: usize| {
        let design = Design {
            z,
            head_pods: moments.k_head,
            base_pods: moments.k_base,
            share: moments.part(f),
            tau2: moments.tau2,
        };
        let seconds = design.seconds_to_detect(samples_per_pod / 1800.0, 1.05);
        let pods = seconds.is_infinite().then(|| design.pods_needed(samples_per_pod / 1800.0, 1.05, 1800.0)).flatten();
        (design.mde(samples_per_pod), seconds, pods, samples_by_rule(design.share, 0.05))
    };
    tested(rows).map(row).collect()
}

/// Functions under the floor; without any the line costs nothing.
fn rare(rows: &CellRows, pods: &WindowPods) -> Vec<f64> {
    let Moments { a, b, n_head, n_base, .. } = &rows.moments;
    let showing = [Side::Head, Side::Base].map(|side| pods.showing(side, CountKind::SelfCount));
    let number = |side| u64::try_from(pods.len(side)).unwrap_or(0);
    let arm = |side, count: f64, total: f64, showing: &[u64], f: usize| RareArm {
        count: number::whole(count),
        total: number::whole(total),
        showing: showing.get(f).copied().unwrap_or(0),
        pods: number(side),
    };
    let under = (0..a.len()).filter(|&f| a[f] + b[f] < MIN_COUNT && a[f] + b[f] > 0.0);
    under
        .map(|f| {
            ln_p_rare(arm(Side::Head, a[f], *n_head, &showing[0], f), arm(Side::Base, b[f], *n_base, &showing[1], f))
        })
        .collect()
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
