//! Processes of one service, as tests start them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::service::wait_for;

/// Addresses at which nobody listens.
pub fn free_hosts(count: usize) -> String {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap().to_string());
    addresses.collect::<Vec<_>>().join(",")
}

/// Flags of one process.
pub struct OwnFlags([String; 8]);

impl OwnFlags {
    pub fn each(&self) -> [&str; 8] {
        self.0.each_ref().map(String::as_str)
    }
}

/// Processes of one service, with their logs.
pub struct Company(pub Vec<(Child, PathBuf)>);

impl Company {
    /// Starts so many processes with so many workers each. Each is started with its own flags and its log, by its number.
    pub fn start(
        logs: &Path,
        (processes, workers): (usize, usize),
        start: impl Fn(&[&str], &Path, usize) -> Child,
    ) -> Self {
        let hosts = free_hosts(processes);
        let one = |process: usize| {
            let log = logs.with_extension(format!("{process}.log"));
            (start(&Self::flags(process, workers, &hosts).each(), &log, process), log)
        };
        Self((0..processes).map(one).collect())
    }

    /// The flags of one of them.
    pub fn flags(process: usize, workers: usize, hosts: &str) -> OwnFlags {
        let [process, workers] = [process, workers].map(|number| number.to_string());
        let processes = hosts.split(',').count().to_string();
        let names = ["--processes", "--process", "--hosts", "--workers"].map(str::to_owned);
        let [of_processes, of_process, of_hosts, of_workers] = names;
        OwnFlags([of_processes, processes, of_process, process, of_hosts, hosts.to_owned(), of_workers, workers])
    }

    pub fn log(&self, process: usize) -> String {
        std::fs::read_to_string(&self.0[process].1).unwrap_or_default()
    }

    /// The logs of all.
    pub fn logs(&self) -> String {
        (0..self.0.len()).map(|process| format!("process {process}:\n{}", self.log(process))).collect()
    }

    pub fn wait(&self, process: usize, what: &str, holds: impl FnMut() -> bool) {
        wait_for(what, &self.0[process].1, holds);
    }

    pub fn signal(&self, process: usize, signal: &str) {
        let id = self.0[process].0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    /// Waits until all end, and gives their exit codes.
    pub fn end(&mut self, within: Duration) -> Vec<Option<i32>> {
        let deadline = Instant::now() + within;
        while self.0.iter_mut().any(|(process, _)| process.try_wait().unwrap().is_none()) {
            assert!(Instant::now() < deadline, "a process goes on after {within:?}; the logs:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.0.iter_mut().map(|(process, _)| process.wait().unwrap().code()).collect()
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        for (process, _) in &mut self.0 {
            // It has ended, unless the test has failed.
            drop(process.kill());
            drop(process.wait());
        }
    }
}
