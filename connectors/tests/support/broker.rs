//! A real Apache Kafka broker for tests: one JVM on free loopback ports, from the Maven artifacts that
//! `tests/kafka/pom.xml` pins, stopped when the test process ends, however it ends.
//!
//! Other crates' tests include it by `#[path = "../../connectors/tests/support/broker.rs"] mod broker;`.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fleetdiff_schemas::identity::stable_hash;
use tempfile::TempDir;

/// How long a broker may take to start: 2 s on an idle machine (measured), much more during a build.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// How many starts may fail because another process took a port between its choice and its use.
const ATTEMPTS: usize = 3;

/// A cluster's identity; any 16 bytes in URL-safe base64.
const CLUSTER_ID: &str = "ZmxlZXRkaWZmLXRlc3RzMQ";

/// The file of its log, in its folder.
const LOG: &str = "broker.log";

/// The line that a broker logs when it accepts requests.
const READY: &str = "Kafka Server started";

/// In the folder of a broker that is killed in order to be started again: whoever runs it keeps its data then.
const KEPT: &str = "kept";

/// A running broker. Dropping it stops the JVM and removes its data.
pub struct Broker {
    runner: Child,
    address: String,
    folder: TempDir,
}

/// The broker that all tests of one process share; started at the first call.
///
/// # Panics
/// If it does not start; the message says why and shows the broker's log.
pub fn shared() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(Broker::start)
}

impl Broker {
    /// Fetches the jars if necessary, and starts a broker with an empty log.
    ///
    /// # Panics
    /// If it does not start; the message says why and shows the broker's log.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// The same with more properties, which other brokers of its cluster have, too.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub fn start_with(properties: &str) -> Self {
        let jars = jars();
        let mut failure = String::new();
        for _ in 0..ATTEMPTS {
            match Self::attempt(&jars, properties) {
                Ok(broker) => return broker,
                Err(log) => failure = log,
            }
            if !failure.contains("Address already in use") {
                break;
            }
        }
        panic!("the Kafka broker did not start within {START_TIMEOUT:?}; its log ends:\n{failure}");
    }

    /// Where it listens, as `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Starts another broker of the same cluster, which the first one controls.
    ///
    /// # Panics
    /// If it does not start; the message says why and shows the broker's log.
    #[allow(dead_code, reason = "most tests need one broker")]
    pub fn another(&self, node: u32) -> Self {
        let first = fs::read_to_string(self.folder.path().join("server.properties")).expect("server.properties");
        let [port, _] = free_ports();
        let own = first.lines().map(|line| match line.split_once('=').unwrap_or((line, "")) {
            ("process.roles", _) => "process.roles=broker".to_owned(),
            ("node.id", _) => format!("node.id={node}"),
            (name @ ("listeners" | "advertised.listeners"), _) => format!("{name}=PLAINTEXT://127.0.0.1:{port}"),
            _ => line.to_owned(),
        });
        let own = own.collect::<Vec<_>>().join("\n");
        let configured = |folder: &Path| fs::write(folder.join("server.properties"), &own).expect("server.properties");
        Self::run(&jars(), port, "--no-initial-controllers", configured).unwrap_or_else(|log| {
            panic!("another Kafka broker did not start within {START_TIMEOUT:?}; its log ends:\n{log}")
        })
    }

    /// Sends a signal to the broker's process: STOP and CONT make a broker that hangs.
    ///
    /// # Panics
    /// If there is no such process.
    #[allow(dead_code, reason = "most tests need a broker that answers")]
    pub fn signal(&self, name: &str) {
        let folder = self.folder.path().canonicalize().expect("the broker's folder");
        let processes = fs::read_dir("/proc").expect("processes").filter_map(Result::ok).map(|entry| entry.path());
        let is_it = |process: &PathBuf| {
            let command = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
            command.starts_with("java\0") && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)
        };
        let found: Vec<PathBuf> = processes.filter(is_it).collect();
        let [process] = found.as_slice() else { panic!("one broker in {}: {found:?}", folder.display()) };
        let sent = Command::new("kill").args(["-s", name]).arg(process.file_name().expect("its number")).status();
        assert!(sent.expect("kill").success(), "{name} to {}", process.display());
    }

    /// Ends the broker's process at once, as a loss of power of its machine but for its disk. Its data stay for [`Self::restart`].
    ///
    /// # Panics
    /// If there is no such process.
    #[allow(dead_code, reason = "most tests need a broker that lives")]
    pub fn kill(&mut self) {
        fs::write(self.folder.path().join(KEPT), []).expect("the broker's folder");
        self.signal("KILL");
        self.runner.wait().expect("the runner ends with the broker");
    }

    /// Starts the broker that was killed, on its port and with its data.
    ///
    /// # Panics
    /// If it does not start; the message shows the broker's log.
    #[allow(dead_code, reason = "most tests need a broker that lives")]
    pub fn restart(&mut self) {
        fs::remove_file(self.folder.path().join(KEPT)).expect("a broker that was killed");
        let log = self.folder.path().join(LOG);
        fs::remove_file(&log).expect("its log");
        self.runner = spawn(&jars(), self.folder.path());
        if let Err(log) = wait_until_ready(&mut self.runner, &log) {
            panic!("the Kafka broker did not start again within {START_TIMEOUT:?}; its log ends:\n{log}");
        }
    }

    fn attempt(jars: &Path, properties: &str) -> Result<Self, String> {
        let [broker_port, controller_port] = free_ports();
        let ports = [broker_port, controller_port];
        Self::run(jars, broker_port, "--standalone", |folder| configure(folder, ports, properties))
    }

    fn run(jars: &Path, broker_port: u16, kind: &str, configure: impl FnOnce(&Path)) -> Result<Self, String> {
        let folder = TempDir::with_prefix("fleetdiff-kafka-").expect("a temporary folder");
        configure(folder.path());
        fs::copy(sources().join("log4j2.properties"), folder.path().join("log4j2.properties"))
            .expect("log4j2.properties");
        format_storage(jars, folder.path(), kind)?;
        let mut runner = spawn(jars, folder.path());
        let ready = wait_until_ready(&mut runner, &folder.path().join(LOG));
        let broker = Self { runner, address: format!("127.0.0.1:{broker_port}"), folder };
        ready.map(|()| broker)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The runner stops the broker when this end of its standard input closes.
        drop(self.runner.stdin.take());
        let _ = self.runner.wait();
    }
}

fn spawn(jars: &Path, folder: &Path) -> Child {
    let mut runner = Command::new("sh");
    runner
        .arg(sources().join("run-broker.sh"))
        // A broker lives for seconds: compiling its code well would take more of the processors than the code.
        .args(["java", "-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(["-Dlog4j2.configurationFile=log4j2.properties", "-cp"])
        .arg(class_path(jars))
        .args(["kafka.Kafka", "server.properties"])
        .env("BROKER_DIR", folder)
        .stdin(Stdio::piped());
    runner.spawn().expect("sh runs the broker")
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kafka")
}

fn class_path(jars: &Path) -> String {
    format!("{}/*", jars.display())
}

/// The folder of the broker's jars, filled by Maven once for each state of the pom.
fn jars() -> PathBuf {
    let pom = sources().join("pom.xml");
    let version = stable_hash(&fs::read(&pom).expect("tests/kafka/pom.xml"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let folder = target.join("kafka").join(format!("{version:016x}"));
    if !folder.is_dir() {
        // Filled in another folder and then renamed: two test processes may do this at once, and either may be killed.
        let aside = target.join("kafka").join(format!("{version:016x}-{}", std::process::id()));
        fetch_jars(&pom, &aside);
        if fs::rename(&aside, &folder).is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
    }
    assert!(folder.is_dir(), "the broker's jars could not be put into {}", folder.display());
    folder
}

fn fetch_jars(pom: &Path, into: &Path) {
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", "-f"])
        .arg(pom)
        .args(["dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", into.display()));
    run(&mut maven).unwrap_or_else(|failure| panic!("Maven could not fetch the broker's jars:\n{failure}"));
}

fn configure(folder: &Path, [broker_port, controller_port]: [u16; 2], more: &str) {
    let template = fs::read_to_string(sources().join("server.properties")).expect("tests/kafka/server.properties");
    let properties = template
        .replace("@BROKER_PORT@", &broker_port.to_string())
        .replace("@CONTROLLER_PORT@", &controller_port.to_string());
    fs::write(folder.join("server.properties"), format!("{properties}\n{more}")).expect("server.properties is written");
}

fn format_storage(jars: &Path, folder: &Path, kind: &str) -> Result<(), String> {
    let mut format = Command::new("java");
    format
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dloglevel=WARN"])
        .args(["-Dlog4j2.configurationFile=log4j2.properties", "-cp"])
        .arg(class_path(jars))
        .args(["kafka.tools.StorageTool", "format", kind, "-t", CLUSTER_ID, "-c", "server.properties"])
        .current_dir(folder);
    run(&mut format)
}

/// Runs a command to its end; its output is the error if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        format!("{program} cannot be run ({error}); `make test` installs it, or: apt-get install -y maven default-jre-headless")
    })?;
    let said = [output.stdout, output.stderr].concat();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) }
}

/// Ports on which no process listens now; all are held until all are known, so that they differ.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free loopback port"));
    listeners.map(|listener| listener.local_addr().expect("a bound port").port())
}

fn wait_until_ready(runner: &mut Child, log: &Path) -> Result<(), String> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let text = fs::read_to_string(log).unwrap_or_default();
        if text.contains(READY) {
            return Ok(());
        }
        let ended = runner.try_wait().expect("the runner can be asked").is_some();
        if ended || Instant::now() > deadline {
            let lines: Vec<&str> = text.lines().collect();
            return Err(lines[lines.len().saturating_sub(60)..].join("\n"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
