//! A real server of Pyroscope, whose program the environment names in `FLEETDIFF_PYROSCOPE`.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::{Request, send};

/// Whose profiles they are.
pub const TENANT: &str = "shop-team";

/// One server with its own storage, which keeps tenants apart; ended when dropped.
pub struct Server {
    folder: TempDir,
    pub address: String,
    child: Child,
}

impl Server {
    /// The program that the environment names.
    pub fn program() -> Option<PathBuf> {
        std::env::var_os("FLEETDIFF_PYROSCOPE").map(PathBuf::from)
    }

    /// Starts one on ports of this machine alone, and waits until it is ready.
    pub fn start(program: &PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        for address in [
            "server.http-listen-address",
            "server.grpc-listen-address",
            "memberlist.bind-addr",
            "compactor.ring.instance-addr",
            "distributor.ring.instance-addr",
            "ingester.lifecycler.addr",
            "overrides-exporter.ring.instance-addr",
            "query-frontend.instance-addr",
            "query-scheduler.ring.instance-addr",
            "store-gateway.sharding-ring.instance-addr",
        ] {
            command.arg(format!("-{address}=127.0.0.1"));
        }
        command.args([
            &format!("-server.http-listen-port={port}"),
            "-server.grpc-listen-port=0",
            "-memberlist.bind-port=0",
            "-ingester.min-ready-duration=0s",
            "-self-profiling.disable-push=true",
            "-usage-stats.enabled=false",
            "-tracing.enabled=false",
            "-validation.reject-older-than=0",
            "-auth.multitenancy-enabled=true",
        ]);
        let (out, err) = (log.try_clone().unwrap(), log);
        // NB: releases of before Go 1.22 that are built by a later one register a path twice.
        let child = command.current_dir(folder.path()).env("GODEBUG", "httpmuxgo121=1").stdout(out).stderr(err).spawn();
        let server = Self { address: format!("127.0.0.1:{port}"), child: child.unwrap(), folder };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.status("/ready") != Some(200) {
            assert!(Instant::now() < deadline, "Pyroscope is not ready: {}", server.log());
            std::thread::sleep(Duration::from_millis(200));
        }
        server
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn status(&self, path: &str) -> Option<u16> {
        let request = Request { method: "GET", path, ..Request::default() };
        send(&self.address, &request).map(|answer| answer.status)
    }

    /// Has it store profiles.
    pub fn push(&self, profiles: &Value) {
        self.post("/push.v1.PusherService/Push", profiles);
    }

    /// Has it write what it holds in memory into a block, from which it then answers.
    pub fn flush(&self) {
        self.post("/ingester.v1.IngesterService/Flush", &json!({}));
    }

    fn post(&self, path: &str, asked: &Value) {
        let request = Request {
            method: "POST",
            path,
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("x-scope-orgid".to_owned(), TENANT.to_owned()),
            ],
            body: asked.to_string().into_bytes(),
        };
        let answer = send(&self.address, &request).unwrap();
        assert_eq!(answer.status, 200, "{}: {}", String::from_utf8_lossy(&answer.body), self.log());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
