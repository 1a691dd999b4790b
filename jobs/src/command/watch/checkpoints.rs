//! Checkpoints of a service: with which one it begins, and the thread that writes them.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fleetdiff_connectors::checkpoints::{About, CheckpointFolder};
use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::store::Place;
use fleetdiff_pipeline::checkpoint::{Checkpoint, Checkpoints, Keep};
use fleetdiff_pipeline::run::wall::wall_now;
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use super::console::Console;
use super::done::CheckpointDone;
use crate::failure::Failure;

/// What a run does with checkpoints.
#[derive(Default)]
pub(crate) struct Checkpointing {
    begun_with: Option<Checkpoint>,
    /// Nothing may be decided anew for hops before this one: they are in a checkpoint.
    decided_before: Hop,
    writer: Option<(Writes, JoinHandle<()>)>,
    every: u64,
}

/// Whose checkpoints they are.
pub(crate) struct Owner<'a> {
    pub(crate) place: &'a Place,
    /// The settings that decide rows, as JSON.
    pub(crate) configuration: String,
    pub(crate) clock: HopClock,
}

impl Checkpointing {
    /// Begins with the last checkpoint of an output, and takes new ones.
    ///
    /// # Errors
    /// The last checkpoint is damaged, or of other settings.
    pub(crate) fn open(owner: Owner<'_>, every: Duration, console: Arc<Console>) -> Result<Self, Failure> {
        let folder = CheckpointFolder::of(owner.place);
        let begun_with = last(&folder, &owner)?;
        let decided_before = begun_with.as_ref().map_or(Hop(0), |checkpoint| checkpoint.hop);
        let Some(every) = hops(every, owner.clock) else {
            return Ok(Self { begun_with, decided_before, ..Self::default() });
        };
        let (sender, receiver) = sync_channel(1);
        let pace = Arc::new(Mutex::new(Pace::default()));
        let Owner { configuration, clock, .. } = owner;
        let mut files = Files { folder, configuration, clock, console, has_failed: false };
        let of_thread = Arc::clone(&pace);
        let write = move || {
            for checkpoint in receiver {
                let began = Instant::now();
                files.write(&checkpoint);
                lock(&of_thread).end(began, Instant::now());
            }
        };
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(write)?;
        Ok(Self { begun_with, decided_before, writer: Some((Writes { sender, pace }, thread)), every })
    }

    /// Reads the topic from its beginning and takes no checkpoints; a later run may still go on from the last one.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn unused(owner: &Owner<'_>) -> Result<Self, Failure> {
        let through = CheckpointFolder::of(owner.place).last_through()?;
        let decided_before = through.map_or(Hop(0), |through| owner.clock.hop_of(through));
        Ok(Self { decided_before, ..Self::default() })
    }

    /// The checkpoint with which the run begins.
    pub(crate) fn begun_with(&self) -> Option<&Checkpoint> {
        self.begun_with.as_ref()
    }

    /// The first hop for which something may be decided anew; 0 without a checkpoint.
    pub(crate) fn decided_before(&self) -> Hop {
        self.decided_before
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

/// Gives checkpoints to the thread, one at a time.
struct Writes {
    sender: SyncSender<Checkpoint>,
    pace: Arc<Mutex<Pace>>,
}

impl Keep for Writes {
    fn is_ready(&self, _: Hop) -> bool {
        lock(&self.pace).is_ready(Instant::now())
    }

    fn keep(&mut self, checkpoint: Checkpoint) {
        lock(&self.pace).begin();
        // NB: it fails only if the thread has ended, which is said at the end of the run.
        drop(self.sender.send(checkpoint));
    }
}

fn lock(pace: &Mutex<Pace>) -> MutexGuard<'_, Pace> {
    pace.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often checkpoints are written, by the wall clock: a service that catches up passes many boundaries a second, and a disk may be
/// slow. So writing takes at most a tenth of the time.
#[derive(Debug, Default)]
struct Pace {
    is_writing: bool,
    rests_until: Option<Instant>,
}

impl Pace {
    fn is_ready(&self, now: Instant) -> bool {
        !self.is_writing && self.rests_until.is_none_or(|until| until <= now)
    }

    fn begin(&mut self) {
        self.is_writing = true;
    }

    fn end(&mut self, began: Instant, now: Instant) {
        *self = Self { is_writing: false, rests_until: Some(now + (now - began) * 9) };
    }
}

/// So many hops, rounded up; `None` for none.
pub(super) fn hops(every: Duration, clock: HopClock) -> Option<u64> {
    let nanos = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX);
    (nanos > 0).then(|| clock.hops_in(Nanos(nanos)).max(1))
}

/// The last checkpoint, if this program can go on from it.
fn last(folder: &CheckpointFolder, owner: &Owner<'_>) -> Result<Option<Checkpoint>, Failure> {
    let Some(found) = folder.last()? else { return Ok(None) };
    let about = &found.about;
    let through = rfc3339(about.through);
    let own = About::new(Checkpoint::FORMAT, owner.configuration.clone(), about.through);
    OutputError::refuse_other_settings(owner.place, &about.configuration, &own.configuration)?;
    if *about != own {
        tracing::warn!(
            "the checkpoint of {through} was written by {} (layout {}), this is {} (layout {}): the topic is read from its beginning",
            about.program,
            about.format,
            own.program,
            own.format
        );
        return Ok(None);
    }
    let checkpoint = Checkpoint::from_bytes(found.state()?).map_err(|error| {
        Failure::with_hint(error, "remove the folder of checkpoints, so that the topic is read from its beginning")
    })?;
    tracing::info!("going on from the checkpoint of {through}");
    Ok(Some(checkpoint))
}

/// Writes checkpoints.
struct Files {
    folder: CheckpointFolder,
    configuration: String,
    clock: HopClock,
    console: Arc<Console>,
    /// Whether the last one could not be written.
    has_failed: bool,
}

impl Files {
    fn write(&mut self, checkpoint: &Checkpoint) {
        let through = self.clock.start_of(checkpoint.hop);
        let about = About::new(Checkpoint::FORMAT, self.configuration.clone(), through);
        match self.folder.write(&about, |to| checkpoint.write_to(to)) {
            Ok(bytes) => {
                self.has_failed = false;
                self.console.done().checkpoint = Some(CheckpointDone { through, at: wall_now(), bytes });
                tracing::debug!(bytes, state = ?checkpoint.sizes(), "checkpoint of {}", rfc3339(through));
            }
            // NB: the output says so at the next hop, and ends the run.
            Err(OutputError::Superseded { .. }) => {}
            // NB: a service without checkpoints is slower to start again, and no less right.
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                tracing::error!("no checkpoint of {}: {error}; the next one is tried in its time", rfc3339(through));
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_takes_a_tenth_of_the_time_and_one_is_written_at_a_time() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(pace.is_ready(start));
        pace.begin();
        assert!(!pace.is_ready(after(1000)));
        pace.end(start, after(2));
        assert!(!pace.is_ready(after(19)) && pace.is_ready(after(20)));
    }
}
