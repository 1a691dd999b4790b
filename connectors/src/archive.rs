//! What was counted, pod by pod, as Parquet files that are kept for a while: the archive of a service.
//!
//! `archive/<table>/level=KK/date=YYYY-MM-DD/<start in Unix seconds>.parquet`. A file of level 0 spans one hop, and is on disk before
//! any row is that follows from it. A file of level k spans the 2^k hops that begin at a multiple of 2^k, and has the sums of the two
//! files of the level below, so that the sums over any range are in a few files. It is made as soon as its last hop is there, or a
//! later one. Files of all levels end with their oldest hop: what begins before the archive does is never merged.

mod spans;
mod sums;

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::rows::{Archived, CallTreeRow, FunctionNameRow, PodCountsRow, Span};
use fleetdiff_schemas::tables::{TableRow, calendar, sort_rows};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};

use self::spans::{MOST_LEVEL, Piece, due};
use self::sums::{Summed, merged};
use crate::folder::Folder;
use crate::output::OutputError;
use crate::parquet::encoding::{FileMetadata, Streamed, encode};
use crate::parquet::reading::each_row;
use crate::store::Place;

/// Name of the folder in an output folder.
pub const ARCHIVE: &str = "archive";
/// Rows of each file that are in memory while files are added: each may have tens of thousands of numbers.
const AT_A_TIME: usize = 16;
/// Hops between two looks at what is too old or too large.
const TIDY_EVERY: u64 = 64;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// For how long, in event time.
    pub age: Nanos,
    /// How many bytes; 0 for any.
    pub bytes: u64,
}

/// The archive of one output folder.
pub struct Archive {
    folder: Folder,
    metadata: FileMetadata,
    clock: HopClock,
    keeping: Keeping,
    /// Hops that have files of level 0.
    hops: BTreeSet<u64>,
    tidied: u64,
}

impl Archive {
    /// The archive of an output; `configuration` is JSON and goes into every file.
    ///
    /// # Errors
    /// [`OutputError`]: the place cannot be written or listed.
    pub fn open(
        place: impl Into<Place>,
        configuration: String,
        clock: HopClock,
        keeping: Keeping,
    ) -> Result<Self, OutputError> {
        let folder = Folder::create(&place.into().below(ARCHIVE))?;
        let metadata = FileMetadata::of_this_program(configuration);
        let mut archive = Self { folder, metadata, clock, keeping, hops: BTreeSet::new(), tidied: 0 };
        let pieces = archive.pieces::<PodCountsRow>()?;
        archive.hops = pieces.iter().filter(|(piece, _)| piece.level == 0).map(|(piece, _)| piece.first).collect();
        Ok(archive)
    }

    /// Takes what was counted at the next hop, or again at one after which a run goes on.
    ///
    /// # Errors
    /// [`OutputError::Nondeterministic`]: there is a file of other rows. [`OutputError::Unwritable`]: the disk refused; the same rows may
    /// be given again.
    pub fn take(&mut self, hop: Hop, rows: &Archived) -> Result<(), OutputError> {
        if rows.is_empty() {
            return Ok(());
        }
        let of_hop = Piece { level: 0, first: hop.0 };
        self.write(of_hop, rows.functions.iter())?;
        self.write(of_hop, rows.call_trees.iter())?;
        // NB: the last one says that the hop is complete.
        self.write(of_hop, rows.counts.iter())?;
        let before = self.hops.range(..hop.0).next_back().copied();
        self.hops.insert(hop.0);
        for piece in due(before, hop.0) {
            if self.hops.range(..=piece.first).next().is_some() {
                self.merge::<FunctionNameRow>(piece)?;
                self.merge::<CallTreeRow>(piece)?;
                self.merge::<PodCountsRow>(piece)?;
            }
        }
        if hop.0 >= self.tidied + TIDY_EVERY {
            self.tidied = hop.0;
            self.tidy(hop)?;
        }
        Ok(())
    }

    fn span(&self, piece: Piece) -> Span {
        Span { start_at: self.clock.start_of(Hop(piece.first)), end_at: self.clock.end_of(Hop(piece.last())) }
    }

    fn path_of<R: TableRow>(&self, piece: Piece) -> String {
        let start = self.span(piece).start_at;
        let seconds = start.0.div_euclid(1_000_000_000);
        format!("{}/level={:02}/date={}/{seconds}.parquet", R::TABLE, piece.level, calendar::date(start))
    }

    /// Writes rows of one hop.
    fn write<'r, R: TableRow>(&self, piece: Piece, rows: impl Iterator<Item = &'r R>) -> Result<(), OutputError> {
        let mut rows: Vec<&R> = rows.collect();
        sort_rows(&mut rows);
        // A function that has samples in several cells.
        rows.dedup_by(|one, other| one == other);
        let path = self.path_of::<R>(piece);
        let bytes = encode(&rows, &self.metadata, &self.folder.display(&path))?;
        self.folder.create_once(&path, bytes).map(drop)
    }

    /// Adds the two files of the level below, as far as they are there.
    fn merge<R: Summed>(&self, piece: Piece) -> Result<(), OutputError> {
        let span = self.span(piece);
        let rows = |half: Piece| {
            let path = self.path_of::<R>(half);
            let bytes = self.folder.read_if_there(&path)?;
            bytes.map(|bytes| each_row::<R>(bytes, self.folder.display(&path), AT_A_TIME)).transpose()
        };
        let [one, other] = piece.halves().map(rows);
        let halves = [one?, other?];
        if halves.iter().all(Option::is_none) {
            return Ok(());
        }
        let path = self.path_of::<R>(piece);
        let mut file = Streamed::begin(&self.metadata, self.folder.display(&path))?;
        for row in merged(halves, span) {
            file.push(row?)?;
        }
        self.folder.create_once(&path, file.finish()?).map(drop)
    }

    /// The files of a table, and their sizes.
    fn pieces<R: TableRow>(&self) -> Result<BTreeMap<Piece, (String, u64)>, OutputError> {
        let files = self.folder.sizes_of(R::TABLE)?.into_iter();
        let piece = |(path, size): (String, u64)| {
            let level = path.split('/').find_map(|part| part.strip_prefix("level="))?.parse().ok()?;
            let seconds: i64 = path.rsplit('/').next()?.strip_suffix(".parquet")?.parse().ok()?;
            let first = self.clock.hop_of(Nanos::from_seconds(seconds)).0;
            (level <= MOST_LEVEL).then_some((Piece { level, first }, (path, size)))
        };
        Ok(files.filter_map(piece).collect())
    }

    /// Removes what is too old, and the oldest of what is too large.
    fn tidy(&mut self, hop: Hop) -> Result<(), OutputError> {
        let mut files: Vec<(Piece, (String, u64))> = Vec::new();
        files.extend(self.pieces::<PodCountsRow>()?);
        files.extend(self.pieces::<FunctionNameRow>()?);
        files.extend(self.pieces::<CallTreeRow>()?);
        let oldest = self.clock.hop_of(Nanos(self.clock.end_of(hop).0.saturating_sub(self.keeping.age.0))).0;
        let mut begins = oldest;
        let mut size: u64 = files.iter().filter(|(piece, _)| piece.first >= oldest).map(|(_, (_, size))| size).sum();
        if self.keeping.bytes > 0 {
            files.sort_unstable();
            let mut kept = files.iter().filter(|(piece, _)| piece.first >= oldest).peekable();
            while size > self.keeping.bytes
                && let Some((piece, (_, of_file))) = kept.next()
            {
                size = size.saturating_sub(*of_file);
                begins = begins.max(piece.first + 1);
            }
        }
        for (_, (path, _)) in files.iter().filter(|(piece, _)| piece.first < begins) {
            self.folder.remove(path)?;
        }
        self.hops = self.hops.split_off(&begins);
        Ok(())
    }
}
