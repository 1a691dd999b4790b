//! `generate`: a synthetic fleet whose truth is known, into a folder or onto a Kafka topic.

use std::io::Write;
use std::path::Path;

use fleetdiff_connectors::files::{FileFormat, FleetWriter};
use fleetdiff_connectors::kafka::publish::Outgoing;
use fleetdiff_formats::Format;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_simulation::fleet::{Cells, Fleet, FleetBuilder};

use crate::command::{GenerateSettings, Preset};
use crate::failure::Failure;
use crate::kafka::{broker_failure, configure, open_publisher, summary};
use crate::publish::bar;

/// Makes a fleet and prints what was made.
pub fn generate(settings: &GenerateSettings) -> Result<(), Failure> {
    let to_topic =
        settings.config.is_some() || settings.flags.has("kafka.brokers") || settings.flags.has("kafka.topic");
    match &settings.output {
        Some(_) if to_topic => {
            Err(Failure::usage("a fleet goes to one place", "give either --output or --brokers and --topic"))
        }
        Some(folder) => into_folder(settings, folder),
        None if to_topic => onto_topic(settings),
        None => Err(Failure::usage("nowhere to put the fleet", "give --output DIR, or --brokers and --topic")),
    }
}

fn into_folder(settings: &GenerateSettings, folder: &Path) -> Result<(), Failure> {
    let fleet = built(builder(settings)?.stacks())?;
    let mut writer = FleetWriter::create(folder, FileFormat::Pprof).map_err(Failure::of_fleet)?;
    let written = each_profile(&fleet, |profile| writer.write(&profile).map_err(Failure::of_fleet))?;
    writer.finish().map_err(Failure::of_fleet)?;
    writeln!(
        std::io::stdout(),
        "{written} profiles of {} pods, build {} beside {}, are in {}",
        fleet.pods(),
        fleet.head(),
        fleet.base(),
        folder.display()
    )?;
    Ok(())
}

fn onto_topic(settings: &GenerateSettings) -> Result<(), Failure> {
    let configuration = configure(settings.config.as_deref(), &settings.flags)?;
    let builder = builder(settings)?;
    // Counts folded by function are the same numbers, several times as fast; pprof has no place for them.
    let fleet = built(if configuration.kafka.format == Format::Delta { builder.folded() } else { builder.stacks() })?;
    let mut publisher = open_publisher(&configuration, settings.spread)?;
    let sent = each_profile(&fleet, |profile| publisher.publish(Outgoing::Profile(profile)).map_err(broker_failure))?;
    let acknowledged = publisher.finish(|_| {}).map_err(broker_failure)?;
    let summary = summary(&configuration, settings.spread, acknowledged)?;
    writeln!(
        std::io::stdout(),
        "{sent} profiles of {} pods, build {} beside {}: {summary}",
        fleet.pods(),
        fleet.head(),
        fleet.base()
    )?;
    Ok(())
}

/// Hands out each profile in the order of delivery; how many.
fn each_profile(fleet: &Fleet, mut take: impl FnMut(Profile) -> Result<(), Failure>) -> Result<u64, Failure> {
    let bar = bar(usize::try_from(fleet.profiles()).unwrap_or(usize::MAX), "profiles");
    let mut given = 0;
    for profile in fleet.partition(0, 1).flat_map(|record| record.parts).flatten() {
        take(profile)?;
        given += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(given)
}

fn built(builder: FleetBuilder) -> Result<Fleet, Failure> {
    builder.try_build().map_err(|failure| Failure::usage(failure, "`fleetdiff generate --help` says what can be set"))
}

fn builder(settings: &GenerateSettings) -> Result<FleetBuilder, Failure> {
    let seed = settings.seed;
    let mut builder = match settings.preset {
        Preset::Demo => Fleet::demo(seed),
        Preset::NullCells => Fleet::null_cells(seed),
        Preset::NullRequestLabels => Fleet::null_request_labels(seed),
        Preset::NullHourEdge => Fleet::null_hour_edge(seed),
        Preset::Rollout => Fleet::rollout(seed),
    };
    if let Some((head, base)) = settings.pods {
        builder = builder.pods_per_cell(head, base);
    }
    if let Some(length) = settings.lasts {
        builder = builder.lasts(length);
    }
    if settings.regress.is_some() || settings.cells.is_some() || settings.by.is_some() {
        let cells = settings.cells.as_deref().unwrap_or(Fleet::DEMO_CELLS);
        let cells: Cells =
            cells.parse().map_err(|failure: String| Failure::usage(failure, "cells are written REGION:COHORT,..."))?;
        let function = settings.regress.as_deref().unwrap_or(Fleet::DEMO_FUNCTION);
        builder = builder.unchanged().regress(function, cells, settings.by.unwrap_or(Fleet::DEMO_FACTOR));
    }
    Ok(builder
        .requests_per_second(settings.requests)
        .late(settings.late, settings.late_by)
        .duplicates(settings.duplicates)
        .restarts(settings.restarts))
}
