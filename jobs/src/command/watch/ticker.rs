//! Says by the wall clock how a service is: every few seconds the file of metrics, and a line of the log when there is
//! something to say, also while nothing closes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::console::Console;
use super::metrics::Metrics;
use super::progress::{Level, Line, Progress};
use super::supervisor;

/// Wall-clock time between two looks.
const EVERY: Duration = Duration::from_secs(5);

/// A thread that looks at the state of a service.
pub(crate) struct Ticker {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// What a ticker writes.
pub(crate) struct Writer {
    pub(crate) console: Arc<Console>,
    pub(crate) metrics: Arc<Metrics>,
    /// The file of metrics, if there is one.
    pub(crate) file: Option<PathBuf>,
}

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(writer: Writer) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let mut progress = Progress::new(writer.console.overview().now.instant);
        let tick = move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                writer.write_metrics();
                let overview = writer.console.overview();
                supervisor::alive(&overview);
                progress.lines(&overview).iter().for_each(log);
            }
            writer.write_metrics();
        };
        let thread = std::thread::Builder::new().name("ticker".to_owned()).spawn(tick)?;
        Ok(Self { stop, thread })
    }

    /// Writes the metrics a last time and ends the thread.
    pub(crate) fn finish(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread that writes the metrics has failed");
        }
    }
}

impl Writer {
    /// Writes the file of metrics. It is replaced as a whole, so that a reader (the textfile collector of Prometheus' node
    /// exporter, or `cat`) never sees half of it.
    ///
    /// # Errors
    /// The file cannot be written or replaced.
    pub(crate) fn try_write_metrics(&self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let text = self.metrics.text(&self.console.overview()).map_err(std::io::Error::other)?;
        replace(file, &text)
    }

    /// Rows matter more than metrics: if the file cannot be written, the run continues.
    fn write_metrics(&self) {
        if let Err(error) = self.try_write_metrics() {
            tracing::warn!("the metrics could not be written: {error}");
        }
    }
}

fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = file.with_extension("unfinished");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(&unfinished, file)
}

fn log(line: &Line) {
    let Line { level, text, condition } = line;
    match level {
        Level::Info => tracing::info!(condition, "{text}"),
        Level::Warn => tracing::warn!(condition, "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleetdiff.prom");
        for text in ["one", "two"] {
            replace(&path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
