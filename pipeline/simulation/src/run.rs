//! A synthetic fleet through the dataflow.

use std::sync::Arc;

use fleetdiff_pipeline::run::in_memory::Collected;
use fleetdiff_pipeline::run::{RunError, run};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::source::{Source, SourceError};

use crate::fleet::Fleet;

/// All tables of a synthetic fleet on one worker, sorted. Profiles are made as they are read.
///
/// # Errors
/// See [`run`].
pub fn run_fleet(config: &Config, fleet: &Fleet) -> Result<Tables, RunError> {
    let collected = Collected::default();
    let readers = fleet.clone();
    let sources = move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        Ok(vec![Box::new(readers.source(worker, workers))])
    };
    run(config, 1, Arc::new(sources), Box::new(collected.clone()))?;
    Ok(collected.tables())
}
