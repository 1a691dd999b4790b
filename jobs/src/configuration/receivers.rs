//! The tables `[[receivers]]` of the file: who gets incidents besides the topic or file of alerts.
//!
//! Their keys have no flags and no variables: there may be many receivers. What may be secret (URLs, tokens, headers) can be read from
//! a file or the environment, which happens only when receivers are used, and is shown nowhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetdiff_connectors::receivers::{Endpoint, Filter, ReceiverKind, ReceiverSettings, Secret};
use fleetdiff_schemas::alert::AlertType;
use fleetdiff_schemas::verdict::Severity;
use serde_json::Value as Json;

use super::problems::{Problem, Problems};
use super::setting::Setting;
use crate::secrets;

/// A receiver as it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// File and line.
    place: String,
    /// The folder to which its paths are relative: that of the configuration file.
    folder: PathBuf,
    pub(super) headers: Vec<(String, Secret)>,
    name: Option<String>,
    kind: Option<ReceiverKind>,
    url: Option<Secret>,
    url_file: Option<PathBuf>,
    url_env: Option<String>,
    bearer_token_file: Option<PathBuf>,
    bearer_token_env: Option<String>,
    template: Option<PathBuf>,
    minimum_severity: Option<Severity>,
    services: Option<Vec<String>>,
    events: Option<Vec<AlertType>>,
    timeout: Option<Duration>,
    resend_every: Option<Duration>,
    queue: Option<usize>,
    maximum_age: Option<Duration>,
}

/// One key of a receiver.
pub(super) struct ReceiverKey {
    pub(super) name: &'static str,
    /// A value as it may be written, in TOML.
    pub(super) example: &'static str,
    pub(super) meaning: &'static str,
    pub(super) expected: &'static str,
    pub(super) set: fn(&mut Receiver, &Json) -> bool,
    /// Its value, if it is set; null if it is secret.
    pub(super) get: fn(&Receiver) -> Option<Json>,
}

const fn expected<S: Setting>(_: fn(&Receiver) -> &Option<S>) -> &'static str {
    S::EXPECTED
}

fn set<S: Setting>(field: &mut Option<S>, value: &Json) -> bool {
    *field = S::from_json(value);
    field.is_some()
}

macro_rules! receiver_keys {
    ($($field:ident $example:literal: $meaning:literal;)*) => {
        &[$(ReceiverKey {
            name: stringify!($field),
            example: $example,
            meaning: $meaning,
            expected: expected(|receiver| &receiver.$field),
            set: |receiver, value| set(&mut receiver.$field, value),
            get: |receiver| receiver.$field.as_ref().map(Setting::to_json),
        }),*]
    };
}

/// The one key that is a table of its own.
pub(super) const HEADERS: &str = "headers";

/// Every other key of a receiver.
pub(super) const RECEIVER_KEYS: &[ReceiverKey] = receiver_keys! {
    name "\"oncall\"": "Name in logs, metrics and the folder receivers of the output: letters, digits, - and _.";
    kind "\"alertmanager\"": "alertmanager (one alert per incident), slack (incoming webhooks, one message per event) or webhook (one request per event).";
    url "\"http://alertmanager:9093\"": "Its URL, for alertmanager without /api/v2/alerts. Only scheme, host and port are ever shown.";
    url_file "\"/run/secrets/oncall-url\"": "Instead of url: a file that holds it.";
    url_env "\"ONCALL_URL\"": "Instead of url: a variable of the environment that holds it.";
    bearer_token_file "\"/run/secrets/oncall-token\"": "A file with the token of the header Authorization: Bearer.";
    bearer_token_env "\"ONCALL_TOKEN\"": "Instead of bearer_token_file: a variable of the environment.";
    template "\"message.json.jinja\"": "Template of the messages, for slack and webhook; relative to this file.";
    minimum_severity "\"info\"": "Only incidents of at least this severity: page, ticket or info. An incident that was sent is followed to its end.";
    services "[\"checkout*\"]": "Only these services; * stands for any text.";
    events "[\"raised\", \"updated\", \"superseded\", \"cleared\", \"scaling\", \"heap\"]": "Only these events, for slack and webhook; scaling is a function that scales worse with load, heap a hidden leak, verdict the verdict of a comparison.";
    timeout "\"10s\"": "How long a request may take.";
    resend_every "\"1m\"": "How often alerts that stand are sent again, for alertmanager; it resolves them after four times that without news.";
    queue "1000": "How many events may wait; then the latest of an incident replaces the one before it, and then the oldest is dropped.";
    maximum_age "\"1h\"": "Events that happened longer ago are not sent, so that a service that reads an old topic wakes nobody; 0s for no limit.";
};

impl Receiver {
    /// A receiver without any key.
    pub(super) fn at(place: String, folder: PathBuf) -> Self {
        Self { place, folder, ..Self::default() }
    }

    /// Its name, as far as it is known.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// What is wrong with it, whatever files and environment hold.
    pub(super) fn check(&self, others: &[Self], problems: &mut Vec<Problem>) {
        let mut need = |holds: bool, key: &str, what: &str| {
            if !holds {
                problems.push(self.problem(key, what.to_owned()));
            }
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = self.name();
        need(
            (1..=64).contains(&name.len()) && name.chars().all(is_name),
            "name",
            "must be 1 to 64 letters, digits, - and _",
        );
        need(
            !others.iter().any(|other| other.name == self.name),
            "name",
            "must differ from the names of other receivers",
        );
        need(self.kind.is_some(), "kind", &format!("must be {}", ReceiverKind::EXPECTED));
        let urls = [self.url.is_some(), self.url_file.is_some(), self.url_env.is_some()];
        need(
            urls.into_iter().filter(|is_set| *is_set).count() == 1,
            "url",
            "must be given once: as url, url_file or url_env",
        );
        let tokens = self.bearer_token_file.is_none() || self.bearer_token_env.is_none();
        need(tokens, "bearer_token_file", "must not be given together with bearer_token_env");
        let is_alertmanager = self.kind == Some(ReceiverKind::Alertmanager);
        need(self.template.is_none() || !is_alertmanager, "template", "is for slack and webhook only");
        need(
            self.events.is_none() || !is_alertmanager,
            "events",
            "is for slack and webhook only: Alertmanager needs every event of an incident",
        );
        need(self.resend_every.is_none() || is_alertmanager, "resend_every", "is for alertmanager only");
        let second = Duration::from_secs(1);
        need(self.resend_every.is_none_or(|length| length >= second), "resend_every", "must be at least 1s");
        need(self.timeout.is_none_or(|length| !length.is_zero()), "timeout", "must be longer than 0s");
        need(self.queue.is_none_or(|queue| queue > 0), "queue", "must be at least 1");
        if let Some(Err(what)) = self.url.as_ref().map(Endpoint::of) {
            problems.push(self.problem("url", what.to_owned()));
        }
    }

    fn problem(&self, key: &str, what: String) -> Problem {
        Problem { place: Some(self.place.clone()), key: format!("receivers.{key}"), what }
    }

    /// The receiver with what files and environment hold.
    fn read(&self) -> Result<ReceiverSettings, Problem> {
        let url = match (&self.url, &self.url_file, &self.url_env) {
            (Some(url), _, _) => url.clone(),
            (None, Some(path), _) => self.secret_file("url_file", path)?,
            (None, None, variable) => self.variable("url_env", variable.as_deref().unwrap_or_default())?,
        };
        let endpoint = Endpoint::of(&url).map_err(|what| self.problem("url", what.to_owned()))?;
        let token = match (&self.bearer_token_file, &self.bearer_token_env) {
            (Some(path), _) => Some(self.secret_file("bearer_token_file", path)?),
            (None, Some(variable)) => Some(self.variable("bearer_token_env", variable)?),
            (None, None) => None,
        };
        let token = token.map(|token| ("Authorization".to_owned(), token.with_prefix("Bearer ")));
        let template = self.template.as_deref().map(|path| self.file("template", path)).transpose()?;
        let kind = self.kind.ok_or_else(|| self.problem("kind", format!("must be {}", ReceiverKind::EXPECTED)))?;
        let defaults = ReceiverSettings::new(self.name(), kind, endpoint);
        let Filter { minimum_severity, services, events } = Filter::default();
        Ok(ReceiverSettings {
            headers: self.headers.iter().cloned().chain(token).collect(),
            template,
            filter: Filter {
                minimum_severity: self.minimum_severity.unwrap_or(minimum_severity),
                services: self.services.clone().unwrap_or(services),
                events: self.events.clone().unwrap_or(events),
            },
            timeout: self.timeout.unwrap_or(defaults.timeout),
            resend_every: self.resend_every.unwrap_or(defaults.resend_every),
            queue: self.queue.unwrap_or(defaults.queue),
            maximum_age: self.maximum_age.unwrap_or(defaults.maximum_age),
            ..defaults
        })
    }

    fn file(&self, key: &str, path: &Path) -> Result<String, Problem> {
        secrets::read(&self.folder.join(path)).map_err(|what| self.problem(key, what))
    }

    fn secret_file(&self, key: &str, path: &Path) -> Result<Secret, Problem> {
        secrets::of_file(&self.folder.join(path)).map_err(|what| self.problem(key, what))
    }

    fn variable(&self, key: &str, name: &str) -> Result<Secret, Problem> {
        secrets::of_variable(name).map_err(|what| self.problem(key, what))
    }
}

impl super::Configuration {
    /// The receivers with what files and environment hold.
    ///
    /// # Errors
    /// All that cannot be read, or is not what it must be.
    pub(crate) fn receivers(&self) -> Result<Vec<ReceiverSettings>, Problems> {
        let (mut settings, mut problems) = (Vec::new(), Vec::new());
        for receiver in &self.receivers {
            match receiver.read() {
                Ok(receiver) => settings.push(receiver),
                Err(problem) => problems.push(problem),
            }
        }
        Problems::none_or(problems).map(|()| settings)
    }
}

impl Setting for ReceiverKind {
    const EXPECTED: &'static str = "one of \"alertmanager\", \"slack\" and \"webhook\"";

    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
    }

    fn to_json(&self) -> Json {
        Json::from(self.name())
    }
}

impl Setting for Severity {
    const EXPECTED: &'static str = "one of \"page\", \"ticket\" and \"info\"";

    fn from_text(text: &str) -> Option<Self> {
        Self::from_name(text)
    }

    fn to_json(&self) -> Json {
        Json::from(self.name())
    }
}

/// Names of events, for short.
const EVENTS: [(&str, AlertType); 7] = [
    ("raised", AlertType::IncidentRaised),
    ("updated", AlertType::IncidentUpdated),
    ("superseded", AlertType::IncidentSuperseded),
    ("cleared", AlertType::IncidentCleared),
    ("scaling", AlertType::Scaling),
    ("heap", AlertType::Heap),
    ("verdict", AlertType::Verdict),
];

impl Setting for Vec<AlertType> {
    const EXPECTED: &'static str = "a list of \"raised\", \"updated\", \"superseded\", \"cleared\", \"scaling\", \"heap\" and \"verdict\", at least one";

    fn from_text(text: &str) -> Option<Self> {
        let event = |name: &str| EVENTS.iter().find(|(known, _)| *known == name.trim()).map(|(_, kind)| *kind);
        text.split(',').map(event).collect()
    }

    fn from_json(value: &Json) -> Option<Self> {
        Self::from_text(&Vec::<String>::from_json(value)?.join(","))
    }

    fn to_json(&self) -> Json {
        let names = self.iter().filter_map(|kind| EVENTS.iter().find(|(_, event)| event == kind));
        names.map(|(name, _)| Json::from(*name)).collect()
    }
}

impl Setting for Secret {
    const EXPECTED: &'static str = "a string";

    fn from_text(text: &str) -> Option<Self> {
        Some(Self::new(text))
    }

    /// NB: it is never written.
    fn to_json(&self) -> Json {
        Json::Null
    }
}
