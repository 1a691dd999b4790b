//! The files of `deploy` as the programs that use them read them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn prometheus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus")
}

/// Each alert fires where its case says so, and none for a service that works.
#[test]
fn promtool_takes_the_rules_and_every_case_of_theirs_holds() {
    for args in [["check", "rules", "fleetdiff.rules.yml"], ["test", "rules", "fleetdiff.test.yml"]] {
        let output = Command::new("promtool").args(args).current_dir(prometheus()).output();
        let output =
            output.unwrap_or_else(|error| panic!("promtool cannot be run ({error}); scripts/setup.sh installs it"));
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "promtool {args:?}:\n{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn every_alert_has_a_case_and_a_section_of_the_runbooks() {
    let rules = std::fs::read_to_string(prometheus().join("fleetdiff.rules.yml")).unwrap();
    let cases = std::fs::read_to_string(prometheus().join("fleetdiff.test.yml")).unwrap();
    let runbooks = std::fs::read_to_string(prometheus().join("../../docs/runbooks.md")).unwrap();
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
