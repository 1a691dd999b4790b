//! A topic with late and duplicate records: rows do not depend on which worker reads which partition, or when.

use crate::program::{brokers, succeed, text};
use crate::results::{Results, with_topic};

fn watched(topic: &str, workers: &str) -> Results {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    let alerts = format!("alerts-{topic}-{workers}");
    let to_topic = ["--brokers", brokers(), "--topic", topic, "--format", "delta", "--alerts-topic", &alerts];
    let watch = [
        "watch",
        "--until-end",
        "--output",
        text(&output),
        "--workers",
        workers,
        "--window",
        "4m",
        "--report-every",
        "2m",
    ];
    succeed(&[&watch[..], &to_topic].concat());
    with_topic(&output, &alerts)
}

#[test]
fn late_and_duplicate_records_give_equal_rows_for_any_number_of_workers() {
    let shape = ["--seed", "11", "--pods", "3:5", "--duration", "10m", "--factor", "1.6", "--restarts", "5"];
    let disorder = ["--late", "0.05", "--late-by", "7m", "--duplicates", "0.05"];
    for key in ["pod", "none"] {
        let topic = format!("unordered-{key}");
        let to_topic = ["generate", "--brokers", brokers(), "--topic", &topic, "--format", "delta", "--key", key];
        succeed(&[&to_topic[..], &shape, &disorder].concat());
        let one = watched(&topic, "1");
        for workers in ["2", "4"] {
            watched(&topic, workers).assert_same(&one, &format!("{topic} with {workers} workers"));
        }
        let sum =
            |column: fn(&fleetdiff_schemas::rows::LedgerRow) -> i64| one.tables.ledger.iter().map(column).sum::<i64>();
        assert!(one.sizes().iter().all(|&rows| rows > 0), "{:?}", one.sizes());
        assert!(
            sum(|row| row.samples_late_counted) > 0 && sum(|row| row.samples_late_dropped) > 0,
            "{topic}: some are late"
        );
        assert!(sum(|row| row.samples_duplicate) > 0, "{topic}: some come twice");
    }
}
