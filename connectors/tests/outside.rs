//! What programs of others make of ours: a real Apache Kafka broker, from which what was published is read back once and whole; a real
//! Alertmanager, which shows one alert per incident, and a webhook that fails in every way; DuckDB, polars, pandas and pyarrow, which read
//! an output folder. They are together because each waits for its program most of the time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/alertmanager.rs"]
mod alertmanager;
#[path = "kafka/alerts.rs"]
mod alerts;
#[path = "support/broker.rs"]
mod broker;
#[path = "receivers/changes.rs"]
mod changes;
#[path = "kafka/collector.rs"]
mod collector;
#[path = "kafka/faults.rs"]
mod faults;
#[path = "receivers/findings.rs"]
mod findings;
#[path = "kafka/fleet.rs"]
mod fleet;
#[path = "../../schemas/tests/generated/rows.rs"]
#[expect(dead_code, reason = "verdicts are announced and have no file")]
mod generated;
#[path = "support/hook.rs"]
mod hook;
#[path = "receivers/incidents.rs"]
mod incidents;
#[path = "receivers/on_call.rs"]
mod on_call;
#[path = "readers/parquet.rs"]
mod parquet;
#[path = "support/readers.rs"]
#[expect(dead_code, reason = "pages are run by tests of the program, which makes their folder")]
mod readers;
#[path = "kafka/reading.rs"]
mod reading;
#[path = "kafka/recorded.rs"]
mod recorded;
#[path = "kafka/round_trip.rs"]
mod round_trip;
#[path = "support/tools.rs"]
mod tools;
#[path = "receivers/webhooks.rs"]
mod webhooks;
