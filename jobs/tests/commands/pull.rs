//! `pull`, from real programs in Go that serve their profiles.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::program::{done, run};
use super::served::Served;

fn manifest(fleet: &Path) -> Vec<Value> {
    let text = fs::read_to_string(fleet.join("manifest.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A port at which nobody listens.
fn closed() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn programs_are_recorded_as_a_fleet_that_replay_reads() {
    let (base, head) = ([Served::start(900), Served::start(900)], [Served::start(1_200), Served::start(1_200)]);
    let folder = TempDir::new().unwrap();
    let (fleet, listed) = (folder.path().join("fleet"), folder.path().join("pods.json"));
    let addresses = |side: &[Served; 2]| side.each_ref().map(|served| served.address.clone());
    let groups = json!([
        {"targets": addresses(&base), "labels": {"build": "v41", "__meta_kubernetes_pod_name": "unread"}},
        {"targets": addresses(&head), "labels": {"build": "v42", "region": "eu-west-1"}},
    ]);
    fs::write(&listed, groups.to_string()).unwrap();
    let gone = closed();
    let (to, file) = (fleet.to_str().unwrap(), listed.to_str().unwrap());
    let named = ["--service", "shop", "--build", "v41", "--cohort", "web", "--every", "2s", "--for", "7s"];
    let pulled =
        run(&[&["pull", &gone, "--targets-file", file, "--to", to, "--types", "cpu,mutex"][..], &named].concat());
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    assert!(pulled.stdout.contains(" of 4 pods, "), "{}", pulled.stdout);
    let refused = format!("{gone} gave no cpu profile: ");
    assert_eq!(pulled.stderr.matches(&refused).count(), 1, "said once: {}", pulled.stderr);

    let lines = manifest(&fleet);
    for address in addresses(&base).iter().chain(&addresses(&head)) {
        let of = |kind: &str| -> Vec<&Value> {
            lines.iter().filter(|line| line["pod"] == **address && line["profile_type"] == kind).collect()
        };
        assert!(of("cpu").len() >= 2 && of("mutex").len() >= 2, "{address}: {lines:?}");
        assert!(of("cpu").iter().all(|line| line["temporality"] == "delta"), "{lines:?}");
        assert!(of("mutex").iter().all(|line| line["temporality"] == "cumulative"), "{lines:?}");
    }
    let of_head = lines.iter().find(|line| line["build"] == "v42").unwrap();
    assert_eq!((&of_head["region"], &of_head["cohort"]), (&json!("eu-west-1"), &json!("web")));

    // A fleet that is there is continued.
    let more = run(&[
        "pull",
        &base[0].address,
        "--to",
        to,
        "--service",
        "shop",
        "--build",
        "v41",
        "--every",
        "1s",
        "--for",
        "1500ms",
    ]);
    assert_eq!(more.code, 0, "{}", more.stderr);
    assert_eq!(manifest(&fleet).len(), lines.len() + 1);

    let replayed = done(&["replay", to, "--base", "v41", "--head", "v42", "--warm-up", "0s", "--cell", "cohort"]);
    let counted: i64 = replayed.tables.ledger.iter().map(|row| row.samples_counted).sum();
    assert!(replayed.tables.rejected.is_empty(), "{:?}", replayed.tables.rejected);
    assert!(counted > 100, "{counted} samples counted");
    let price = replayed.tables.cells.iter().find(|row| row.function == "main.price");
    assert!(price.is_some_and(|row| row.head.count > 20 && row.base.count > 20), "{price:?}");
}

#[test]
fn what_cannot_be_pulled_says_why() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("fleet");
    let to = to.to_str().unwrap();
    let gone = closed();
    let brief = ["--to", to, "--every", "1s", "--for", "1s"];
    let nothing = run(&[&["pull", &gone, "--service", "shop", "--build", "v1"][..], &brief].concat());
    assert_eq!(nothing.code, 1, "{}", nothing.stderr);
    assert!(
        nothing.stderr.contains("nothing was pulled") && nothing.stderr.contains("net/http/pprof"),
        "{}",
        nothing.stderr
    );

    let unlabelled = run(&[&["pull", &gone, "--service", "shop"][..], &brief].concat());
    assert_eq!(unlabelled.code, 2, "{}", unlabelled.stderr);
    assert!(unlabelled.stderr.contains(&format!("nothing says which build {gone} is of")), "{}", unlabelled.stderr);

    let served = Served::start(100);
    let elsewhere = format!("http://{}/debug/nothing", served.address);
    let refused = run(&[&["pull", &elsewhere, "--service", "shop", "--build", "v1"][..], &brief].concat());
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("status 404"), "{}", refused.stderr);

    let list = folder.path().join("pods.json");
    fs::write(&list, "{}").unwrap();
    let file = list.to_str().unwrap();
    let wrong = run(&[&["pull", "--targets-file", file, "--service", "shop", "--build", "v1"][..], &brief].concat());
    assert!(wrong.stderr.contains("is no list of targets"), "{}", wrong.stderr);
    assert_eq!(run(&["pull", "--to", to]).code, 2, "no target");
    assert_eq!(run(&["pull", &gone, "--to", to, "--every", "1500ms"]).code, 2, "Go takes whole seconds");
    assert_eq!(run(&["pull", &gone, "--to", to, "--every", "2s", "--for", "1s"]).code, 2, "not a round");
    assert_eq!(run(&["pull", &gone, "--service", "shop", "--build", "v1"]).code, 2, "nowhere to put it");
}
