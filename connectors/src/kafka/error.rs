//! What can go wrong between fleetdiff and a Kafka cluster, in words that name the broker and what to do.

use fleetdiff_schemas::source::SourceError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A Kafka cluster could not be used as requested.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// No broker answered in time.
    #[error("no Kafka broker answers at {brokers}: {detail}")]
    Unreachable {
        /// Bootstrap servers as given.
        brokers: String,
        /// What the client saw last.
        detail: String,
    },
    /// The cluster does not have the topic.
    #[error("there is no topic {topic} at {brokers}")]
    UnknownTopic {
        /// The topic asked for.
        topic: String,
        /// Bootstrap servers as given.
        brokers: String,
    },
    /// A partition has had no leader for as long as a connection may take.
    #[error(
        "partition {partition} of topic {topic} at {brokers} has no leader: no broker that holds its records is in the cluster"
    )]
    NoLeader {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Bootstrap servers as given.
        brokers: String,
    },
    /// The cluster refuses this client.
    #[error("{brokers} refuses access to {what}: {detail}")]
    Denied {
        /// Bootstrap servers as given.
        brokers: String,
        /// The topic or group, or the cluster itself.
        what: String,
        /// The broker's words.
        detail: String,
    },
    /// A client property that the client library does not accept, or that fleetdiff sets itself.
    #[error("Kafka client property {property}: {detail}")]
    Property {
        /// Its name; its value is never shown.
        property: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The topic was deleted while it was read.
    #[error("topic {topic} at {brokers} was deleted while it was read")]
    Deleted {
        /// The topic.
        topic: String,
        /// Bootstrap servers as given.
        brokers: String,
    },
    /// A partition no longer holds what was read of it.
    #[error(
        "partition {partition} of topic {topic} has lost records that were read: {detail}; the topic was deleted and made anew, or a broker came back without its records"
    )]
    Replaced {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Which offset was expected, and which the partition holds.
        detail: String,
    },
    /// A record is larger than the topic allows.
    #[error("a record of {bytes} bytes ({about}) is too large for topic {topic}")]
    TooLarge {
        /// The topic.
        topic: String,
        /// What the record holds.
        about: String,
        /// Size of its value.
        bytes: usize,
    },
    /// A record was not acknowledged.
    #[error("topic {topic} at {brokers} did not take a record ({about}): {detail}")]
    Delivery {
        /// The topic.
        topic: String,
        /// Bootstrap servers as given.
        brokers: String,
        /// What the record holds.
        about: String,
        /// The broker's or the client's words.
        detail: String,
    },
    /// A later start of the same service sends to the topic.
    #[error(
        "another fleetdiff, started after this one, sends the alerts of the same topic of profiles to topic {topic} at {brokers}"
    )]
    Fenced {
        /// The topic.
        topic: String,
        /// Bootstrap servers as given.
        brokers: String,
    },
    /// A record could not be encoded in the requested format.
    #[error("{about} cannot be written as {format}: {detail}")]
    Encode {
        /// The record to write.
        about: String,
        /// The record format.
        format: &'static str,
        /// Why not.
        detail: String,
    },
    /// Anything else that the client library reports.
    #[error("topic {topic} at {brokers}: {detail}")]
    Client {
        /// The topic.
        topic: String,
        /// Bootstrap servers as given.
        brokers: String,
        /// The client library's words.
        detail: String,
    },
}

impl BrokerError {
    /// A stable name of the kind of failure, for logs and scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "kafka_unreachable",
            Self::UnknownTopic { .. } => "kafka_unknown_topic",
            Self::NoLeader { .. } => "kafka_no_leader",
            Self::Denied { .. } => "kafka_denied",
            Self::Property { .. } => "kafka_property",
            Self::Deleted { .. } => "kafka_topic_deleted",
            Self::Replaced { .. } => "kafka_topic_replaced",
            Self::TooLarge { .. } => "kafka_too_large",
            Self::Delivery { .. } => "kafka_delivery",
            Self::Fenced { .. } => "kafka_fenced",
            Self::Encode { .. } => "kafka_encode",
            Self::Client { .. } => "kafka_client",
        }
    }

    /// Whether the same may succeed later: brokers come back, replicas are in sync again.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoLeader { .. } | Self::Delivery { .. } | Self::Client { .. })
    }

    /// What to do about it, as one clause.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "check host and port of --brokers, that the broker runs, and security.protocol if it expects TLS or SASL"
            }
            Self::UnknownTopic { .. } => "check its name, or create it first (publish creates the topic it writes to)",
            Self::NoLeader { .. } => "start the brokers that hold it, or wait until they are back in the cluster",
            Self::Denied { .. } => "check the sasl.* and ssl.* properties and the cluster's access rules for this user",
            Self::Property { .. } => "see the configuration page of librdkafka for its name and values",
            Self::Deleted { .. } | Self::Replaced { .. } => fleetdiff_schemas::source::NEW_FOLDER,
            Self::TooLarge { .. } => "raise max.message.bytes of the topic and message.max.bytes of the client",
            Self::Delivery { .. } => {
                "check that the cluster is healthy and has as many in-sync replicas as the topic asks for"
            }
            Self::Fenced { .. } => {
                "let only one of them run: each alert is sent once, by the one that was started last"
            }
            Self::Encode { .. } => "choose another record format",
            Self::Client { .. } => "check the state of the cluster and the client's properties",
        }
    }

    /// The same failure in the form of the dataflow's readers.
    pub fn into_source_error(self, topic: &str) -> SourceError {
        SourceError { source_name: topic.to_owned(), detail: self.to_string(), hint: self.hint().to_owned() }
    }

    /// Sorts an error of the client library into the kinds above; `seen` is what the client logged last.
    pub(crate) fn from_client(error: &KafkaError, topic: &str, brokers: &str, seen: Option<&str>) -> Self {
        let (topic, brokers) = (topic.to_owned(), brokers.to_owned());
        let detail = seen.map_or_else(|| error.to_string(), |seen| format!("{error} ({seen})"));
        match code_of(error) {
            Some(
                RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::OperationTimedOut
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::RequestTimedOut,
            ) => Self::Unreachable { brokers, detail: seen.map_or(detail, str::to_owned) },
            Some(code) if is_unknown(code) => Self::UnknownTopic { topic, brokers },
            Some(
                RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::SSL
                | RDKafkaErrorCode::ClusterAuthorizationFailed,
            ) => Self::Denied { brokers, what: "the cluster".to_owned(), detail },
            Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
                Self::Denied { brokers, what: format!("topic {topic}"), detail }
            }
            Some(RDKafkaErrorCode::TransactionalIdAuthorizationFailed) => {
                Self::Denied { brokers, what: format!("the transactional id for topic {topic}"), detail }
            }
            Some(code) if is_fenced(code) => Self::Fenced { topic, brokers },
            _ => Self::property(error).unwrap_or(Self::Client { topic, brokers, detail }),
        }
    }

    /// NB: the library's own message repeats the value, which may be a password; only the property's name is kept.
    fn property(error: &KafkaError) -> Option<Self> {
        match error {
            KafkaError::ClientConfig(_, _, property, _) => Some(Self::Property {
                property: property.clone(),
                detail: "unknown to the client library, or a value that it does not take".to_owned(),
            }),
            KafkaError::ClientCreation(detail) => {
                Some(Self::Property { property: "(all together)".to_owned(), detail: detail.clone() })
            }
            _ => None,
        }
    }
}

/// Whether the cluster does not know a topic or a partition of it.
pub(super) fn is_unknown(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownPartition
    )
}

/// Whether a later sender with the same transactional id has shut this one out.
pub(super) fn is_fenced(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced | RDKafkaErrorCode::InvalidProducerEpoch)
}

/// The library's code inside an error, even if the library leaves it out.
fn code_of(error: &KafkaError) -> Option<RDKafkaErrorCode> {
    match error {
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::types::RDKafkaConfRes;

    #[test]
    fn a_refused_property_shows_its_name_and_never_its_value() {
        let library = KafkaError::ClientConfig(
            RDKafkaConfRes::RD_KAFKA_CONF_INVALID,
            "Invalid value \"hunter2\"".to_owned(),
            "sasl.password".to_owned(),
            "hunter2".to_owned(),
        );
        let error = BrokerError::from_client(&library, "profiles", "broker:9092", None);
        assert_eq!(error.code(), "kafka_property");
        assert!(error.to_string().contains("sasl.password"));
        assert!(!format!("{error} {error:?} {}", error.hint()).contains("hunter2"));
    }

    #[test]
    fn a_source_error_names_topic_brokers_and_what_to_do() {
        let library = KafkaError::MetadataFetch(RDKafkaErrorCode::BrokerTransportFailure);
        let error = BrokerError::from_client(&library, "profiles", "broker:9092", Some("Connection refused"));
        let text = error.into_source_error("profiles").to_string();
        for part in ["profiles", "broker:9092", "Connection refused", "--brokers"] {
            assert!(text.contains(part), "{part} missing in {text}");
        }
    }
}
