//! Writes profiles to a topic, in the given order: a recorded or a generated fleet.
//!
//! A record's time is the end of its profiles, so that reading the topic again is like reading the fleet live. In the
//! formats `pprof`, `folded` and `perf_script` a record is one profile whose identity and window are in the headers; in `otlp` and
//! `delta` it is the profiles that end at the same moment, of one pod if the pod is the key.

mod batch;
mod form;
mod publisher;
mod recorded;

pub use self::form::RecordForm;
pub use self::publisher::{Key, Outgoing, PublishSettings, Publisher};
pub use self::recorded::{Progress, Published};
pub use super::outbox::Acknowledged;
