//! Settings that rows depend on have changed: by `--new-generation` the output of before is put aside, and the service begins anew in the
//! same folder.

use std::path::Path;

use fleetdiff_connectors::checkpoints::CheckpointFolder;
use fleetdiff_connectors::generations::Aside;
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::parquet::ParquetOutput;
use fleetdiff_connectors::receivers::Receivers;

use super::decisions;
use crate::configuration::{Configuration, Loaded};
use crate::failure::Failure;
use crate::output::guidance;

/// Puts the output in a folder aside if it was made with other settings and that is asked for, or if an earlier run has begun to.
///
/// # Errors
/// The folder cannot be read or written, or the output is in an object store.
pub(crate) fn settle(root: &Path, loaded: &Loaded, new_generation: bool) -> Result<(), Failure> {
    let configuration = &loaded.configuration;
    if new_generation && !configuration.output.store.is_empty() {
        return Err(Failure::usage(
            "--new-generation puts an output folder aside, and this output is in an object store",
            "name another prefix in output.store",
        ));
    }
    let aside = match Aside::unfinished(root)? {
        Some(begun) => begun,
        None if !new_generation => return Ok(()),
        None => match refuse_other_settings(root, configuration) {
            Ok(()) => return Ok(()),
            Err(OutputError::OtherSettings { changes, .. }) => {
                tracing::warn!("settings that rows depend on have changed: {changes}");
                Aside::begin(root)?
            }
            Err(error) => return Err(error.into()),
        },
    };
    Receivers::begin_anew(&loaded.receivers, root).map_err(Failure::of_receiver)?;
    let kept = aside.complete(&[decisions::LOG.file, guidance::LOG.file])?;
    tracing::warn!("the output of before is in {}; the topic is read from its beginning", kept.display());
    Ok(())
}

fn refuse_other_settings(root: &Path, configuration: &Configuration) -> Result<(), OutputError> {
    let now = configuration.of_topic_as_json();
    if let Some(about) = CheckpointFolder::last_about(root)? {
        OutputError::refuse_other_settings(root.display(), &about.configuration, &now)?;
    }
    ParquetOutput::create(root, now, configuration.output.flush)?.refuse_other_settings()
}
