//! The first pass: the chunks of a recording, how many events of each kind it holds, and its settings.

use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;

use super::chunk::Chunk;
use super::constants::Constants;
use super::events::{Kind, Seen};
use super::metadata::Classes;
use super::settings::{Execution, SettingReader, Settings};
use super::within;
use crate::budget::Budget;

/// A chunk, and what its events `jdk.ExecutionSample` are samples of.
pub(super) struct Recorded<'a> {
    pub(super) chunk: Chunk<'a>,
    pub(super) execution: Execution,
}

/// A recording.
pub(super) struct Recording<'a> {
    /// One at least.
    pub(super) chunks: Vec<Recorded<'a>>,
    pub(super) seen: Seen,
    pub(super) settings: Settings,
}

impl<'a> Recording<'a> {
    /// Reads the chunks one after the other.
    ///
    /// # Errors
    /// `empty` if there are none; those of [`Chunk::at`]; `malformed` and `too_large`.
    pub(super) fn open(text: &'a [u8], budget: &Budget) -> Result<Self, Rejection> {
        if text.is_empty() {
            return Err(Rejection::new(Reason::Empty, "the recording holds no chunk"));
        }
        let mut recording = Self { chunks: Vec::new(), seen: Seen::default(), settings: Settings::default() };
        let mut begins = 0;
        while begins < text.len() {
            let chunk = Chunk::at(text, begins)?;
            let left = budget.left();
            let scanned = recording.scan(&chunk, budget);
            let execution = scanned.map_err(|fault| within(&format!("chunk at byte {begins}"), fault))?;
            budget.give_back(left - budget.left());
            budget.push(&mut recording.chunks, Recorded { chunk, execution })?;
            begins = chunk.ends();
        }
        Ok(recording)
    }

    fn scan(&mut self, chunk: &Chunk<'a>, budget: &Budget) -> Result<Execution, Rejection> {
        let classes = Classes::read(chunk.metadata()?, budget)?;
        let kinds = kinds(&classes);
        let constants = Constants::texts(chunk, &classes, budget)?;
        let settings = SettingReader::new(&classes);
        self.settings.begin_chunk();
        for event in chunk.events() {
            let event = event?;
            if let Some((_, kind)) = kinds.iter().find(|(id, _)| *id == event.kind) {
                self.seen.add(*kind);
            } else if settings.is_setting(&event) {
                settings.take(event, &constants, &mut self.settings, budget)?;
            }
        }
        Ok(self.settings.execution(&classes))
    }

    /// From the begin of the first chunk to the end of the last.
    pub(super) fn window(&self) -> Option<TimeRange> {
        let windows = self.chunks.iter().map(|recorded| recorded.chunk.window());
        windows.reduce(|all, next| TimeRange { start: all.start.min(next.start), end: all.end.max(next.end) })
    }
}

/// The kinds of samples by the numbers that a chunk gives them.
pub(super) fn kinds(classes: &Classes<'_>) -> Vec<(u64, Kind)> {
    let id = |kind: Kind| classes.named(kind.name()).map(|class| (class.id, kind));
    Kind::ALL.into_iter().filter_map(id).collect()
}
