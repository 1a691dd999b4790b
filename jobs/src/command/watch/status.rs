//! The state of a service as JSON.

use std::collections::BTreeSet;

use fleetdiff_pipeline::run::pulse::{Frontier, PartitionName, PartitionState, PartitionVitals};
use fleetdiff_schemas::identity::Service;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;
use serde_json::{Map, Value as Json, json};

use super::console::{InUse, Overview};
use super::done::CheckpointDone;

/// The most pods that are named at once.
const NAMED: usize = 100;

/// What `/status` answers.
pub(crate) fn status(overview: &Overview) -> Json {
    let Overview { vitals, done, now, diagnosis, .. } = overview;
    let frontier = vitals.frontier().map(|Frontier { name: (topic, number), from, .. }| {
        let at = if from.0 == 0 { Json::Null } else { rfc3339(now.clock.start_of(from)).into() };
        json!({ "topic": topic.as_ref(), "partition": number, "watermark": at })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "at": second(now.wall),
        "started_at": second(now.wall_of(vitals.started_at)),
        "condition": diagnosis.condition.name(),
        "reason": diagnosis.reason,
        "ready": overview.not_ready().is_none(),
        "frontier": frontier,
        "partitions": vitals.partitions.iter().map(|(name, partition)| of_partition(name, partition, overview)).collect::<Vec<_>>(),
        "transports": transports(overview),
        "rejected": vitals.refused().iter().map(|(reason, count)| (reason.name().to_owned(), (*count).into())).collect::<Map<_, _>>(),
        "limits_exceeded": done.exceeded.iter().map(|(what, (samples, services))| json!({
            "limit": what.name(),
            "services": services.iter().map(Service::as_str).collect::<Vec<_>>(),
            "samples_together": samples,
        })).collect::<Vec<_>>(),
        "wrong_clocks": { "ahead": named(&done.clocks.ahead), "behind": named(&done.clocks.behind) },
        "comparisons": done.open.iter().map(|key| json!({
            "service": key.service.as_str(),
            "profile_type": key.profile_type.name(),
            "base_build": key.base_build.as_str(),
            "head_build": key.head_build.as_str(),
        })).collect::<Vec<_>>(),
        "cells": done.cells,
        "functions_tested": done.tested,
        "looks": done.looks,
        "families": done.families,
        "last_close": last_close(overview),
        "retrying": vitals.output.waiting.iter().map(|(what, waits)| json!({
            "what": what,
            "since": second(now.wall_of(waits.since)),
            "detail": waits.detail,
        })).collect::<Vec<_>>(),
        "writing_since": vitals.output.writing.map(|writing| second(now.wall_of(writing.since))),
        "alerts": { "sent": done.alerts, "last_at": done.alerted_at.map(second) },
        "files": { "complete": done.files, "last_at": done.flushed_at.map(second) },
        "checkpoint": done.checkpoint.map(checkpoint),
        "memory": memory(overview),
        "workers": vitals.workers.iter().map(|(worker, &step)| json!({
            "worker": worker,
            "last_step_seconds": now.age(step).as_secs(),
        })).collect::<Vec<_>>(),
        "receivers": overview.receivers.iter().map(|(name, counts)| json!({
            "name": name,
            "sent": counts.sent,
            "failed": counts.failed,
            "dropped": counts.dropped,
            "waiting": counts.waiting,
        })).collect::<Vec<_>>(),
        "configuration": overview.in_use.configuration,
        "configuration_reload": reload(&overview.in_use),
    })
}

/// How many pods are, and the names of the first of them.
fn named(pods: &BTreeSet<String>) -> Json {
    json!({ "count": pods.len(), "pods": pods.iter().take(NAMED).collect::<Vec<_>>() })
}

fn of_partition((topic, number): &PartitionName, partition: &PartitionVitals, overview: &Overview) -> Json {
    let now = &overview.now;
    let (state, watermark) = match partition.state {
        PartitionState::Silent => ("silent", None),
        PartitionState::Watermark(hop) => ("gives", Some(now.clock.start_of(hop))),
        PartitionState::Idle => ("idle", None),
        PartitionState::Ended => ("ended", None),
    };
    let given = &partition.given;
    json!({
        "topic": topic.as_ref(),
        "partition": number,
        "state": state,
        "held_back": partition.held_back,
        "waits_for_agreement": partition.early,
        "watermark": watermark.map(rfc3339),
        "watermark_age_seconds": watermark.map(|at| seconds(now.wall.since(at))),
        "next_offset": partition.next_offset,
        "end_offset": partition.end,
        "lag_records": partition.lag(),
        "lag_seconds": overview.lag_time(partition).map(seconds),
        "records": given.records,
        "taken": given.taken,
        "late": given.late,
        "too_late": given.too_late,
        "lost_records": given.lost,
        "rejected": given.refused_in_all(),
        "last_rejection": given.last_refusal.as_ref().map(|refusal| json!({
            "offset": refusal.offset,
            "reason": refusal.reason.name(),
            "detail": refusal.detail,
        })),
        "last_record_at": given.last_at.map(|at| second(now.wall_of(at))),
    })
}

fn transports(overview: &Overview) -> Vec<Json> {
    let Overview { vitals, now, .. } = overview;
    let each = vitals.transports.iter().map(|((topic, worker), health)| {
        let trouble = health.trouble.as_ref();
        json!({
            "topic": topic.as_ref(),
            "worker": worker,
            "unreachable_since": trouble.map(|trouble| second(now.wall_of(trouble.since))),
            "detail": trouble.map(|trouble| trouble.detail.as_str()),
            "fetched_bytes": health.fetched_bytes,
        })
    });
    each.collect()
}

/// What takes memory.
fn memory(overview: &Overview) -> Json {
    let vitals = &overview.vitals;
    json!({
        "resident_bytes": overview.resident_bytes,
        "fetched_bytes": vitals.transports.values().map(|health| health.fetched_bytes).sum::<u64>(),
        "window_bytes": vitals.memory.held.window_bytes,
        "function_names": vitals.memory.functions,
        "call_paths": vitals.memory.paths,
        "cells": vitals.memory.held.cells,
        "builds": vitals.memory.held.builds,
        "pods": vitals.memory.held.pods,
    })
}

/// The last checkpoint.
fn checkpoint(CheckpointDone { through, at, bytes }: CheckpointDone) -> Json {
    json!({ "through": second(through), "last_at": second(at), "bytes": bytes })
}

fn last_close(Overview { vitals, now, .. }: &Overview) -> Option<Json> {
    vitals.output.closed.map(|closed| {
        json!({
            "through": rfc3339(now.clock.end_of(closed.hop)),
            "at": second(now.wall_of(closed.at)),
            "seconds_ago": now.age(closed.at).as_secs(),
        })
    })
}

fn reload(in_use: &InUse) -> Json {
    json!({
        "read_at": second(in_use.read_at),
        "succeeded": in_use.reloads,
        "failed": in_use.refusals,
        "error": in_use.refused,
        "needs_restart": in_use.needs_restart,
    })
}

/// A moment of the wall clock, to the second.
fn second(at: Nanos) -> String {
    rfc3339(Nanos(at.0 / 1_000_000_000 * 1_000_000_000))
}

fn seconds(length: Nanos) -> i64 {
    length.0 / 1_000_000_000
}
