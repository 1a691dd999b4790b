//! What was kept of a build is dropped once others have replaced it for the retention, and not before.

use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::rows::CellRow;
use fleetdiff_schemas::time::Nanos;

use super::{agreed, builder, config};

/// Builds that replace each other, `PHASE` each, as one stream of records.
fn replaced(seed: u64, builds: &[&str]) -> Vec<Vec<Decoded>> {
    let mut partitions = vec![Vec::new(); 2];
    for (phase, pair) in (0..).zip(builds.windows(2)) {
        let fleet = builder(seed)
            .builds(pair[0], pair[1])
            .pods_per_cell(0, 5)
            .samples_per_second(60.0)
            .starts_at(Nanos::from_seconds(1_799_992_900 + 700 * phase))
            .lasts(Nanos::from_seconds(700))
            .rollout(Nanos::from_seconds(200), Nanos::from_seconds(100))
            .partition_count(2)
            .build();
        partitions.iter_mut().zip(fleet.partitions(2)).for_each(|(all, records)| all.extend(records));
    }
    partitions
}

#[test]
fn oracle_forgotten_builds() {
    let seed = 731;
    // Back to the first build, of which history is kept, and on to another.
    let partitions = replaced(seed, &["a", "b", "c", "a", "d"]);
    let run = |retention| {
        let limits = Limits { retention: Nanos::from_seconds(retention), ..Limits::default() };
        let window = Nanos::from_seconds(150);
        let (history_every, young) = (Nanos::from_seconds(20), Nanos(0));
        let config = Config { window, history_every, young, limits, ..config() };
        let tables = agreed(seed, &config, &partitions);
        // Where base and head do not run side by side, the base is history.
        let is_asked =
            |row: &&CellRow| row.comparison.base_build.as_str() == "a" && row.comparison.head_build.as_str() == "d";
        let rows: Vec<&CellRow> = tables.cells.iter().filter(is_asked).collect();
        let last = rows.iter().map(|row| row.window_end_at).max().unwrap();
        rows.iter().filter(|row| row.window_end_at == last).map(|row| row.base.total).sum::<i64>()
    };
    let (forgotten, kept) = (run(10), run(3_600));
    assert!(
        0 < forgotten && forgotten < kept,
        "seed {seed}: {forgotten} samples of the base, {kept} if none are forgotten"
    );
}
