//! Changes of the configuration while the service runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::hook::Hook;
use crate::program::{command, succeed, text};
use crate::service::{generate, stop, wait_for, watch};
use crate::status::{get, port_of};

/// A folder as Kubernetes mounts a ConfigMap: a change exchanges a link.
struct Mounted {
    root: PathBuf,
    versions: usize,
}

impl Mounted {
    fn new(root: &Path, toml: &str) -> Self {
        let mut mounted = Self { root: root.to_owned(), versions: 0 };
        mounted.change(toml);
        symlink("..data/fleetdiff.toml", mounted.file()).unwrap();
        mounted
    }

    fn file(&self) -> PathBuf {
        self.root.join("fleetdiff.toml")
    }

    fn change(&mut self, toml: &str) {
        self.versions += 1;
        let version = format!("..{}", self.versions);
        fs::create_dir_all(self.root.join(&version)).unwrap();
        fs::write(self.root.join(&version).join("fleetdiff.toml"), toml).unwrap();
        symlink(&version, self.root.join("..new")).unwrap();
        fs::rename(self.root.join("..new"), self.root.join("..data")).unwrap();
    }
}

fn receiver(name: &str, hook: &Hook, rest: &str) -> String {
    let url = hook.url("/x");
    format!("[[receivers]]\nname = \"{name}\"\nkind = \"webhook\"\nurl = \"{url}\"\nmaximum_age = \"0s\"\n{rest}\n")
}

fn owned_by(owner: &str) -> String {
    format!("[alerts]\nowners = [\"* -> {owner}\"]\n")
}

fn announced(output: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(output.join("alerts.jsonl")).unwrap_or_default();
    let alerts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    alerts.filter(|alert| alert["type"].as_str().unwrap().contains(".incident.")).collect()
}

fn owners(alerts: &[Value]) -> Vec<&Value> {
    alerts.iter().map(|alert| &alert["data"]["owner"]).collect()
}

/// A service with its log, its port, and what it says to systemd.
struct Running {
    service: Child,
    log: PathBuf,
    port: u16,
    notified: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let (log, socket) = (folder.join("log"), folder.join("notify"));
        let notified = listen(&socket);
        let stderr = fs::File::create(&log).unwrap();
        let mut program = command(args);
        program.env("NOTIFY_SOCKET", &socket).stdout(Stdio::null()).stderr(stderr);
        let service = program.spawn().unwrap();
        let port = port_of(&log);
        Self { service, log, port, notified }
    }

    fn status(&self) -> Value {
        serde_json::from_str(&get(self.port, "/status").1).unwrap()
    }

    fn wait_for(&self, what: &str, holds: impl FnMut() -> bool) {
        wait_for(what, &self.log, holds);
    }

    fn hang_up(&self) {
        let sent = Command::new("kill").args(["-s", "HUP", &self.service.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// It ends, and has said to systemd what it did.
    fn end(self) {
        let said = self.said();
        assert_eq!(stop(self.service, "TERM"), Some(0), "{said}");
        let is_last = || self.notified.lock().unwrap().last().is_some_and(|line| line == "STOPPING=1");
        wait_for("the last words", &self.log, is_last);
        let notified = self.notified.lock().unwrap().clone();
        let of = |line: &str| notified.iter().filter(|said| *said == line).count();
        assert_eq!((notified.first().unwrap().as_str(), notified.last().unwrap().as_str()), ("READY=1", "STOPPING=1"));
        assert_eq!((of("READY=1"), of("RELOADING=1")), (4, 3), "{notified:?}");
        assert!(of("WATCHDOG=1") > 0, "{notified:?}");
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

/// What systemd hears, a line each, without how the service is.
fn listen(socket: &Path) -> Arc<Mutex<Vec<String>>> {
    let systemd = UnixDatagram::bind(socket).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let of_thread = Arc::clone(&heard);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length) = systemd.recv(&mut buffer) {
            let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with("STATUS=")).map(str::to_owned);
            of_thread.lock().unwrap().extend(lines);
        }
    });
    heard
}

#[test]
fn a_running_service_takes_what_it_can_as_a_whole_and_names_what_needs_a_restart() {
    let (scratch, first, second) = (tempfile::tempdir().unwrap(), Hook::start(Vec::new()), Hook::start(Vec::new()));
    let output = scratch.path().join("out");
    let toml = format!("{}{}", owned_by("team-a"), receiver("first", &first, ""));
    let mut mounted = Mounted::new(scratch.path(), &toml);
    let file = mounted.file();
    let config = ["--config", text(&file)];
    generate("reloaded", "5m", "3");
    let running = Running::start(scratch.path(), &watch("reloaded", &output, &config));
    running.wait_for("an incident", || !first.requests().is_empty());

    // What cannot be used changes nothing, not even the parts that could be used.
    mounted.change("[alerts]\nowners = [\"nonsense\"]\nlink = \"http://other\"\n");
    let metric = |line: &str| get(running.port, "/metrics").1.lines().any(|found| found == line);
    running.wait_for("a refusal", || metric("fleetdiff_configuration_reloads_total{result=\"failure\"} 1"));
    assert!(metric("fleetdiff_configuration_last_reload_successful 0"));
    let status = running.status();
    let error = status["configuration_reload"]["error"].as_str().unwrap();
    assert!(error.contains("alerts.owners: must be rules"), "{error}");
    assert_eq!(status["configuration"]["alerts"]["owners"], json!(["* -> team-a"]));
    assert_eq!(status["configuration"]["alerts"]["link"], "");
    assert!(running.said().contains("the service goes on with the configuration that it has"), "{}", running.said());

    // Another owner, another route, fewer lines of the log; q decides rows.
    let routes = [receiver("first", &first, "services = [\"nobody\"]"), receiver("second", &second, "")].concat();
    let toml = format!("[dataflow]\nq = 0.01\n[log]\nlevel = \"warn\"\n{}{routes}", owned_by("team-b"));
    mounted.change(&toml);
    running.wait_for("a reload", || metric("fleetdiff_configuration_reloads_total{result=\"success\"} 1"));
    let status = running.status();
    assert_eq!(status["configuration_reload"]["needs_restart"], json!(["dataflow.q"]));
    assert_eq!(status["configuration_reload"]["error"], Value::Null);
    assert_eq!(status["configuration"]["alerts"]["owners"], json!(["* -> team-b"]));
    assert_eq!(
        (&status["configuration"]["dataflow"]["q"], &status["configuration"]["log"]["level"]),
        (&json!(0.05), &json!("warn"))
    );
    assert_eq!(status["receivers"].as_array().unwrap().len(), 2);
    let said = running.said();
    assert!(
        said.contains("configuration reloaded: log.level, alerts.owners, receivers.first, receivers.second changed"),
        "{said}"
    );
    assert!(said.contains("dataflow.q has changed in the configuration and needs a restart"), "{said}");
    running.hang_up();
    running.wait_for("another reload", || metric("fleetdiff_configuration_reloads_total{result=\"success\"} 2"));

    let before = (announced(&output), first.requests().len());
    let talk = running.said().matches("INFO").count();
    generate("reloaded", "14m", "3");
    running.wait_for("an update", || !second.requests().is_empty());
    let after = announced(&output);
    assert_eq!(after[..before.0.len()], before.0);
    assert!(owners(&before.0).iter().all(|owner| **owner == "team-a"), "{before:?}");
    assert!(owners(&after[before.0.len()..]).iter().all(|owner| **owner == "team-b"), "{after:?}");
    assert_eq!(first.requests().len(), before.1, "it gets no service any more");
    assert_eq!(running.said().matches("INFO").count(), talk, "only warnings are logged: {}", running.said());

    running.end();

    // What was announced keeps its text, whatever is configured later.
    let ended = announced(&output);
    assert_eq!(ended[..after.len()], after);
    mounted.change(&owned_by("team-c"));
    succeed(&watch("reloaded", &output, &[&config[..], &["--until-end"]].concat()));
    let last = announced(&output);
    assert_eq!(last[..ended.len()], ended);
    assert!(owners(&last[ended.len()..]).iter().all(|owner| **owner == "team-c"), "{last:?}");
}
