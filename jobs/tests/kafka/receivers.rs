//! A service with receivers: what it has announced reaches them though they fail and it is stopped, and nothing twice.

use std::fs;
use std::path::{Path, PathBuf};

use crate::hook::{Act, Hook};
use crate::program::{start, succeed, text};
use crate::service::{generate, stop, wait_for, watch};

/// The incidents of a run, as lines of its file of alerts.
fn announced(output: &Path) -> Vec<String> {
    let lines = fs::read_to_string(output.join("alerts.jsonl")).unwrap_or_default();
    lines.lines().filter(|line| line.contains("dev.fleetdiff.incident.")).map(str::to_owned).collect()
}

/// A configuration in a folder, with a webhook as its receiver. Events may be of any age: what is generated happened long ago.
pub fn configured(folder: &Path, hook: &Hook) -> PathBuf {
    let (config, url) = (folder.join("fleetdiff.toml"), hook.url("/hunter2hunter2"));
    let receiver =
        format!("[[receivers]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{url}\"\nmaximum_age = \"0s\"\n");
    fs::write(&config, receiver).unwrap();
    config
}

/// What the webhook has accepted, in order.
pub fn accepted(hook: &Hook) -> Vec<String> {
    hook.requests().into_iter().filter(|request| request.accepted).map(|request| request.body).collect()
}

#[test]
fn a_service_that_is_stopped_and_started_again_sends_each_event_once() {
    let (scratch, hook) = (tempfile::tempdir().unwrap(), Hook::start(vec![Act::Answer(503, "busy"), Act::Close]));
    let (output, log) = (scratch.path().join("live"), scratch.path().join("log"));
    let config = configured(scratch.path(), &hook);
    let of_receiver = ["--config", text(&config)];

    generate("received", "5m", "3");
    let service = start(&watch("received", &output, &of_receiver), &log);
    wait_for("an incident", &log, || !announced(&output).is_empty());
    assert_eq!(stop(service, "TERM"), Some(0), "{}", fs::read_to_string(&log).unwrap());
    let before = accepted(&hook);
    assert_eq!(before, announced(&output), "what was announced is sent before the service ends");

    // Until the canary's pods are no longer young, when the incident is updated.
    generate("received", "14m", "3");
    succeed(&watch("received", &output, &[&of_receiver[..], &["--until-end", "--workers", "2"]].concat()));
    let after = accepted(&hook);
    assert_eq!(after, announced(&output), "each once, in the order of the file");
    assert!(after.len() > before.len(), "the second run has announced nothing: {after:?}");
    let printed = fs::read_to_string(&log).unwrap();
    assert!(!printed.contains("hunter"), "{printed}");
}
