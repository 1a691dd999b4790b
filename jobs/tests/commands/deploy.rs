//! The files of `deploy` as the programs that use them read them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

use super::program::run;
use super::served::GO;
use super::tools::must;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

/// The folder of the program that checks charts, manifests and dashboards, and of values for the chart.
fn checks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/deploy")
}

/// That program, built by Go, which is installed into the build folder if the system's is missing or too old.
static CHECK: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check-deploy");
    // Not optimised: it runs for seconds, and Helm and Kubernetes are a lot to compile.
    let build = ["build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o"];
    must(Command::new(&*GO).args(build).arg(&program).arg(".").current_dir(checks()));
    program
});

fn check(command: &str, files: &[&Path]) -> Output {
    Command::new(&*CHECK).arg(command).args(files).output().unwrap()
}

fn passes(command: &str, files: &[&Path]) -> String {
    must(Command::new(&*CHECK).arg(command).args(files))
}

/// The manifests of the chart, in a file.
fn rendered(folder: &TempDir, values: Option<&Path>) -> PathBuf {
    let chart = deploy().join("helm/fleetdiff");
    let file = folder.path().join("rendered.yaml");
    let files: Vec<&Path> = [Some(&*chart), values].into_iter().flatten().collect();
    std::fs::write(&file, passes("template", &files)).unwrap();
    file
}

/// Each alert fires where its case says so, and none for a service that works.
#[test]
fn promtool_takes_the_rules_and_every_case_of_theirs_holds() {
    for args in [["check", "rules", "fleetdiff.rules.yml"], ["test", "rules", "fleetdiff.test.yml"]] {
        must(Command::new("promtool").args(args).current_dir(deploy().join("prometheus")));
    }
}

#[test]
fn every_alert_has_a_case_and_a_section_of_the_runbooks() {
    let read = |file: &str| std::fs::read_to_string(deploy().join(file)).unwrap();
    let rules = read("prometheus/fleetdiff.rules.yml");
    let cases = read("prometheus/fleetdiff.test.yml");
    let runbooks = read("../docs/runbooks.md");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 5, "{alerts:?}");
    for alert in &alerts {
        assert!(runbooks.contains(&format!("\n## {alert}\n")), "{alert} has no section in docs/runbooks.md");
        assert!(rules.contains(&format!("runbook: docs/runbooks.md#{}\n", alert.to_lowercase())), "{alert}");
        assert!(cases.contains(&format!("alertname: {alert} }}")), "no case in which {alert} must not fire");
        assert!(cases.contains(&format!("{{alertname=\"{alert}\"}}', value: 1 }}")), "no case in which {alert} fires");
    }
    let sections = runbooks.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(sections, alerts.len(), "a section without an alert");
}

#[test]
fn grafana_takes_the_dashboard() {
    passes("dashboard", &[&deploy().join("grafana/fleetdiff.json")]);
    let dashboard = std::fs::read_to_string(deploy().join("grafana/fleetdiff.json")).unwrap();
    let folder = TempDir::new().unwrap();
    let wrong = folder.path().join("wrong.json");
    for (right, instead) in [("\"legendFormat\"", "\"legend_format\""), ("\"showLegend\": true", "\"showLegend\": 1")] {
        assert!(dashboard.contains(right), "{right}");
        std::fs::write(&wrong, dashboard.replacen(right, instead, 1)).unwrap();
        assert!(!check("dashboard", &[&wrong]).status.success(), "{instead} must be refused");
    }
}

#[test]
fn helm_takes_the_chart_and_kubernetes_what_it_makes() {
    let (chart, everything) = (deploy().join("helm/fleetdiff"), checks().join("everything.yaml"));
    passes("lint", &[&chart]);
    passes("lint", &[&chart, &everything]);
    let folder = TempDir::new().unwrap();
    let kinds = passes("manifests", &[&rendered(&folder, None)]);
    assert_eq!(kinds.lines().collect::<Vec<_>>(), ["ServiceAccount", "ConfigMap", "Service", "StatefulSet"]);
    let kinds = passes("manifests", &[&rendered(&folder, Some(&everything))]);
    for kind in ["Secret", "ServiceMonitor", "PrometheusRule"] {
        assert!(kinds.lines().any(|made| made == kind), "{kind} in {kinds}");
    }
    let refused = |values: &str| {
        let file = folder.path().join("values.yaml");
        std::fs::write(&file, values).unwrap();
        !check("lint", &[&chart, &file]).status.success()
    };
    assert!(refused("terminationGracePeriodSeconds: 5"), "receivers get 10 s");
    assert!(refused("replicas: 2") && refused("config: { status: { listen: \"127.0.0.1:1\" } }"));
}

/// The twin: what Kubernetes would refuse, or would never start, is refused.
#[test]
fn manifests_that_are_wrong_are_refused() {
    let folder = TempDir::new().unwrap();
    let file = rendered(&folder, None);
    let right = std::fs::read_to_string(&file).unwrap();
    for (part, instead) in [
        ("terminationGracePeriodSeconds", "terminationGracePeriod"),
        ("replicas: 1", "replicas: one"),
        ("serviceName: fleetdiff", "serviceName: other"),
        ("{ name: data, mountPath", "{ name: date, mountPath"),
        ("path: /readyz, port: http", "path: /readyz, port: web"),
        ("configMap: { name: fleetdiff }", "configMap: { name: other }"),
        ("apiVersion: apps/v1", "apiVersion: apps/v2"),
    ] {
        assert!(right.contains(part), "{part}");
        std::fs::write(&file, right.replacen(part, instead, 1)).unwrap();
        assert!(!check("manifests", &[&file]).status.success(), "{instead} must be refused");
    }
}

#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    let rendered = std::fs::read_to_string(rendered(&TempDir::new().unwrap(), None)).unwrap();
    let plain = std::fs::read_to_string(deploy().join("kubernetes/fleetdiff.yaml")).unwrap();
    assert!(plain == rendered, "deploy/kubernetes/fleetdiff.yaml is not what the chart makes:\n{rendered}");
}

/// The program understands the configuration that the chart writes, with numbers and lists as they were meant.
#[test]
fn the_configuration_of_the_chart_is_one_of_the_program() {
    let folder = TempDir::new().unwrap();
    let manifests = std::fs::read_to_string(rendered(&folder, Some(&checks().join("everything.yaml")))).unwrap();
    let (_, rest) = manifests.split_once("  fleetdiff.toml: |\n").unwrap();
    let lines = rest.lines().map_while(|line| line.strip_prefix("    "));
    let file = folder.path().join("fleetdiff.toml");
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let shown = run(&["watch", "--show-config", "--config", file.to_str().unwrap()]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    for line in [
        "min_head_pods = 3",
        "q = 0.01",
        "window = \"20m\"",
        "workers = 4",
        "max_record_bytes = 67108864",
        "\"security.protocol\" = \"SASL_SSL\"",
        "owners = [\"checkout* -> team-shop\"]",
        "minimum_severity = \"ticket\"",
        "queue = 50",
    ] {
        assert!(shown.stdout.lines().any(|shown| shown == line), "{line} is missing in\n{}", shown.stdout);
    }
}

/// The unit is verified by systemd, with the program of this build, and leaves the service little that it could do.
#[test]
fn systemd_takes_the_unit() {
    let folder = TempDir::new().unwrap();
    let unit = std::fs::read_to_string(deploy().join("systemd/fleetdiff.service")).unwrap();
    let installed = "/usr/local/bin/fleetdiff";
    assert!(unit.contains(installed));
    let file = folder.path().join("fleetdiff.service");
    let analyze = |unit: &str, args: &[&str]| {
        std::fs::write(&file, unit.replace(installed, env!("CARGO_BIN_EXE_fleetdiff"))).unwrap();
        let analyze = Command::new("systemd-analyze").args(args).arg(&file).output();
        analyze.unwrap_or_else(|error| panic!("systemd-analyze cannot be run ({error}); scripts/setup.sh installs it"))
    };
    for args in [["verify", "--man=no", "--recursive-errors=no"], ["security", "--offline=true", "--threshold=20"]] {
        let output = analyze(&unit, &args);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success(), "systemd-analyze {args:?}:\n{said}");
        assert!(args[0] != "verify" || said.is_empty(), "{said}");
    }
    let wrong = unit.replace("TimeoutStopSec=60", "TimeoutStopSeconds=60");
    let said = String::from_utf8(analyze(&wrong, &["verify", "--man=no"]).stderr).unwrap();
    assert!(said.contains("TimeoutStopSeconds"), "a key that systemd does not know must be named: {said}");
}
