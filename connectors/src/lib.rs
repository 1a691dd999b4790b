//! Where profiles come from and where results go: recorded fleets, Kafka, Parquet, alerts, receivers.
//!
//! Formats and transports are separate: the crate [`fleetdiff_formats`] turns bytes and labels into profiles and knows
//! no transport; [`files`] and [`kafka`] bring bytes and know no format. Outputs are created and never changed: an
//! existing file must be equal.

mod agent;
pub mod alerts;
pub mod archive;
pub mod checkpoints;
pub mod crash;
pub mod files;
mod folder;
pub mod generations;
pub mod kafka;
pub mod lock;
pub mod meeting;
pub mod output;
pub mod parquet;
pub mod pull;
pub mod receivers;
mod settings;
pub mod store;
