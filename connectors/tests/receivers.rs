//! Receivers over a network: a real Alertmanager shows one alert per incident, and a webhook that fails in every way gets each
//! event once and in order.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/alertmanager.rs"]
mod alertmanager;
#[path = "receivers/changes.rs"]
mod changes;
#[path = "receivers/findings.rs"]
mod findings;
#[path = "support/hook.rs"]
mod hook;
#[path = "receivers/incidents.rs"]
mod incidents;
#[path = "receivers/on_call.rs"]
mod on_call;
#[path = "receivers/webhooks.rs"]
mod webhooks;
