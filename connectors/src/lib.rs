//! Where profiles come from and where results go: recorded fleets, Kafka, Parquet, alerts.
//!
//! Formats and transports are apart: the crate [`fleetdiff_formats`] turns bytes and labels into profiles and knows no transport;
//! [`files`] and [`kafka`] bring bytes and know no format. Outputs are created, never changed: a file that is there must be equal.

pub mod alerts;
pub mod files;
pub mod kafka;
pub mod output;
pub mod parquet;
