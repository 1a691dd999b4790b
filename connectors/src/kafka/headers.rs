//! The headers of a record that carries one profile in a format which does not say whose it is.
//!
//! Identity stands under OpenTelemetry's names ([`IdentityMapping`]); what OpenTelemetry has no name for stands under
//! the names below. Written and read back, they give the same [`Labels`].

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use rdkafka::message::{BorrowedHeaders, Header, Headers, OwnedHeaders};

use super::identity::IdentityMapping;
use crate::formats::Labels;

/// Profile type (`cpu`, `off_cpu`, `wall`, `heap`, `mutex`, `block`); `cpu` if absent.
pub const PROFILE_TYPE: &str = "fleetdiff.profile_type";
/// `delta`, `cumulative` or `gauge`; `delta` if absent.
pub const TEMPORALITY: &str = "fleetdiff.temporality";
/// What the values are in, where the format does not say it.
pub const UNIT: &str = "fleetdiff.unit";
/// Start of the profile's window, nanoseconds since the Unix epoch; needs [`WINDOW_END`].
pub const WINDOW_START: &str = "fleetdiff.window_start_unix_nano";
/// End of the profile's window.
pub const WINDOW_END: &str = "fleetdiff.window_end_unix_nano";
/// Operations that the pod served.
pub const REQUESTS: &str = "fleetdiff.requests";
/// Start of the time in which it served them, if not the profile's window; needs [`REQUESTS_END`].
pub const REQUESTS_START: &str = "fleetdiff.requests_start_unix_nano";
/// End of that time.
pub const REQUESTS_END: &str = "fleetdiff.requests_end_unix_nano";

/// The headers of one record. Of a name that stands twice the last one counts, as with Kafka's own clients.
#[derive(Clone, Debug, Default)]
pub struct RecordHeaders<'a> {
    entries: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> RecordHeaders<'a> {
    /// The headers as the client library hands them over. Bytes that are no UTF-8 are replaced.
    pub(crate) fn of(headers: Option<&'a BorrowedHeaders>) -> Self {
        let entries = headers.into_iter().flat_map(Headers::iter);
        Self {
            entries: entries
                .filter_map(|header| header.value.map(|value| (header.key, String::from_utf8_lossy(value))))
                .collect(),
        }
    }

    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }

    /// What the headers say about the record's profile; `sent_at` is the broker's time for it.
    ///
    /// # Errors
    /// A rejection that names the header at fault: [`Reason::MissingIdentity`], [`Reason::UnsupportedType`],
    /// [`Reason::UnitMismatch`], [`Reason::NegativeValue`] or [`Reason::Malformed`].
    pub fn labels(&self, mapping: &IdentityMapping, sent_at: Option<Nanos>) -> Result<Labels, Rejection> {
        let profile_type = match self.get(PROFILE_TYPE) {
            None => ProfileType::Cpu,
            Some(name) => ProfileType::from_str(name)
                .map_err(|detail| fault(Reason::UnsupportedType, PROFILE_TYPE, &detail))?,
        };
        let typed = |rejection: Rejection| Rejection { profile_type: Some(profile_type), ..rejection };
        let window = self.window(WINDOW_START, WINDOW_END).map_err(typed)?;
        let timed = |rejection: Rejection| Rejection {
            at: rejection.at.or_else(|| window.map(TimeRange::midpoint)),
            ..typed(rejection)
        };
        let identity = mapping.resolve(&|name| self.get(name).map(Cow::Borrowed)).map_err(timed)?;
        Ok(Labels {
            identity: Arc::new(identity),
            profile_type,
            temporality: self.temporality().map_err(timed)?,
            window,
            sent_at,
            requests: self.requests().map_err(timed)?,
            requests_window: self.window(REQUESTS_START, REQUESTS_END).map_err(timed)?,
            unit: match self.get(UNIT) {
                None => None,
                Some(name) => Some(
                    name.parse()
                        .map_err(|detail: String| timed(fault(Reason::UnitMismatch, UNIT, &detail)))?,
                ),
            },
        })
    }

    fn temporality(&self) -> Result<Temporality, Rejection> {
        match self.get(TEMPORALITY) {
            None | Some("delta") => Ok(Temporality::Delta),
            Some("cumulative") => Ok(Temporality::Cumulative),
            Some("gauge") => Ok(Temporality::Gauge),
            Some(other) => {
                let detail = format!("{other:?}, expected delta, cumulative or gauge");
                Err(fault(Reason::UnsupportedType, TEMPORALITY, &detail))
            }
        }
    }

    fn requests(&self) -> Result<Option<u64>, Rejection> {
        let Some(count) = self.whole(REQUESTS)? else { return Ok(None) };
        u64::try_from(count)
            .map(Some)
            .map_err(|_| fault(Reason::NegativeValue, REQUESTS, &format!("{count} requests")))
    }

    fn window(&self, start: &str, end: &str) -> Result<Option<TimeRange>, Rejection> {
        match (self.whole(start)?, self.whole(end)?) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) if from <= to => Ok(Some(TimeRange { start: Nanos(from), end: Nanos(to) })),
            (Some(_), Some(_)) => Err(fault(Reason::Malformed, end, "the window ends before it starts")),
            (Some(_), None) => Err(fault(Reason::Malformed, end, "it is needed beside the window's start")),
            (None, Some(_)) => Err(fault(Reason::Malformed, start, "it is needed beside the window's end")),
        }
    }

    fn whole(&self, name: &str) -> Result<Option<i64>, Rejection> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.trim()
            .parse()
            .map(Some)
            .map_err(|_| fault(Reason::Malformed, name, &format!("{text:?} is no whole number")))
    }
}

fn fault(reason: Reason, header: &str, detail: &str) -> Rejection {
    Rejection::new(reason, format!("header {header}: {detail}"))
}

/// The headers that [`RecordHeaders::labels`] reads back as these labels (all but `sent_at`, which the broker gives).
pub fn of_labels(labels: &Labels, mapping: &IdentityMapping) -> OwnedHeaders {
    pairs(labels, mapping).iter().fold(OwnedHeaders::new(), |headers, (name, value)| {
        headers.insert(Header { key: name, value: Some(value.as_str()) })
    })
}

fn pairs(labels: &Labels, mapping: &IdentityMapping) -> Vec<(String, String)> {
    let mut pairs = identity_pairs(&labels.identity, mapping);
    let mut add = |name: &str, value: String| pairs.push((name.to_owned(), value));
    add(PROFILE_TYPE, labels.profile_type.name().to_owned());
    add(TEMPORALITY, temporality_name(labels.temporality).to_owned());
    if let Some(unit) = labels.unit {
        add(UNIT, unit.name().to_owned());
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

fn identity_pairs(identity: &Identity, mapping: &IdentityMapping) -> Vec<(String, String)> {
    let start = identity.process_start.map(|at| at.0.to_string());
    [
        (&mapping.service, Some(identity.service.as_str())),
        (&mapping.build, Some(identity.build.as_str())),
        (&mapping.region, Some(identity.region.as_str())),
        (&mapping.cohort, Some(identity.cohort.as_str())),
        (&mapping.hardware, Some(identity.hardware.as_str())),
        (&mapping.node, identity.node.as_ref().map(fleetdiff_schemas::identity::NodeId::as_str)),
        (&mapping.pod, Some(identity.pod.as_str())),
        (&mapping.process_start, start.as_deref()),
    ]
    .into_iter()
    .filter_map(|(names, value)| Some((single(names)?.to_owned(), value?.to_owned())))
    .collect()
}

/// The most trusted name that stands alone; a joined one cannot be written from one value.
fn single(names: &[String]) -> Option<&str> {
    names.iter().map(String::as_str).find(|name| !name.contains('+'))
}

fn temporality_name(temporality: Temporality) -> &'static str {
    match temporality {
        Temporality::Delta => "delta",
        Temporality::Cumulative => "cumulative",
        Temporality::Gauge => "gauge",
    }
}

#[cfg(test)]
mod tests {
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
            unit: Some(crate::formats::Unit::Milliseconds),
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
    fn a_header_that_stands_twice_counts_as_its_last() {
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
