//! Labels of samples that say where and when one was taken, by the names that profilers give them.

use std::collections::HashMap;

use fleetdiff_schemas::rejected::Rejection;

use super::tables::Tables;
use crate::observed::Observed;
use crate::sink::{SampleDetails, SampleSink};
use crate::wire::fields;

/// What a key that was looked at is counted as.
const KEY: usize = 48;

/// What a label says.
#[derive(Clone, Copy)]
enum Meaning {
    Comm,
    Pid,
    Tid,
    Cpu,
    At,
}

/// Whether labels of this key name threads.
pub(super) fn names_thread(key: &str) -> bool {
    matches!(key, "comm" | "thread name" | "thread_name" | "thread.name" | "thread")
}

impl Meaning {
    /// perf_data_converter writes `pid`, `tid`, `comm`, `cpu` and `timestamp_ns`; profilers of Datadog `thread id`, `thread name`
    /// and `end_timestamp_ns`.
    fn of(key: &str) -> Option<Self> {
        match key {
            _ if names_thread(key) => Some(Self::Comm),
            "pid" | "process id" | "process_id" => Some(Self::Pid),
            "tid" | "thread id" | "thread_id" => Some(Self::Tid),
            "cpu" => Some(Self::Cpu),
            "timestamp_ns" | "end_timestamp_ns" => Some(Self::At),
            _ => None,
        }
    }
}

/// Reads the labels of samples.
pub(super) struct SampleLabels<'t, 'a> {
    tables: &'t Tables<'a>,
    /// What keys say, by the index of their text.
    keys: HashMap<i64, Option<Meaning>, foldhash::fast::RandomState>,
}

impl<'t, 'a> SampleLabels<'t, 'a> {
    /// Reads labels whose texts are of these tables.
    pub(super) fn of(tables: &'t Tables<'a>) -> Self {
        Self { tables, keys: HashMap::default() }
    }

    /// What the labels of a sample say of it.
    pub(super) fn read(&mut self, sample: &[u8], observed: &mut Observed<'_>) -> Result<SampleDetails, Rejection> {
        let mut details = SampleDetails::default();
        let mut parts = fields(sample);
        while let Some((tag, value)) = parts.next()? {
            if tag == 3 {
                self.label(value.bytes()?, observed, &mut details)?;
            }
        }
        Ok(details)
    }

    fn label(
        &mut self,
        message: &[u8],
        observed: &mut Observed<'_>,
        details: &mut SampleDetails,
    ) -> Result<(), Rejection> {
        let (mut key, mut text, mut number) = (0, 0, 0);
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => key = value.signed()?,
                2 => text = value.signed()?,
                3 => number = value.signed()?,
                _ => {}
            }
        }
        let Some(meaning) = self.meaning(key)? else { return Ok(()) };
        let text = self.tables.text(text)?;
        let number = if text.is_empty() { Some(number) } else { text.parse::<i64>().ok() };
        match meaning {
            Meaning::Comm if text.is_empty() => {}
            Meaning::Comm => details.comm = Some(observed.text(text)?),
            Meaning::Pid => details.pid = number,
            Meaning::Tid => details.tid = number,
            Meaning::Cpu => details.cpu = number,
            Meaning::At => details.at = number,
        }
        Ok(())
    }

    fn meaning(&mut self, key: i64) -> Result<Option<Meaning>, Rejection> {
        if let Some(known) = self.keys.get(&key) {
            return Ok(*known);
        }
        let meaning = Meaning::of(self.tables.text(key)?);
        self.tables.budget.take(KEY)?;
        self.keys.insert(key, meaning);
        Ok(meaning)
    }
}
