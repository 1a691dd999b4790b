//! Requests over HTTP, each within its time; what is secret about them is not shown.

use std::io::Read;
use std::time::Duration;

use fleetdiff_schemas::time::Nanos;
use ureq::{Agent, Body};

use super::parcel::Parcel;
use super::retry::Answer;
use super::settings::ReceiverSettings;
use crate::agent::{agent, in_words};

/// How much of an answer is read, and shown.
const READ: u64 = 4096;
const SHOWN: usize = 200;

/// The client of one receiver.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    settings: ReceiverSettings,
    url: String,
}

impl Client {
    pub(super) fn new(settings: &ReceiverSettings) -> Self {
        Self { agent: agent(), settings: settings.clone(), url: settings.endpoint.url(settings.kind) }
    }

    /// Sends a request and waits for the answer, at most for `timeout`.
    pub(super) fn send(&self, parcel: &Parcel, timeout: Duration, now: Nanos) -> Answer {
        let mut request = self
            .agent
            .post(&self.url)
            .config()
            .timeout_global(Some(timeout))
            .build()
            .header("content-type", parcel.content_type);
        if let Some(key) = &parcel.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        for (name, value) in &self.settings.headers {
            request = request.header(name, value.expose());
        }
        match request.send(parcel.body.as_bytes()) {
            Ok(mut response) => self.answer(&mut response, now),
            // NB: some of the library's own texts hold the URL.
            Err(error) => Answer::Silence(in_words(&error, timeout.as_secs_f32(), |text| self.settings.scrubbed(text))),
        }
    }

    fn answer(&self, response: &mut ureq::http::Response<Body>, now: Nanos) -> Answer {
        let status = response.status();
        let mut body = Vec::new();
        // What is missing of the body is not worth another attempt: the status is known.
        let _ = response.body_mut().as_reader().take(READ).read_to_end(&mut body);
        if status.is_success() {
            return Answer::Accepted;
        }
        let asked = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        Answer::Refused {
            status: status.as_u16(),
            excerpt: self.excerpt(&String::from_utf8_lossy(&body)),
            retry_after: asked.and_then(|text| retry_after(text, now)),
        }
    }

    fn excerpt(&self, body: &str) -> String {
        let shown: String = self.settings.scrubbed(body).chars().take(SHOWN).collect();
        shown.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "")
    }
}

/// Seconds, or a date.
fn retry_after(text: &str, now: Nanos) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
    let at = i64::try_from(date.timestamp().as_nanosecond()).ok()?;
    u64::try_from(Nanos(at).since(now).0).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Nanos::from_seconds(1_445_412_400);
        assert_eq!(retry_after("7", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(80)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:20:00 GMT", now), None, "in the past");
        assert_eq!(retry_after("soon", now), None);
    }
}
