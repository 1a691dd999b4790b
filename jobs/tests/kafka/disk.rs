//! A disk that is full: a clear end, and nothing lost once there is room.

use std::fs;
use std::process::Command;

use crate::program::{command, succeed, text};
use crate::results::of_folder;
use crate::service::{generate, watch};

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

#[test]
fn a_full_disk_ends_the_service_with_a_reason_and_the_next_one_completes_its_tables() {
    let scratch = tempfile::tempdir().unwrap();
    let [disk, saved, whole] = ["disk", "saved", "whole"].map(|name| scratch.path().join(name));
    fs::create_dir(&disk).unwrap();
    generate("full-disk", "6m", "3");
    succeed(&watch("full-disk", &whole, &["--until-end"]));
    let output = disk.join("out");
    let program = command(&watch("full-disk", &output, &["--until-end"]));
    // A name space of its own, in which any user may mount.
    let mut small = Command::new("unshare");
    small.args(["--user", "--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", text(&disk), text(&saved)]);
    small.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => small.env(name, value),
            None => small.env_remove(name),
        };
    }
    let ended = small.output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for part in ["cannot write", "No space left on device", "that has room left"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    assert!(saved.join("ledger").exists(), "it had written something");
    succeed(&watch("full-disk", &saved, &["--until-end"]));
    of_folder(&saved).assert_same(&of_folder(&whole), "after a full disk");
}
