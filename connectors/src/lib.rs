//! connectors
pub mod alerts;
pub mod output;
pub mod parquet;

pub mod files;
pub mod formats;
pub mod kafka;
