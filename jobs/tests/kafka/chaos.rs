//! Faults that a seed draws: whatever is killed, stopped, doubled or damaged, the rows and the alerts are those of a run that nothing
//! disturbed.
//!
//! - `crash_points`: the service ends at each named point of the commit order, in two runs one after the other.
//! - `random_faults`: kills, signals, brokers that hang or die, records that come twice, in another order or damaged, partitions that
//!   are silent or added, drawn by `FLEETDIFF_CHAOS_SEED` for `FLEETDIFF_CHAOS_ROUNDS` rounds from `FLEETDIFF_CHAOS_FIRST_ROUND` on.
//! - `three_brokers`: leaders move while the service runs.
//!
//! Clocks that are wrong are in `clocks.rs`, records that retention deletes in `topic_changes.rs` and `alerts_once.rs`, two services
//! with folders of their own in `alerts_once.rs`. `make chaos` is the long form.

#[path = "chaos/crash_points.rs"]
mod crash_points;
#[path = "chaos/damage.rs"]
mod damage;
#[path = "chaos/random_faults.rs"]
mod random_faults;
#[path = "chaos/records.rs"]
pub mod records;
#[path = "chaos/subject.rs"]
mod subject;
#[path = "chaos/three_brokers.rs"]
mod three_brokers;

use std::collections::BTreeSet;

use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};

use crate::results::Results;

/// The signal of a process that ended at a point of the commit order.
const ABORTED: i32 = 6;

/// A number of the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number: {text}")))
}

/// From which everything is drawn.
fn seed() -> u64 {
    number("FLEETDIFF_CHAOS_SEED", 1)
}

/// How many rounds of random faults there are; of each two, one is compared with a run of the undamaged records.
fn rounds() -> u64 {
    number("FLEETDIFF_CHAOS_ROUNDS", 2)
}

/// The first of them: a round that failed can be tried alone.
fn first_round() -> u64 {
    number("FLEETDIFF_CHAOS_FIRST_ROUND", 0)
}

/// Whether more is tried than every change has to wait for.
fn is_long() -> bool {
    rounds() > 2
}

/// Makes a topic that keeps and takes records of any time, of up to 16 MiB.
pub fn make(brokers: &str, topic: &str, partitions: i32, replication: i32) {
    let configuration = [
        ("retention.ms", "-1"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
        ("max.message.bytes", "16777216"),
    ];
    let plan = TopicPlan { name: topic, partitions, replication: Some(replication), configuration: &configuration };
    topic::ensure(&ClientSettings::new(brokers), plan).unwrap();
}

/// What holds of every run, whatever disturbed it.
fn assert_sound(results: &Results, about: &str) {
    for row in &results.tables.ledger {
        assert!(row.balances(), "{about}: {row:?}");
    }
    let ids: Vec<String> = results.alerts.iter().map(|alert| format!("{} of {}", alert["id"], alert["time"])).collect();
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "{about}: some of {ids:#?} came twice");
    assert!(results.sizes().iter().all(|size| *size > 0), "{about}: {:?}", results.sizes());
}
