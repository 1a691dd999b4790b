//! The headers of a record with one profile, in a format that does not carry the identity.
//!
//! The identity is under OpenTelemetry's names ([`IdentityMapping`]); attributes without an OpenTelemetry name are
//! under the names of [`fleetdiff_formats::attributes`]. The default type is `cpu`, the default temporality `delta`.
//! Headers that are written and read back give the same [`Labels`].

use std::borrow::Cow;
use std::sync::Arc;

use fleetdiff_formats::Labels;
use fleetdiff_formats::attributes::{
    FIRST_FRAME, OwnAttributes, PERIOD, PROFILE_TYPE, REQUESTS, REQUESTS_END, REQUESTS_START, TEMPORALITY, UNIT,
    WINDOW_END, WINDOW_START,
};
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::{Nanos, TimeRange};
use rdkafka::message::{BorrowedHeaders, Header, Headers, OwnedHeaders};

/// The headers of one record. If a name occurs twice the last one counts, as with Kafka's own clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordHeaders<'a> {
    entries: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> RecordHeaders<'a> {
    /// The headers as the client library gives them. Bytes that are not UTF-8 are replaced.
    pub(crate) fn of(headers: Option<&'a BorrowedHeaders>) -> Self {
        let entries = headers.into_iter().flat_map(Headers::iter);
        Self {
            entries: entries
                .filter_map(|header| header.value.map(|value| (header.key, String::from_utf8_lossy(value))))
                .collect(),
        }
    }

    /// The value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }

    /// What the headers say about the record's profile; `sent_at` is the broker's time for it.
    ///
    /// # Errors
    /// A rejection that names the header at fault: `Reason::MissingIdentity`, `Reason::UnsupportedType`,
    /// `Reason::UnitMismatch`, `Reason::NegativeValue` or `Reason::Malformed`.
    pub(crate) fn labels(&self, mapping: &IdentityMapping, sent_at: Option<Nanos>) -> Result<Labels, Rejection> {
        let own = OwnAttributes { what: "header", lookup: &|name| self.get(name).map(Cow::Borrowed) };
        let profile_type = own.profile_type()?.unwrap_or(ProfileType::Cpu);
        let typed = |rejection: Rejection| Rejection { profile_type: Some(profile_type), ..rejection };
        let window = own.window(WINDOW_START, WINDOW_END).map_err(typed)?;
        let timed = |rejection: Rejection| Rejection {
            at: rejection.at.or_else(|| window.map(TimeRange::midpoint)),
            ..typed(rejection)
        };
        let identity = mapping.resolve(own.lookup).map_err(timed)?;
        Ok(Labels {
            identity: Arc::new(identity),
            profile_type,
            temporality: own.temporality().map_err(timed)?.unwrap_or(Temporality::Delta),
            window,
            sent_at,
            requests: own.requests().map_err(timed)?,
            requests_window: own.window(REQUESTS_START, REQUESTS_END).map_err(timed)?,
            unit: own.unit().map_err(timed)?,
            period: own.period().map_err(timed)?,
            root_is_thread: own.root_is_thread().map_err(timed)?,
        })
    }
}

/// The headers that [`RecordHeaders::labels`] reads back as these labels (all but `sent_at`, which the broker gives).
pub(crate) fn of_labels(labels: &Labels, mapping: &IdentityMapping) -> OwnedHeaders {
    pairs(labels, mapping).iter().fold(OwnedHeaders::new(), |headers, (name, value)| {
        headers.insert(Header { key: name, value: Some(value.as_str()) })
    })
}

fn pairs(labels: &Labels, mapping: &IdentityMapping) -> Vec<(String, String)> {
    let mut pairs = mapping.attributes(&labels.identity);
    let mut add = |name: &str, value: String| pairs.push((name.to_owned(), value));
    add(PROFILE_TYPE, labels.profile_type.name().to_owned());
    add(TEMPORALITY, labels.temporality.name().to_owned());
    if let Some(unit) = labels.unit {
        add(UNIT, unit.name().to_owned());
    }
    if let Some(period) = labels.period {
        add(PERIOD, format!("{}ns", period.nanoseconds()));
    }
    if labels.root_is_thread {
        add(FIRST_FRAME, "thread".to_owned());
    }
    if let Some(window) = labels.window {
        add(WINDOW_START, window.start.0.to_string());
        add(WINDOW_END, window.end.0.to_string());
    }
    if let Some(count) = labels.requests {
        add(REQUESTS, count.to_string());
    }
    if let Some(window) = labels.requests_window {
        add(REQUESTS_START, window.start.0.to_string());
        add(REQUESTS_END, window.end.0.to_string());
    }
    pairs
}

#[cfg(test)]
mod tests {
    use fleetdiff_schemas::identity::Identity;
    use fleetdiff_schemas::rejected::Reason;

    use super::*;

    fn whole() -> Labels {
        Labels {
            identity: Arc::new(Identity {
                service: "checkout".into(),
                build: "v42".into(),
                region: "eu-west-1".into(),
                cohort: "größe, \"L\"".into(),
                hardware: "m7g".into(),
                node: Some("node-1".into()),
                pod: "pod-1".into(),
                process_start: Some(Nanos(17)),
            }),
            profile_type: ProfileType::Heap,
            temporality: Temporality::Cumulative,
            window: Some(TimeRange { start: Nanos(-3), end: Nanos(1_751_241_600_000_000_123) }),
            sent_at: Some(Nanos(1_751_241_600_001_000_000)),
            requests: Some(u64::MAX / 2),
            requests_window: Some(TimeRange { start: Nanos(1), end: Nanos(2) }),
            unit: Some(fleetdiff_formats::Unit::Milliseconds),
            period: fleetdiff_formats::Period::of_nanoseconds(52_631_578),
            root_is_thread: true,
        }
    }

    fn bare() -> Labels {
        let identity = Identity { node: None, process_start: None, ..(*whole().identity).clone() };
        Labels {
            identity: Arc::new(identity),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window: None,
            sent_at: None,
            requests: None,
            requests_window: None,
            unit: None,
            period: None,
            root_is_thread: false,
        }
    }

    fn read_back(labels: &Labels, mapping: &IdentityMapping) -> Result<Labels, Rejection> {
        let headers = of_labels(labels, mapping);
        RecordHeaders::of(Some(headers.as_borrowed())).labels(mapping, labels.sent_at)
    }

    #[test]
    fn labels_written_and_read_back_are_the_same() {
        let own_names = IdentityMapping {
            pod: vec!["host.name+process.pid".into(), "my.pod".into()],
            cohort: vec!["tier".into()],
            ..IdentityMapping::default()
        };
        for mapping in [IdentityMapping::default(), own_names] {
            for labels in [whole(), bare()] {
                assert_eq!(read_back(&labels, &mapping), Ok(labels));
            }
        }
    }

    #[test]
    fn a_header_that_occurs_twice_counts_as_its_last() {
        let headers = of_labels(&bare(), &IdentityMapping::default());
        let headers = headers.insert(Header { key: "service.version", value: Some("v43") });
        let read = RecordHeaders::of(Some(headers.as_borrowed())).labels(&IdentityMapping::default(), None);
        assert_eq!(read.map(|labels| labels.identity.build.to_string()), Ok("v43".to_owned()));
    }

    #[test]
    fn a_rejection_says_all_that_is_known_of_the_record() {
        let mut labels = whole();
        labels.temporality = Temporality::Delta;
        let headers = of_labels(&labels, &IdentityMapping::default());
        let headers = headers.insert(Header { key: REQUESTS, value: Some("many") });
        let fault = RecordHeaders::of(Some(headers.as_borrowed()))
            .labels(&IdentityMapping::default(), None)
            .expect_err("many is no number");
        assert_eq!(fault.reason, Reason::Malformed);
        assert_eq!(fault.profile_type, Some(ProfileType::Heap));
        assert_eq!(fault.at, labels.window.map(TimeRange::midpoint));
        assert!(fault.detail.contains(REQUESTS), "{}", fault.detail);
    }
}
