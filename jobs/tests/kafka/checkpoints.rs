//! A service that starts again goes on from its last checkpoint, and writes what it would have written had it never ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::alerts_once::delete_before;
use crate::program::{fail, run, start, succeed, text};
use crate::results::of_folder;
use crate::service::{decisions, files_of, generate, has_decided, run_anew, stop, wait_for, watch};

const OFTEN: [&str; 2] = ["--checkpoint-every", "30s"];

/// The complete checkpoints of an output, by time.
pub fn checkpoints(output: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(output.join("checkpoints")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "checkpoint")).collect();
    files.sort();
    files
}

pub fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}

/// Whether the service had a checkpoint to go on from and did.
pub fn has_gone_on(log: &Path) -> bool {
    read(log).contains("going on from the checkpoint of")
}

#[test]
fn a_service_that_is_killed_again_and_again_writes_the_rows_of_one_that_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("killed"), scratch.path().join("log"));
    let seed = 21;
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut gone_on = 0;
    for attempt in 0..9 {
        // What there is to read grows, so that some runs end at the end of the topic and some on their way there. A partition is
        // silent at first: that it is, and that it gives again, is decided by some run and known to the later ones.
        if attempt % 3 == 0 {
            let stage = attempt / 3;
            generate("checkpointed", ["4m", "9m", "14m"][stage], ["2", "3", "3"][stage]);
        }
        let workers = ["1", "2", "3"][attempt % 3];
        let before = checkpoints(&output);
        let service = start(&watch("checkpointed", &output, &[&OFTEN[..], &["--workers", workers]].concat()), &log);
        let awaited = if attempt % 3 == 2 { "reading topic" } else { "closed through" };
        wait_for(awaited, &log, || read(&log).contains(awaited) || checkpoints(&output) != before);
        std::thread::sleep(Duration::from_millis(draws.random_range(0..400)));
        stop(service, "KILL");
        assert_eq!(has_gone_on(&log), !before.is_empty(), "attempt {attempt}:\n{}", read(&log));
        gone_on += usize::from(!before.is_empty());
    }
    println!("seed {seed}: {gone_on} of 9 starts went on from a checkpoint");
    assert!(gone_on >= 5 && checkpoints(&output).len() == 2);
    let last = start(&watch("checkpointed", &output, &OFTEN), &log);
    wait_for("the end of the topic", &log, || files_of(&output, "ledger") >= 13);
    assert_eq!(stop(last, "TERM"), Some(0), "{}", read(&log));

    let whole = run_anew("checkpointed", &scratch.path().join("whole"), Some(&output), "2");
    // NB: this compares every file that the services wrote, and every alert.
    succeed(&watch("checkpointed", &output, &["--until-end"]));
    of_folder(&output).assert_same(&whole, "after 9 kills");
    assert!(has_decided(&output, "idle", 2) && has_decided(&output, "back", 2), "{:?}", decisions(&output));
    assert!(whole.sizes().iter().all(|size| *size > 0), "{:?}", whole.sizes());
}

#[test]
fn records_from_before_the_checkpoint_are_not_needed_any_more() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("forgetful"), scratch.path().join("log"));
    for topic in ["forgetful", "faithful"] {
        generate(topic, "6m", "3");
    }
    let service = start(&watch("forgetful", &output, &OFTEN), &log);
    wait_for("a checkpoint", &log, || !checkpoints(&output).is_empty());
    for topic in ["forgetful", "faithful"] {
        generate(topic, "9m", "3");
    }
    wait_for("checkpoints", &log, || checkpoints(&output).len() == 2 && files_of(&output, "ledger") >= 4);
    assert_eq!(stop(service, "TERM"), Some(0), "{}", read(&log));
    delete_before("forgetful", 3, 6);
    for topic in ["forgetful", "faithful"] {
        generate(topic, "12m", "3");
    }
    // Without its checkpoints it could not make its rows again.
    let copy = scratch.path().join("copy");
    assert!(std::process::Command::new("cp").args(["-r", text(&output), text(&copy)]).status().unwrap().success());
    fs::remove_dir_all(copy.join("checkpoints")).unwrap();
    let said = fail(1, &watch("forgetful", &copy, &["--workers", "1"]));
    assert!(said.contains("retention"), "{said}");

    let again = start(&watch("forgetful", &output, &[&OFTEN[..], &["--workers", "3"]].concat()), &log);
    wait_for("the rest", &log, || files_of(&output, "ledger") >= 11);
    assert_eq!(stop(again, "TERM"), Some(0), "{}", read(&log));
    assert!(has_gone_on(&log), "{}", read(&log));
    let whole = run_anew("faithful", &scratch.path().join("faithful"), None, "2").tables;
    let got = of_folder(&output).tables;
    let last = got.ledger.iter().map(|row| row.hop_at).max().unwrap();
    let expected: Vec<_> = whole.ledger.iter().filter(|row| row.hop_at <= last).collect();
    assert_eq!(got.ledger.iter().collect::<Vec<_>>(), expected);
    let reports: Vec<_> = whole.cells.iter().filter(|row| row.window_end_at <= last).collect();
    assert!(reports.len() > 100, "{} rows", reports.len());
    assert_eq!(got.cells.iter().filter(|row| row.window_end_at <= last).collect::<Vec<_>>(), reports);
}

#[test]
fn a_checkpoint_that_cannot_be_gone_on_from_is_refused_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("out"), scratch.path().join("log"));
    generate("refused-checkpoint", "6m", "3");
    let service = start(&watch("refused-checkpoint", &output, &OFTEN), &log);
    // NB: a service that catches up may pass many boundaries while it takes one checkpoint.
    wait_for("a checkpoint", &log, || !checkpoints(&output).is_empty());
    generate("refused-checkpoint", "9m", "3");
    wait_for("checkpoints", &log, || checkpoints(&output).len() == 2);
    assert_eq!(stop(service, "TERM"), Some(0), "{}", read(&log));

    let said = fail(1, &watch("refused-checkpoint", &output, &["--min-count", "31"]));
    for part in ["was made with other settings: dataflow.min_count was 30, now it is 31;", "choose an empty folder"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    let last = checkpoints(&output).pop().unwrap();
    let mut bytes = fs::read(&last).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&last, &bytes).unwrap();
    let said = fail(1, &watch("refused-checkpoint", &output, &[]));
    for part in [text(&last), "not those that were written", "remove this file"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    fs::remove_file(&last).unwrap();
    let again = start(&watch("refused-checkpoint", &output, &OFTEN), &log);
    wait_for("going on", &log, || has_gone_on(&log));
    assert_eq!(stop(again, "TERM"), Some(0), "{}", read(&log));
    assert!(run(&watch("refused-checkpoint", &output, &["--until-end"])).status.success());
}
