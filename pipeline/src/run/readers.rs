//! The readers of one worker, and from where they would have to read again.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::source::Source;

use super::reader::{Bookmark, Reader, Resumed};
use super::{RunError, Service};
use crate::checkpoint::{Loading, Saving, State, Unreadable};

/// All sources of a worker.
#[derive(Default)]
pub(crate) struct Readers {
    pub(super) each: Vec<Reader>,
    /// Where the run begins, if with a checkpoint.
    resumed: Resumed,
}

impl Readers {
    /// Opens sources.
    pub(super) fn open(
        &mut self,
        config: &Config,
        sources: Vec<Box<dyn Source>>,
        service: &Service,
    ) -> Result<(), RunError> {
        let resumed = std::mem::take(&mut self.resumed);
        let readers = sources.into_iter().map(|source| Reader::new(config, source, service, &resumed));
        self.each = readers.collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl Readers {
    /// From which offsets a source is to be read.
    pub(crate) fn offsets(from: &Loading<'_>, source: &str) -> Result<BTreeMap<i32, i64>, Unreadable> {
        let partitions = from.all::<((String, i32), Bookmark)>("partition")?.into_iter();
        let of_source = partitions.filter(|((name, _), _)| name == source);
        Ok(of_source.map(|((_, partition), bookmark)| (partition, bookmark.read_from())).collect())
    }
}

impl State for Readers {
    const NAME: &'static str = "sources";

    fn save(&self, to: &mut Saving) {
        let boundary = to.boundary();
        for reader in &self.each {
            for (partition, bookmark) in reader.bookmarks_before(boundary) {
                to.shared("partition", &((reader.name(), partition), bookmark));
            }
        }
    }

    fn load(&mut self, from: &Loading<'_>) -> Result<(), Unreadable> {
        self.resumed = from.all("partition")?.into_iter().collect::<BTreeMap<_, _>>();
        Ok(())
    }
}
