//! Asks a server of Grafana Pyroscope for what it has stored, by its query API: which pods there are ([`pods`](Pyroscope::pods)), and what
//! each of them did in a stretch of time ([`profile`](Pyroscope::profile)).
//!
//! The API is Connect's, `POST /querier.v1.QuerierService/METHOD`, with messages in JSON, or in protobuf where the answer is a pprof
//! profile: so its bytes are that profile. Times are whole milliseconds, and a profile counts where its time is within them, both ends
//! included. A stretch is therefore asked for from 1 ms before its start to 1 ms before its end: those of one stretch after another then share
//! no profile whose time is a whole second, or that is known to the nanosecond, and leave none out.

mod columns;
mod pods;
mod query;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fleetdiff_formats::pprof::delta::{Join, join};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ureq::Agent;

use super::{Pull, PullError, body};
use crate::agent::{agent, in_words};
use crate::receivers::Secret;

pub use pods::{PodLabels, StoredPod, Unlabelled};
pub use query::{NoQuery, Query};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the methods are.
const SERVICE: &str = "querier.v1.QuerierService";

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The value of the header `Authorization`.
    pub authorization: Option<Secret>,
    /// Whose profiles they are, where the server keeps those of several.
    pub tenant: Option<String>,
}

impl Credentials {
    /// What basic authentication sends.
    pub fn basic(user: &str, password: &Secret) -> Secret {
        let pair = format!("{user}:{}", password.expose());
        Secret::new(format!("Basic {}", STANDARD.encode(pair)))
    }
}

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Pyroscope {
    agent: Agent,
    url: String,
    credentials: Credentials,
    /// The largest answer that is taken, in bytes without compression.
    most: u64,
}

/// The series within a time that match selectors, by these labels; by all of them if none is named.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SeriesRequest<'a> {
    matchers: &'a [&'a str],
    label_names: &'a [&'a str],
    start: i64,
    end: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeriesResponse {
    #[serde(default)]
    labels_set: Vec<Labels>,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: Vec<LabelPair>,
}

#[derive(Deserialize)]
struct LabelPair {
    name: String,
    #[serde(default)]
    value: String,
}

/// What is stored of one type of a selection, added up.
#[derive(Clone, PartialEq, prost::Message)]
struct SelectMergeProfileRequest {
    #[prost(string, tag = "1")]
    profile_type_id: String,
    #[prost(string, tag = "2")]
    label_selector: String,
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
}

impl Pyroscope {
    /// A client of the server at a URL, which takes answers of at most so many bytes.
    pub fn new(url: &str, credentials: Credentials, most: u64) -> Self {
        Self { agent: agent(), url: url.trim_end_matches('/').to_owned(), credentials, most }
    }

    /// The pods that have stored something within a time, and those series of the selection that no pod can be told from.
    ///
    /// # Errors
    /// See [`PullError`].
    pub fn pods(
        &self,
        query: &Query,
        labels: &PodLabels,
        within: TimeRange,
    ) -> Result<(Vec<StoredPod>, Vec<Unlabelled>), PullError> {
        let series = self.series(query, &[], within)?;
        Ok(pods::of_series(&series, query, labels))
    }

    /// The names of all services of which something is stored within a time.
    ///
    /// # Errors
    /// See [`PullError`].
    pub fn services(&self, within: TimeRange) -> Result<Vec<String>, PullError> {
        let series = self.series(&Query::all(), &["service_name"], within)?;
        let mut names: Vec<String> = series.into_iter().flatten().map(|(_, value)| value).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// What a pod did within a time, as gzipped pprof whose columns fleetdiff counts: nothing if it did nothing.
    ///
    /// # Errors
    /// See [`PullError`].
    pub fn profile(&self, pod: &StoredPod, what: Pull, within: TimeRange) -> Result<Option<Vec<u8>>, PullError> {
        let mut columns = Vec::new();
        for profile_type_id in pod.columns(what) {
            let (start, end) = milliseconds(within);
            let label_selector = pod.selector.clone();
            let asked = SelectMergeProfileRequest { profile_type_id, label_selector, start, end };
            columns.push(self.ask("SelectMergeProfile", "application/proto", &asked.encode_to_vec())?);
        }
        let joined = Join {
            columns: &columns,
            window: within,
            period: columns::period(what),
            max_bytes: usize::try_from(self.most).unwrap_or(usize::MAX),
        };
        join(joined).map_err(|fault| PullError::Foreign(fault.detail))
    }

    /// Label sets.
    fn series(
        &self,
        query: &Query,
        label_names: &[&str],
        within: TimeRange,
    ) -> Result<Vec<Vec<(String, String)>>, PullError> {
        let (start, end) = milliseconds(within);
        let asked = SeriesRequest { matchers: &[query.as_str()], label_names, start, end };
        let found: SeriesResponse = self.ask_json("Series", &asked)?;
        let pairs = |labels: Labels| labels.labels.into_iter().map(|pair| (pair.name, pair.value)).collect();
        Ok(found.labels_set.into_iter().map(pairs).collect())
    }

    fn ask_json<Answer: DeserializeOwned>(&self, method: &str, asked: &impl Serialize) -> Result<Answer, PullError> {
        let foreign = |fault: serde_json::Error| PullError::Foreign(fault.to_string());
        let bytes = self.ask(method, "application/json", &serde_json::to_vec(asked).map_err(foreign)?)?;
        serde_json::from_slice(&bytes).map_err(foreign)
    }

    fn ask(&self, method: &str, form: &str, asked: &[u8]) -> Result<Vec<u8>, PullError> {
        let url = format!("{}/{SERVICE}/{method}", self.url);
        let request = self.agent.post(&url).config().timeout_global(Some(PATIENCE)).build();
        let mut request = request.header("content-type", form).header("connect-protocol-version", "1");
        if let Some(authorization) = &self.credentials.authorization {
            request = request.header("authorization", authorization.expose());
        }
        if let Some(tenant) = &self.credentials.tenant {
            request = request.header("x-scope-orgid", tenant);
        }
        let silence = |error| PullError::Silence(in_words(&error, PATIENCE.as_secs_f32(), str::to_owned));
        let mut response = request.send(asked).map_err(silence)?;
        let is = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let is_of_form = is.is_some_and(|is| is.starts_with(form));
        let bytes = body(&mut response, self.most)?;
        if is_of_form { Ok(bytes) } else { Err(PullError::Foreign("it is of another content type".to_owned())) }
    }
}

/// The milliseconds that select a stretch: see the head of this file.
fn milliseconds(within: TimeRange) -> (i64, i64) {
    let before = |at: Nanos| at.0.div_euclid(1_000_000) - 1;
    (before(within.start), before(within.end))
}
