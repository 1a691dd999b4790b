//! The archive of a service that is killed and goes on, also with another number of processes.

use std::path::Path;

use fleetdiff_connectors::parquet::read_tables;

use crate::checkpoints::checkpoints;
use crate::company::Company;
use crate::program::{start, succeed, text};
use crate::service::{files_of, stop, wait_for};
use crate::shards::{publish, watch};
use crate::tree::tables_below;

#[test]
fn an_archive_is_that_of_an_undisturbed_run() {
    let scratch = tempfile::tempdir().unwrap();
    let [output, whole, log] = ["out", "whole", "log"].map(|name| scratch.path().join(name));
    let keep = ["--archive-keep", "24h"];
    publish("archived", &scratch.path().join("first"), 0, 300);
    let service = start(&watch("archived", &output, "archived-alerts", &keep), &log);
    wait_for("a checkpoint", &log, || !checkpoints(&output).is_empty());
    assert_eq!(stop(service, "KILL"), None);
    publish("archived", &scratch.path().join("second"), 300, 10_000);
    let args = watch("archived", &output, "archived-alerts", &keep);
    let mut company = Company::start(&log, (2, 1), |own, log, _| start(&[&args, own].concat(), log));
    company.wait(0, "the end of the topic", || files_of(&output, "ledger") >= 9);
    company.signal(0, "KILL");
    company.end(std::time::Duration::from_secs(5));
    assert!(company.log(0).contains("going on from the checkpoint of"), "{}", company.log(0));
    succeed(&watch("archived", &output, "archived-alerts", &[&keep[..], &["--until-end"]].concat()));
    succeed(&watch("archived", &whole, "archived-whole", &[&keep[..], &["--until-end", "--workers", "3"]].concat()));

    let [got, expected] = [&output, &whole].map(|folder| tables_below(&folder.join("archive")));
    assert!(expected.len() > 200, "{} files of {}", expected.len(), text(&whole));
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, bytes) in &expected {
        assert!(got[path] == *bytes, "{} has other bytes", path.display());
    }
    let counted =
        |folder: &Path| read_tables(folder).unwrap().ledger.iter().map(|row| row.samples_counted).sum::<i64>();
    assert_eq!(counted(&output), counted(&whole));
    let hops = expected.keys().filter(|path| path.starts_with("counts/level=00")).count();
    println!("{} files of {hops} hops, {} samples", expected.len(), counted(&whole));
}
