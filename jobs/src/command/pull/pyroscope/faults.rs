//! What a server does not give, and what to do about it.

use std::collections::BTreeSet;

use fleetdiff_connectors::pull::pyroscope::{Pyroscope, Query, StoredPod};
use fleetdiff_connectors::pull::{Pull, PullError};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::TimeRange;

use super::super::PullArgs;
use super::super::tally::Tally;
use crate::failure::Failure;

/// More names than this are not listed.
const LISTED: usize = 20;

/// A server, and where it is.
pub(super) struct Server<'a> {
    pub(super) client: Pyroscope,
    pub(super) url: &'a str,
}

impl Server<'_> {
    /// Why nothing comes from the beginning on.
    pub(super) fn failure(&self, fault: &PullError) -> Failure {
        let hint = match fault {
            PullError::Silence(_) | PullError::Cut(_) => "see that Pyroscope serves its query API there",
            PullError::Refused { status: 401 | 403, .. } => {
                "give --bearer-token-file, or --user with --password-file, and --tenant where the server keeps several"
            }
            // NB: Pyroscope 1.7 answers with 500 where a selector cannot be read.
            PullError::Refused { status: 400.., excerpt } if excerpt.contains("label selector") => {
                "write --query as in '{service_name=\"shop\", namespace=\"prod\"}'"
            }
            PullError::Refused { status: 429 | 500..=599, .. } => "the server failed; try again, or see its log",
            PullError::Refused { .. } | PullError::Foreign(_) => {
                "give the URL of Pyroscope itself, below which /querier.v1.QuerierService is"
            }
            PullError::TooLarge(_) => "narrow --query",
        };
        Failure::with_hint(format!("{} does not answer as Pyroscope: {fault}", self.url), hint)
    }

    /// Why it goes no further than to a slice.
    pub(super) fn lost(&self, fault: &PullError, slice: TimeRange) -> Failure {
        let from = rfc3339(slice.start);
        let cause = format!("{} gives nothing any more: {fault}", self.url);
        Failure::with_hint(cause, format!("what was pulled is kept; go on with --from {from}"))
    }
}

fn listed(names: &[String]) -> String {
    let more = if names.len() > LISTED { ", ..." } else { "" };
    format!("{}{more}", names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// Nothing matches, in words.
pub(super) fn no_series(query: &Query, within: TimeRange) -> String {
    let [from, until] = [within.start, within.end].map(rfc3339);
    format!("no series match {} from {from} to {until}", query.as_str())
}

/// What there is in its place.
pub(super) fn instead(services: &[String]) -> String {
    match services {
        [] => "nothing at all is stored of that time; see --from, --until and --tenant".to_owned(),
        some => format!("what is stored of that time is of service_name {}", listed(some)),
    }
}

/// No pod has a type.
pub(super) fn no_type(what: Pull, pods: &[StoredPod]) -> String {
    let stored: BTreeSet<&String> = pods.iter().flat_map(|pod| &pod.types).collect();
    let stored: Vec<String> = stored.into_iter().cloned().collect();
    format!(
        "no pod has stored {} profiles that can be counted; stored are {}",
        what.profile_type().name(),
        listed(&stored)
    )
}

/// The option that says for all pods what no label does.
pub(super) fn or_option(what: &str) -> String {
    if what == "pod" { String::new() } else { format!(", or give --{what}") }
}

/// Not one profile came.
pub(super) fn nothing_pulled(tally: &Tally, within: TimeRange, args: &PullArgs) -> Failure {
    let [from, until] = [within.start, within.end].map(rfc3339);
    let types: Vec<&str> = args.types.iter().map(|what| what.profile_type().name()).collect();
    let hint = format!("nothing of {} is stored from {from} to {until} for what --query selects", types.join(", "));
    Failure::with_hint(format!("nothing was pulled: {}", tally.in_words()), hint)
}
