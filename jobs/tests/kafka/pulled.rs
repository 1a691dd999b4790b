//! Profiles of running programs onto a topic.

use crate::program::{brokers, fail, run, succeed, text};
use crate::results::with_topic;
use crate::served::Served;

#[test]
fn programs_are_recorded_onto_a_topic_that_watch_reads() {
    let (base, head) = (Served::start(900), Served::start(1_200));
    let to_topic = ["--brokers", brokers(), "--topic", "pulled", "--cohort", "web", "--service", "shop"];
    let brief = ["--every", "1s", "--for", "4s", "--types", "cpu,heap"];
    for (build, served) in [("v41", &base), ("v42", &head)] {
        let pulled = run(&[&["pull", &served.address, "--build", build][..], &to_topic, &brief].concat());
        let said = String::from_utf8(pulled.stdout).unwrap();
        assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
        assert!(said.contains(" of 1 pod, ") && said.contains("of topic pulled"), "{said}");
    }
    let refused =
        fail(2, &[&["pull", &base.address, "--build", "v41", "--format", "folded"][..], &to_topic, &brief].concat());
    assert!(refused.contains("kept as they come"), "{refused}");

    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out");
    let watch =
        ["watch", "--until-end", "--output", text(&output), "--alerts-topic", "alerts-pulled", "--warm-up", "0s"];
    succeed(&[&watch[..], &["--brokers", brokers(), "--topic", "pulled", "--base", "v41", "--head", "v42"]].concat());
    let found = with_topic(&output, "alerts-pulled");
    assert!(found.tables.rejected.is_empty(), "{:?}", found.tables.rejected);
    let counted: i64 = found.tables.ledger.iter().map(|row| row.samples_counted).sum();
    assert!(counted > 50, "{counted} samples counted");
}
