//! The client of HTTP that all of this crate uses.

use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Error};

/// A client that follows no redirect and takes every status for an answer.
pub(crate) fn agent() -> Agent {
    // NB: the system's certificates by OpenSSL, which librdkafka uses too.
    let tls = TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(RootCerts::PlatformVerifier).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("fleetdiff/", env!("CARGO_PKG_VERSION")))
        .build();
    config.new_agent()
}

/// Why there is no answer, without the URL, which may hold what is secret; what is the system's own words goes through `scrubbed`.
pub(crate) fn in_words(error: &Error, seconds: f32, scrubbed: impl Fn(&str) -> String) -> String {
    match error {
        Error::Timeout(_) => format!("no answer within {seconds} s"),
        Error::HostNotFound => "the host is unknown".to_owned(),
        Error::Io(error) => scrubbed(&error.to_string()),
        Error::NativeTls(error) => format!("TLS: {}", scrubbed(&error.to_string())),
        Error::Protocol(_) => "the answer is not HTTP".to_owned(),
        Error::ConnectionFailed => "the connection failed".to_owned(),
        Error::ConnectProxyFailed(_) | Error::InvalidProxyUrl => "the proxy refused".to_owned(),
        _ => "the request failed".to_owned(),
    }
}
