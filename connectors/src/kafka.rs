//! Kafka: profiles in from a topic, alerts out to a topic, recorded fleets onto a topic.
//!
//! Profiles come in any format of [`fleetdiff_formats`]; what a record's headers say is read here (`headers.rs`),
//! what its value says is the format's matter. Every failure of the cluster is a
//! [`error::BrokerError`], every bad record a rejected part.

pub mod alerts;
pub mod client;
pub mod error;
mod headers;
mod outbox;
pub mod publish;
pub mod source;
pub mod topic;
