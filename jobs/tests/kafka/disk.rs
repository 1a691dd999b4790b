//! A disk that is full: a read to the end ends with a clear reason, a service waits for room, and nothing is lost.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{brokers, command, succeed, text};
use crate::results::of_folder;
use crate::service::{generate, stop, wait_for, watch};
use crate::status::{get, port_of};

/// Mounts a small disk at the first argument, runs the service until it fails, gives the disk room and copies it, as it is, to the
/// second.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size=200k tmpfs "$1" || exit 77
shift_to=$2
disk=$1
shift 2
"$@"
code=$?
cp -a "$disk/out" "$shift_to" || exit 78
exit $code
"#;

/// Mounts a small disk at the first argument, runs the service on it, and gives the disk room once there is a file with the name of the
/// third. Passes SIGTERM on, and copies the disk to the second argument once the service has ended.
const ON_A_DISK_THAT_GROWS: &str = r#"
mount -t tmpfs -o size=200k tmpfs "$1" || exit 77
disk=$1
shift_to=$2
room=$3
shift 3
"$@" &
service=$!
trap 'kill -TERM $service' TERM
while [ ! -e "$room" ]; do sleep 0.1; done
mount -o remount,size=64m tmpfs "$disk" || exit 79
wait $service
wait $service
code=$?
cp -a "$disk/out" "$shift_to" || exit 78
exit $code
"#;

/// Runs a program by a script, in a name space of its own, in which any user may mount.
fn by_script(script: &str, own: &[&Path], program: &Command) -> Command {
    let mut run = Command::new("unshare");
    run.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).args(own);
    run.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => run.env(name, value),
            None => run.env_remove(name),
        };
    }
    run
}

#[test]
fn a_full_disk_ends_a_read_to_the_end_with_a_reason_and_the_next_one_completes_its_tables() {
    let scratch = tempfile::tempdir().unwrap();
    let [disk, saved, whole] = ["disk", "saved", "whole"].map(|name| scratch.path().join(name));
    fs::create_dir(&disk).unwrap();
    generate("full-disk", "6m", "3");
    succeed(&watch("full-disk", &whole, &["--until-end"]));
    let output = disk.join("out");
    let program = command(&watch("full-disk", &output, &["--until-end"]));
    let ended = by_script(ON_A_SMALL_DISK, &[&disk, &saved], &program).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for part in ["cannot write", "No space left on device", "that has room left"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    assert!(saved.join("ledger").exists(), "it had written something");
    succeed(&watch("full-disk", &saved, &["--until-end"]));
    of_folder(&saved).assert_same(&of_folder(&whole), "after a full disk");
}

#[test]
fn a_service_waits_on_a_full_disk_and_goes_on_once_there_is_room() {
    let scratch = tempfile::tempdir().unwrap();
    let [disk, saved, whole, room, log] =
        ["disk", "saved", "whole", "room", "log"].map(|name| scratch.path().join(name));
    fs::create_dir(&disk).unwrap();
    generate("waits-for-room", "9m", "3");
    let reads =
        ["watch", "--brokers", brokers(), "--topic", "waits-for-room", "--format", "delta", "--alerts-topic", ""];
    let shape = ["--flush", "60s", "--window", "4m", "--idle-after", "0s", "--report-every", "2m", "--output"];
    let args = |output, more: &[&'static str]| [&reads[..], &shape, &[output], more].concat();
    succeed(&args(text(&whole), &["--until-end"]));

    let output = disk.join("out");
    let program = command(&args(text(&output), &["--checkpoint-every", "30s"]));
    let mut run = by_script(ON_A_DISK_THAT_GROWS, &[&disk, &saved, &room], &program);
    let service = run.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let port = port_of(&log);
    let ask = |path: &str| get(port, path).1;
    wait_for("a full disk", &log, || ask("/status").contains("\"condition\": \"sink_blocked\""));
    let status: serde_json::Value = serde_json::from_str(&ask("/status")).unwrap();
    assert!(status["reason"].as_str().unwrap().contains("No space left on device"), "{status:#}");
    assert!(!status["retrying"].as_array().unwrap().is_empty(), "{status:#}");
    wait_for("another attempt", &log, || {
        let metrics = ask("/metrics");
        let retries = metrics.lines().find_map(|line| line.strip_prefix("fleetdiff_output_retries_total "));
        retries.is_some_and(|retries| retries.parse::<u64>().unwrap() > 1)
    });
    assert_eq!(get(port, "/readyz").0, 503);
    assert_eq!(get(port, "/healthz").0, 200, "a restart would only wait again");

    fs::write(&room, []).unwrap();
    wait_for("the end of the topic", &log, || ask("/status").contains("\"condition\": \"caught_up\""));
    assert_eq!(stop(service, "TERM"), Some(0), "{}", fs::read_to_string(&log).unwrap());
    let said = fs::read_to_string(&log).unwrap();
    for part in ["No space left on device", "are tried again", "are written again", "nothing is lost"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    // It compares every file and alert that is there, and adds those of the last intervals.
    succeed(&args(text(&saved), &["--until-end"]));
    of_folder(&saved).assert_same(&of_folder(&whole), "after a wait for room");
}
