//! Receivers of the whole program: one alert for one cause, which ends when the rules clear it.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::alertmanager::Alertmanager;
use crate::hook::Hook;
use crate::program::{run, run_with};

/// A fleet in which one function is 40 % more expensive in two cells of the canary.
fn fleet(folder: &Path) {
    let folder = folder.to_str().unwrap();
    let run = run(&["generate", "--output", folder, "--pods", "5:6", "--duration", "6m", "--factor", "1.4"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Removes the canary from a manifest, from the middle of the time on.
fn roll_back(folder: &Path) {
    let path = folder.join("manifest.jsonl");
    let lines: Vec<Value> =
        fs::read_to_string(&path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = |line: &Value| line["end_unix_nano"].as_u64().unwrap();
    let middle = lines.iter().map(end).min().unwrap().midpoint(lines.iter().map(end).max().unwrap());
    let builds: std::collections::BTreeSet<&str> = lines.iter().map(|line| line["build"].as_str().unwrap()).collect();
    let head = *builds.last().unwrap();
    let kept = lines.iter().filter(|line| line["build"] != head || end(line) < middle);
    fs::write(&path, kept.map(ToString::to_string).collect::<Vec<_>>().join("\n")).unwrap();
}

fn replay(fleet: &Path, output: &Path, more: &[&str]) -> crate::program::Run {
    let fleet = ["replay", fleet.to_str().unwrap(), "--output", output.to_str().unwrap()];
    let settings = ["--window", "1m", "--history", "0s", "--count-kind", "self"];
    run(&[&fleet[..], &settings, more].concat())
}

#[test]
fn a_replay_shows_one_alert_per_cause_and_ends_it_when_it_is_cleared() {
    let (server, hook, scratch) = (Alertmanager::start(), Hook::start(Vec::new()), TempDir::new().unwrap());
    let (recorded, config) = (scratch.path().join("fleet"), scratch.path().join("fleetdiff.toml"));
    fleet(&recorded);
    let toml = format!(
        "[[receivers]]\nname = \"oncall\"\nkind = \"alertmanager\"\nurl = \"{}\"\n[[receivers]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"\n",
        server.url(),
        hook.url("/hunter2hunter2"),
    );
    fs::write(&config, toml).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let unasked = replay(&recorded, &scratch.path().join("unasked"), &config);
    assert_eq!((unasked.code, server.firing().len(), hook.requests().len()), (0, 0, 0), "nobody is notified unasked");

    let with_receivers = [&config[..], &["--receivers"]].concat();
    let standing = replay(&recorded, &scratch.path().join("standing"), &with_receivers);
    assert_eq!(standing.code, 0, "{}", standing.stderr);
    let causes: Vec<Value> = server.firing().iter().map(|alert| alert["labels"]["cause"].clone()).collect();
    assert_eq!(causes, ["serialize_video_chunk"]);
    let alerts = fs::read_to_string(scratch.path().join("standing/alerts.jsonl")).unwrap();
    let announced: Vec<&str> = alerts.lines().filter(|line| line.contains("dev.fleetdiff.incident.")).collect();
    let sent: Vec<String> = hook.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(sent, announced, "the webhook gets the lines of the file, in order");

    roll_back(&recorded);
    let cleared = replay(&recorded, &scratch.path().join("cleared"), &with_receivers);
    assert_eq!(cleared.code, 0, "{}", cleared.stderr);
    assert_eq!(server.firing(), Vec::<Value>::new());
    let last = hook.requests().pop().unwrap().body;
    assert!(last.contains("dev.fleetdiff.incident.cleared.v1") && last.contains("comparison_closed"), "{last}");
}

#[test]
fn receivers_are_tested_by_name() {
    let (hook, scratch) = (Hook::start(Vec::new()), TempDir::new().unwrap());
    let config = scratch.path().join("fleetdiff.toml");
    let toml = format!(
        "[[receivers]]\nname = \"chat\"\nkind = \"slack\"\nurl = \"{}\"\n[[receivers]]\nname = \"gone\"\nkind = \"webhook\"\nurl = \"http://127.0.0.1:1/hunter2\"\n",
        hook.url("/hunter2hunter2"),
    );
    fs::write(&config, toml).unwrap();
    let test = |names: &[&str]| run(&[&["test-receivers", "--config", config.to_str().unwrap()], names].concat());
    let chat = test(&["chat"]);
    assert_eq!(chat.code, 0, "{}", chat.stderr);
    assert!(chat.stdout.starts_with("chat (slack at http://127.0.0.1:") && chat.stdout.ends_with(": accepted\n"));
    let both = test(&[]);
    assert_eq!(both.code, 1);
    assert!(both.stdout.contains("gone (webhook at http://127.0.0.1:1): failed: "), "{}", both.stdout);
    assert!(!format!("{}{}", both.stdout, both.stderr).contains("hunter"), "{}{}", both.stdout, both.stderr);
    let unknown = test(&["caht"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("chat, gone"), "{}", unknown.stderr);
}

/// A webhook over HTTPS, whose certificate only those trust who are told to.
struct Https {
    server: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: String,
}

impl Https {
    fn start() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tls");
        let mut server =
            Command::new("python3").arg(folder.join("server.py")).arg(&folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap();
        Self { server, lines, port }
    }

    fn certificate() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tls/localhost.pem")
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn https_needs_a_certificate_that_is_trusted() {
    let (mut hook, scratch) = (Https::start(), TempDir::new().unwrap());
    let config = scratch.path().join("fleetdiff.toml");
    let url = format!("https://127.0.0.1:{}/hunter2", hook.port);
    fs::write(&config, format!("[[receivers]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{url}\"\n")).unwrap();
    let test = ["test-receivers", "--config", config.to_str().unwrap()];
    let stranger = run(&test);
    assert_eq!(stranger.code, 1, "{}", stranger.stdout);
    assert!(stranger.stdout.contains("certificate"), "it says why: {}", stranger.stdout);
    let trusting = run_with(&test, &[("SSL_CERT_FILE", Https::certificate().to_str().unwrap())]);
    assert_eq!(trusting.code, 0, "{}{}", trusting.stdout, trusting.stderr);
    let body = hook.lines.next().unwrap().unwrap();
    assert!(body.contains("test"), "{body}");
}
