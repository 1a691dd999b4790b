//! One record of a topic, decoded.

use std::sync::Arc;

use fleetdiff_formats::Decode;
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::otlp::metrics;
use fleetdiff_schemas::profile::{Decoded, Position, Stamped};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use rdkafka::message::{BorrowedMessage, Message, Timestamp};

use crate::kafka::headers::RecordHeaders;

/// What the records of a topic hold, with its decoder.
pub enum Contents {
    /// Profiles of a format.
    Profiles(Box<dyn Decode>),
    /// Metrics of OTLP that count requests.
    Requests(Box<metrics::Decoder>),
}

impl Contents {
    pub(super) fn decode(
        &mut self,
        message: &BorrowedMessage<'_>,
        topic: &Arc<str>,
        identity: &IdentityMapping,
    ) -> Decoded {
        let stamped = stamped(message.timestamp());
        let position = Position {
            source: Arc::clone(topic),
            partition: message.partition(),
            offset: message.offset(),
            file: None,
        };
        let (mut parts, mut points) = (Vec::new(), Vec::new());
        match (message.payload(), self) {
            (None, _) => parts.push(Err(Rejection::new(Reason::Empty, "the record has no value"))),
            (Some(bytes), Self::Profiles(decoder)) => {
                parts = decoder.decode(bytes, &RecordHeaders::of(message.headers()).labels(identity, stamped.time()));
            }
            (Some(bytes), Self::Requests(decoder)) => {
                for point in decoder.points(bytes) {
                    match point {
                        Ok(point) => points.push(point),
                        Err(fault) => parts.push(Err(fault)),
                    }
                }
            }
        }
        Decoded { position, stamped, parts, points }
    }
}

/// Whose clock stamped a record, by the type of timestamp that the record itself carries: what the topic's configuration was
/// when the broker took the record. What it is now may differ, and would not be a function of the records.
fn stamped(timestamp: Timestamp) -> Stamped {
    let at = timestamp.to_millis().map(|millis| Nanos(millis.saturating_mul(1_000_000)));
    match (timestamp, at) {
        (Timestamp::LogAppendTime(_), Some(at)) => Stamped::ByBroker(at),
        _ => Stamped::BySender(at),
    }
}
