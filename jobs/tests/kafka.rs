//! `publish`, `generate` and `watch` with a real Apache Kafka broker: a topic gives the rows and alerts that the folder
//! gives, whatever the number of partitions and workers, and errors are clear.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "how long it took until a fault was said")]

#[path = "kafka/alerts_once.rs"]
mod alerts_once;
#[path = "kafka/archive.rs"]
mod archive;
#[path = "kafka/backlog.rs"]
mod backlog;
#[path = "../../connectors/tests/support/broker.rs"]
mod broker;
#[path = "kafka/chaos.rs"]
mod chaos;
#[path = "kafka/checkpoints.rs"]
mod checkpoints;
#[path = "kafka/clocks.rs"]
mod clocks;
#[path = "kafka/cluster.rs"]
mod cluster;
#[path = "kafka/collector.rs"]
mod collector;
#[path = "kafka/company.rs"]
mod company;
#[path = "kafka/disk.rs"]
mod disk;
#[path = "kafka/draining.rs"]
mod draining;
#[path = "kafka/faults.rs"]
mod faults;
#[path = "kafka/forms.rs"]
mod forms;
#[path = "kafka/generations.rs"]
mod generations;
#[path = "../../connectors/tests/support/hook.rs"]
#[expect(dead_code, reason = "other tests let it fail in more ways")]
mod hook;
#[path = "support/pyroscope/http.rs"]
mod http;
#[path = "kafka/limits.rs"]
mod limits;
#[path = "kafka/metrics.rs"]
mod metrics;
#[path = "../../connectors/formats/tests/formats/metrics_proto.rs"]
mod metrics_proto;
#[path = "kafka/program.rs"]
mod program;
#[path = "kafka/pulled.rs"]
mod pulled;
#[path = "kafka/receivers.rs"]
mod receivers;
#[path = "support/pyroscope/recorded.rs"]
#[expect(dead_code, reason = "other tests record")]
mod recorded;
#[path = "kafka/reload.rs"]
mod reload;
#[path = "kafka/results.rs"]
mod results;
#[path = "../../pipeline/tests/support/rows.rs"]
mod rows;
#[path = "support/s3.rs"]
mod s3;
#[path = "kafka/same_rows.rs"]
mod same_rows;
#[path = "support/served.rs"]
mod served;
#[path = "kafka/service.rs"]
mod service;
#[path = "kafka/shards.rs"]
mod shards;
#[path = "kafka/status.rs"]
mod status;
#[path = "kafka/stored.rs"]
mod stored;
#[path = "../../pipeline/tests/support/together.rs"]
mod together;
#[path = "../../connectors/tests/support/tools.rs"]
mod tools;
#[path = "kafka/topic_changes.rs"]
mod topic_changes;
#[path = "../../connectors/tests/support/tree.rs"]
mod tree;
#[path = "kafka/unordered.rs"]
mod unordered;
