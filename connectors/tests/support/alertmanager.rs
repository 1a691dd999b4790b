//! A real Alertmanager for tests: Debian's package `prometheus-alertmanager`, on a free port of this machine.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Alertmanager notifies nobody in tests.
const CONFIGURATION: &str = "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n";

/// One server with its own storage; stopped when dropped.
pub struct Alertmanager {
    folder: TempDir,
    port: u16,
    child: Child,
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Alertmanager {
    /// Starts one and waits until it is ready.
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("alertmanager.yml"), CONFIGURATION).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = started(&folder, port);
        let server = Self { folder, port, child };
        server.wait_until_ready();
        server
    }

    /// Its address for a receiver.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Stops it; [`Self::restart`] starts it again.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it and starts it again with the same address and storage.
    pub fn restart(&mut self) {
        self.stop();
        self.child = started(&self.folder, self.port);
        self.wait_until_ready();
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.get("/-/ready").is_none_or(|(status, _)| status != 200) {
            assert!(Instant::now() < deadline, "Alertmanager is not ready: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The alerts that fire, as its API lists them.
    pub fn firing(&self) -> Vec<Value> {
        let (status, body) = self.get("/api/v2/alerts?active=true").unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Waits until the alerts that fire are as expected, and returns them.
    pub fn wait_until(&self, what: &str, is_expected: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(15);
        loop {
            let firing = self.firing();
            if is_expected(&firing) {
                return firing;
            }
            assert!(Instant::now() < deadline, "{what}: {firing:#?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// NB: HTTP 1.0, so that the body is what follows the headers.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        connection.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(connection, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut text = String::new();
        connection.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }
}

fn started(folder: &TempDir, port: u16) -> Child {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.path().join("log")).unwrap();
    Command::new("prometheus-alertmanager")
        .arg(format!("--config.file={}", path("alertmanager.yml")))
        .arg(format!("--storage.path={}", path("data")))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--cluster.listen-address=")
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("prometheus-alertmanager is missing: scripts/setup.sh installs it")
}
