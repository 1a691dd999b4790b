//! Puts profiles onto a topic, in the order in which they are given: a recorded fleet, or one that was generated.
//!
//! A record's time is the end of what it holds, so that reading the topic again is like reading the fleet as it
//! happened. In format `pprof` a record is one profile whose identity and window stand in the headers; in format `delta`
//! it is the profiles that end at the same moment, of one pod if the pod is the key.

mod batch;
mod publisher;
mod recorded;

pub use self::publisher::{Key, Outgoing, PublishSettings, Publisher, RecordForm};
pub use self::recorded::{Progress, Published};
pub use super::outbox::Acknowledged;
