//! Kafka: reads profiles from a topic, and writes alerts and recorded fleets to a topic.
//!
//! Profiles come in any format of [`fleetdiff_formats`]; a record's headers are read here (`headers.rs`), its value by
//! the format. Every failure of the cluster is a [`error::BrokerError`], every bad record a rejected part.

pub mod alerts;
pub mod client;
mod digest;
pub mod error;
mod headers;
mod outbox;
pub mod publish;
mod repeats;
pub mod source;
pub mod topic;
