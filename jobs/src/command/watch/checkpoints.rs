//! Checkpoints of a service: with which one it begins, and the thread that writes them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fleetdiff_connectors::checkpoints::{About, CheckpointFolder};
use fleetdiff_pipeline::checkpoint::{Checkpoint, Checkpoints, Keep};
use fleetdiff_pipeline::run::pulse::wall_now;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{HopClock, Nanos};

use super::console::Console;
use super::done::CheckpointDone;
use crate::failure::Failure;

/// What a run does with checkpoints.
#[derive(Default)]
pub(crate) struct Checkpointing {
    begun_with: Option<Checkpoint>,
    writer: Option<(Writes, JoinHandle<()>)>,
    every: u64,
}

/// Whose checkpoints they are.
pub(crate) struct Owner<'a> {
    pub(crate) folder: &'a Path,
    /// The settings that decide rows, as JSON.
    pub(crate) configuration: String,
    pub(crate) clock: HopClock,
}

impl Checkpointing {
    /// Begins with the last checkpoint of an output folder, and takes new ones.
    ///
    /// # Errors
    /// The last checkpoint is damaged, or of other settings.
    pub(crate) fn open(owner: Owner<'_>, every: Duration, console: Arc<Console>) -> Result<Self, Failure> {
        let folder = CheckpointFolder::of(owner.folder);
        let begun_with = last(&folder, &owner)?;
        let Some(every) = hops(every, owner.clock) else { return Ok(Self { begun_with, ..Self::default() }) };
        // NB: at most one waits. A disk that is slower than time only makes checkpoints rarer.
        let (sender, receiver) = sync_channel(1);
        let Owner { configuration, clock, .. } = owner;
        let write = move || write_all(&folder, &configuration, clock, &receiver, &console);
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(write)?;
        Ok(Self { begun_with, writer: Some((Writes(sender), thread)), every })
    }

    /// The checkpoint with which the run begins.
    pub(crate) fn begun_with(&self) -> Option<&Checkpoint> {
        self.begun_with.as_ref()
    }

    /// For the run; also what waits for the last one to be written once the run has ended.
    pub(crate) fn start(self) -> (Checkpoints, Writing) {
        let checkpoints = self.begun_with.into_iter().fold(Checkpoints::default(), Checkpoints::begun_with);
        match self.writer {
            Some((writes, thread)) => (checkpoints.taken(self.every, Box::new(writes)), Writing(Some(thread))),
            None => (checkpoints, Writing(None)),
        }
    }
}

/// The thread that writes checkpoints.
pub(crate) struct Writing(Option<JoinHandle<()>>);

impl Writing {
    /// Waits until what was taken is written.
    pub(crate) fn finish(self) {
        if self.0.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes checkpoints stopped by itself, which is a fault of fleetdiff");
        }
    }
}

/// Gives checkpoints to the thread.
struct Writes(SyncSender<Checkpoint>);

impl Keep for Writes {
    fn keep(&mut self, checkpoint: Checkpoint) {
        match self.0.try_send(checkpoint) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => {
                tracing::debug!("a checkpoint is left out: the ones before it are still being written")
            }
        }
    }
}

/// So many hops, rounded up; `None` for none.
fn hops(every: Duration, clock: HopClock) -> Option<u64> {
    let nanos = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX);
    (nanos > 0).then(|| clock.hops_in(Nanos(nanos)).max(1))
}

/// The last checkpoint, if this program can go on from it.
fn last(folder: &CheckpointFolder, owner: &Owner<'_>) -> Result<Option<Checkpoint>, Failure> {
    let Some((about, state)) = folder.last()? else { return Ok(None) };
    let through = rfc3339(about.through);
    let own = About::new(Checkpoint::FORMAT, owner.configuration.clone(), about.through);
    if about.configuration != own.configuration {
        let cause = format!(
            "the output in {} exists and differs: its checkpoint of {through} was taken with the configuration {}, now it is {}",
            owner.folder.display(),
            about.configuration,
            own.configuration
        );
        return Err(Failure::with_hint(cause, "start it with a new output folder, or with the settings that it had"));
    }
    if about != own {
        tracing::warn!(
            "the checkpoint of {through} was written by {} (layout {}), this is {} (layout {}): the topic is read from its beginning",
            about.program,
            about.format,
            own.program,
            own.format
        );
        return Ok(None);
    }
    let checkpoint = Checkpoint::from_bytes(&state).map_err(|error| {
        Failure::with_hint(error, "remove the folder of checkpoints, so that the topic is read from its beginning")
    })?;
    tracing::info!("going on from the checkpoint of {through}");
    Ok(Some(checkpoint))
}

fn write_all(
    folder: &CheckpointFolder,
    configuration: &str,
    clock: HopClock,
    receiver: &Receiver<Checkpoint>,
    console: &Console,
) {
    let mut failed = false;
    for checkpoint in receiver {
        let Checkpoint { hop, .. } = checkpoint;
        match write(folder, configuration, clock, &checkpoint) {
            Ok(bytes) => {
                failed = false;
                let through = clock.start_of(hop);
                console.done().checkpoint = Some(CheckpointDone { through, at: wall_now(), bytes });
                tracing::debug!(bytes, "checkpoint of {}", rfc3339(through));
            }
            // NB: a service without checkpoints is slower to start again, and no less right.
            Err(error) if !failed => {
                failed = true;
                tracing::error!(
                    "no checkpoint of {}: {error}; the next one is tried in its time",
                    rfc3339(clock.start_of(hop))
                );
            }
            Err(_) => {}
        }
    }
}

fn write(
    folder: &CheckpointFolder,
    configuration: &str,
    clock: HopClock,
    checkpoint: &Checkpoint,
) -> Result<u64, fleetdiff_connectors::output::OutputError> {
    let about = About::new(Checkpoint::FORMAT, configuration.to_owned(), clock.start_of(checkpoint.hop));
    folder.write(&about, &checkpoint.to_bytes())
}
