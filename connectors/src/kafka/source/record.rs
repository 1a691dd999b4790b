//! One record of a topic, decoded.

use std::sync::Arc;

use fleetdiff_formats::Decode;
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::otlp::metrics;
use fleetdiff_schemas::profile::{Decoded, Position};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use rdkafka::message::{BorrowedMessage, Message};

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
        let broker_time = message.timestamp().to_millis().map(|millis| Nanos(millis.saturating_mul(1_000_000)));
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
                parts = decoder.decode(bytes, &RecordHeaders::of(message.headers()).labels(identity, broker_time));
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
        Decoded { position, broker_time, parts, points }
    }
}
