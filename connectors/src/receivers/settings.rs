//! What a receiver is, and how to reach it. What may be secret is never shown.

use std::fmt;
use std::time::Duration;

use fleetdiff_schemas::alert::{AlertType, fits_pattern};
use fleetdiff_schemas::verdict::Severity;
use ureq::http::Uri;

/// What a receiver understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverKind {
    /// Prometheus' Alertmanager: one alert per incident.
    Alertmanager,
    /// Slack, or what takes the messages of its incoming webhooks: one message per event.
    Slack,
    /// Anything that takes JSON: one request per event.
    Webhook,
}

impl ReceiverKind {
    /// Every kind with its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("alertmanager", Self::Alertmanager), ("slack", Self::Slack), ("webhook", Self::Webhook)];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same after a prefix.
    pub fn with_prefix(&self, prefix: &str) -> Self {
        Self(format!("{prefix}{}", self.0))
    }

    /// For the places that send it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Where a receiver is. It shows scheme, host and port; its path is a secret, as those of incoming webhooks are.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    uri: Uri,
}

impl Endpoint {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is expected of it, in words that do not repeat it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let expected = "must be a URL such as https://alertmanager.example:9093";
        let uri: Uri = url.trim().parse().map_err(|_| expected)?;
        let authority = uri.authority().ok_or(expected)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || authority.host().is_empty() {
            return Err(expected);
        }
        if authority.as_str().contains('@') {
            return Err("must not hold a user or password; set the header Authorization, or a bearer token");
        }
        Ok(Self { uri })
    }

    /// Reads a URL that is secret.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of(url: &Secret) -> Result<Self, &'static str> {
        Self::parse(url.expose())
    }

    /// The URL of requests of a kind: Alertmanager has its own path below the address.
    pub(super) fn url(&self, kind: ReceiverKind) -> String {
        let url = self.uri.to_string();
        match kind {
            ReceiverKind::Alertmanager if !self.uri.path().ends_with(ALERTS_PATH) => {
                format!("{}{ALERTS_PATH}", url.trim_end_matches('/'))
            }
            _ => url,
        }
    }

    /// Parts of the URL that must not be shown.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let query = self.uri.query().unwrap_or_default();
        self.uri.path().split('/').chain(query.split(['&', '='])).filter(|part| part.len() >= SHORTEST_SECRET)
    }
}

/// Where Alertmanager takes alerts.
const ALERTS_PATH: &str = "/api/v2/alerts";

/// Shorter parts of a path are words such as `services`, `v2` or `hooks`.
const SHORTEST_SECRET: usize = 9;

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{authority}", self.uri.scheme_str().unwrap_or_default())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which events a receiver gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// An incident is sent once it is at least this severe, and then followed to its end.
    pub minimum_severity: Severity,
    /// Patterns of services, `*` for any text; every service if there are none.
    pub services: Vec<String>,
    /// Types of events. NB: Alertmanager needs all types of events of incidents.
    pub events: Vec<AlertType>,
}

impl Default for Filter {
    fn default() -> Self {
        let events = AlertType::ALL.into_iter().filter(|kind| *kind != AlertType::Verdict).collect();
        Self { minimum_severity: Severity::Info, services: Vec::new(), events }
    }
}

impl Filter {
    pub(super) fn has_service(&self, service: &str) -> bool {
        self.services.is_empty() || self.services.iter().any(|pattern| fits_pattern(pattern, service))
    }
}

/// One receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverSettings {
    /// Its name in logs, metrics and the folder of its state.
    pub name: String,
    /// What it understands.
    pub kind: ReceiverKind,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// The template of messages, instead of the kind's own. Not for Alertmanager.
    pub template: Option<String>,
    /// What it gets.
    pub filter: Filter,
    /// How long one request may take.
    pub timeout: Duration,
    /// How often alerts that stand are sent again; Alertmanager resolves them after four times that. Only for Alertmanager.
    pub resend_every: Duration,
    /// How many events may wait.
    pub queue: usize,
    /// Events that happened longer ago are not sent, so that a service which reads an old topic wakes nobody; zero for no limit.
    pub maximum_age: Duration,
    /// The wait before the first retry; it doubles with each.
    pub first_retry: Duration,
}

impl ReceiverSettings {
    /// The defaults of a kind.
    pub fn new(name: impl Into<String>, kind: ReceiverKind, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            kind,
            endpoint,
            headers: Vec::new(),
            template: None,
            filter: Filter::default(),
            timeout: Duration::from_secs(10),
            resend_every: Duration::from_secs(60),
            queue: 1000,
            maximum_age: Duration::from_secs(3600),
            first_retry: Duration::from_secs(1),
        }
    }

    /// A text of others, without what is secret here.
    pub(super) fn scrubbed(&self, text: &str) -> String {
        let headers = self.headers.iter().flat_map(|(_, value)| value.expose().split_whitespace());
        let secrets = headers.filter(|part| part.len() >= 4).chain(self.endpoint.secrets());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "(secret)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_shows_scheme_host_and_port_only() {
        let endpoint =
            Endpoint::parse("https://hooks.example:8443/services/T0001/B0002/hunter2hunter2?key=hunter3hunter3")
                .unwrap();
        assert_eq!(format!("{endpoint} {endpoint:?}"), "https://hooks.example:8443 https://hooks.example:8443");
        let settings = ReceiverSettings {
            headers: vec![("Authorization".to_owned(), Secret::new("Bearer hunter4"))],
            ..ReceiverSettings::new("chat", ReceiverKind::Slack, endpoint)
        };
        let shown = settings.scrubbed("no hunter2hunter2 and hunter3hunter3 for hunter4 at services");
        assert_eq!(shown, "no (secret) and (secret) for (secret) at services");
        assert!(!format!("{settings:?}").contains("hunter"));
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        for url in ["", "hunter2", "ftp://hunter2/", "http://", "/hunter2", "https://me:hunter2@host/"] {
            let refusal = Endpoint::parse(url).unwrap_err();
            assert!(!refusal.contains("hunter"), "{url}: {refusal}");
        }
    }

    #[test]
    fn the_path_of_alertmanager_is_added_once() {
        for (url, full) in [
            ("http://am:9093", "http://am:9093/api/v2/alerts"),
            ("http://am:9093/", "http://am:9093/api/v2/alerts"),
            ("http://am/prefix/", "http://am/prefix/api/v2/alerts"),
            ("http://am/api/v2/alerts", "http://am/api/v2/alerts"),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().url(ReceiverKind::Alertmanager), full);
        }
        assert_eq!(Endpoint::parse("http://hook/x").unwrap().url(ReceiverKind::Slack), "http://hook/x");
    }
}
