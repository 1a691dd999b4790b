//! Topics of a real Apache Kafka broker: what is published is read back once and whole, bad records are rejected one by
//! one, and an absent cluster gives a clear error.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "kafka/alerts.rs"]
mod alerts;
#[path = "support/broker.rs"]
mod broker;
#[path = "kafka/collector.rs"]
mod collector;
#[path = "kafka/faults.rs"]
mod faults;
#[path = "kafka/fleet.rs"]
mod fleet;
#[path = "kafka/reading.rs"]
mod reading;
#[path = "kafka/recorded.rs"]
mod recorded;
#[path = "kafka/round_trip.rs"]
mod round_trip;
