//! Where profiles come from and where results go: formats, recorded fleets, Kafka, Parquet, alerts.
//!
//! Formats and transports are apart: [`formats`] turns bytes and labels into profiles and knows no transport; [`files`] and
//! [`kafka`] bring bytes and know no format, and [`identity`] says for both which attributes name a pod. Outputs are created, never changed: a file that is there must be equal.

pub mod alerts;
pub mod files;
pub mod formats;
pub mod identity;
pub mod kafka;
pub mod output;
pub mod parquet;
