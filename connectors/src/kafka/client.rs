//! How to reach a cluster: the brokers and other properties of librdkafka.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;

use super::digest::Digest;
use super::error::BrokerError;
use super::repeats;

/// Properties on which fleetdiff's guarantees depend; setting one is an error.
const OWN_PROPERTIES: [&str; 8] = [
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "isolation.level",
    "partitioner",
    "transactional.id",
];

/// Properties of every consumer that reads records: it is assigned partitions by number, sees where they end, and no record of a
/// transaction that was undone.
pub(super) const READS: [(&str, &str); 5] = [
    ("allow.auto.create.topics", "false"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    ("isolation.level", "read_committed"),
];

/// Parts of a property's name that mark its value as secret.
const SECRET_MARKS: [&str; 7] = ["password", "secret", "token", "username", ".pem", "key", "oauthbearer"];

/// How to reach a cluster. Its `Debug` form leaves out the value of every property that may be secret.
#[derive(Clone)]
pub struct ClientSettings {
    /// Bootstrap servers, `host:port` joined by commas.
    pub brokers: String,
    /// Further properties by librdkafka's names, such as `security.protocol` and `sasl.password`.
    pub properties: BTreeMap<String, String>,
    /// How long to wait for a first answer before reporting that no broker answers.
    pub connect_timeout: Duration,
}

impl ClientSettings {
    /// Seconds to wait for a first answer: long enough for a TLS handshake across an ocean, short enough for a person
    /// at a terminal (guess).
    const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

    /// Settings for these bootstrap servers, with no further property.
    ///
    /// ```
    /// use fleetdiff_connectors::kafka::client::ClientSettings;
    /// let mut settings = ClientSettings::new("broker-1:9092,broker-2:9092");
    /// settings.properties.insert("sasl.password".into(), "hunter2".into());
    /// assert!(!format!("{settings:?}").contains("hunter2"));
    /// ```
    pub fn new(brokers: impl Into<String>) -> Self {
        Self { brokers: brokers.into(), properties: BTreeMap::new(), connect_timeout: Self::CONNECT_TIMEOUT }
    }

    /// The client library's configuration: `defaults`, overridden by the user's properties, overridden by `fixed`.
    pub(crate) fn config(
        &self,
        defaults: &[(&str, &str)],
        fixed: &[(&str, &str)],
    ) -> Result<ClientConfig, BrokerError> {
        if let Some(own) = OWN_PROPERTIES.iter().find(|own| self.properties.contains_key(**own)) {
            return Err(BrokerError::Property {
                property: (*own).to_owned(),
                detail: "fleetdiff sets it itself".to_owned(),
            });
        }
        let mut config = ClientConfig::new();
        // The library's published default is 10 s between attempts, which keeps a reader disconnected long after a
        // broker is back; 1 s (guess) is still gentle.
        config.set("client.id", "fleetdiff").set("reconnect.backoff.max.ms", "1000");
        for (property, value) in defaults {
            config.set(*property, *value);
        }
        for (property, value) in &self.properties {
            config.set(property, value);
        }
        for (property, value) in fixed {
            config.set(*property, *value);
        }
        config.set("bootstrap.servers", &self.brokers);
        config.set_log_level(RDKafkaLogLevel::Warning);
        Ok(config)
    }

    /// A client that queries topics and reads nothing. A query never makes a broker create the topic.
    pub(crate) fn inquirer(&self) -> Result<BaseConsumer<Reporter>, BrokerError> {
        // Of a partition it is given the end of what is stored, also of transactions that have not ended.
        let asks = [("allow.auto.create.topics", "false"), ("isolation.level", "read_uncommitted")];
        let config = self.config(&[], &asks)?;
        config
            .create_with_context(Reporter::default())
            .map_err(|error| BrokerError::from_client(&error, "(none)", &self.brokers, None))
    }
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: BTreeMap<&str, &str> = self
            .properties
            .iter()
            .map(|(name, value)| (name.as_str(), if is_secret(name) { "(not shown)" } else { value.as_str() }))
            .collect();
        f.debug_struct("ClientSettings")
            .field("brokers", &self.brokers)
            .field("properties", &shown)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// Whether the value of a client property must not be shown.
pub fn is_secret(property: &str) -> bool {
    SECRET_MARKS.iter().any(|mark| property.contains(mark))
}

/// Receives the client library's messages: writes them to the log, and keeps the last error for error messages.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    last: Mutex<Complaint>,
    digest: Mutex<Option<Digest>>,
}

/// The last error of the client library.
#[derive(Clone, Debug, Default)]
pub(crate) struct Complaint {
    /// Whether the cluster refused the credentials, rather than not answering.
    pub denied: bool,
    /// In the library's words.
    pub words: Option<String>,
}

impl Reporter {
    /// The last error of the library, if there was one.
    pub(crate) fn complaint(&self) -> Complaint {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the library's last statistics say.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.digest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, denied: bool, words: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A refusal explains the disconnections that follow it, so it is kept.
        if denied || !last.denied {
            *last = Complaint { denied, words: Some(words.to_owned()) };
        }
    }
}

impl ClientContext for Reporter {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
                if let Some(message) = repeats::fold(message) {
                    tracing::error!(target: "librdkafka", facility, "{message}");
                }
            }
            // The library retries by itself, so an error that it reports may be temporary: it is logged as a warning.
            RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
                tracing::debug!(target: "librdkafka", facility, "{message}");
            }
            _ => tracing::trace!(target: "librdkafka", facility, "{message}"),
        }
    }

    fn stats(&self, statistics: Statistics) {
        let digest = Digest::of(&statistics, Instant::now());
        *self.digest.lock().unwrap_or_else(PoisonError::into_inner) = Some(digest);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code();
        match code {
            Some(RDKafkaErrorCode::PartitionEOF) => {}
            Some(RDKafkaErrorCode::AllBrokersDown) => warn(reason),
            _ => {
                warn(reason);
                let denied = matches!(
                    code,
                    Some(
                        RDKafkaErrorCode::Authentication
                            | RDKafkaErrorCode::SaslAuthenticationFailed
                            | RDKafkaErrorCode::SSL
                    )
                );
                self.remember(denied, reason);
            }
        }
    }
}

impl ConsumerContext for Reporter {}

fn warn(reason: &str) {
    if let Some(reason) = repeats::fold(reason) {
        tracing::warn!(target: "librdkafka", "{reason}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_that_fleetdiff_sets_is_refused_by_name() {
        let mut settings = ClientSettings::new("localhost:1");
        settings.properties.insert("enable.idempotence".into(), "false".into());
        let error = settings.config(&[], &[]).expect_err("an own property must be refused");
        assert_eq!(error.code(), "kafka_property");
        assert!(error.to_string().contains("enable.idempotence"), "{error}");
    }

    #[test]
    fn user_properties_win_over_defaults_and_lose_to_what_is_fixed() {
        let mut settings = ClientSettings::new("localhost:1");
        settings.properties.insert("linger.ms".into(), "7".into());
        settings.properties.insert("group.id".into(), "theirs".into());
        let config = settings.config(&[("linger.ms", "20")], &[("group.id", "ours")]).expect("config");
        assert_eq!(config.get("linger.ms"), Some("7"));
        assert_eq!(config.get("group.id"), Some("ours"));
    }

    #[test]
    fn only_harmless_values_are_shown() {
        let mut settings = ClientSettings::new("localhost:1");
        for property in
            ["sasl.password", "ssl.key.pem", "sasl.username", "sasl.oauthbearer.config", "ssl.keystore.password"]
        {
            settings.properties.insert(property.into(), "hunter2".into());
        }
        settings.properties.insert("security.protocol".into(), "SASL_SSL".into());
        let shown = format!("{settings:?}");
        assert!(!shown.contains("hunter2") && shown.contains("SASL_SSL"), "{shown}");
    }

    #[test]
    fn a_refusal_is_not_forgotten_for_the_disconnection_after_it() {
        let reporter = Reporter::default();
        reporter.error(KafkaError::Global(RDKafkaErrorCode::Authentication), "bad password");
        reporter.error(KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure), "disconnected");
        let complaint = reporter.complaint();
        assert!(complaint.denied);
        assert_eq!(complaint.words.as_deref(), Some("bad password"));
    }
}
