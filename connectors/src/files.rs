//! Reads and writes recorded fleets: a folder with `manifest.jsonl` and one file per profile, read in order of event
//! time.
//!
//! [`RecordedFleet`] is a [`Source`] of one partition: opening it reads the manifest, each poll gives one file, which was read and
//! decoded ahead (`ahead.rs`). A bad line or file becomes a rejected part at its place, and does not affect the rest of the fleet. [`RecordedFleet::entries`]
//! gives the same profiles undecoded, for forwarding. [`write_fleet`] writes such a folder, [`FleetRecorder`] adds to one what agents
//! give.

mod ahead;
mod error;
mod manifest;
mod record;
mod write;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use fleetdiff_formats::{Decode, Format, Labels, Options, format_of};
use fleetdiff_schemas::identity::{Build, Service};
use fleetdiff_schemas::profile::{Decoded, Position, Profile, ProfileType, Stamped};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::source::{Polled, Source, SourceError};
use fleetdiff_schemas::time::TimeRange;

use self::ahead::Ahead;
use self::manifest::{MANIFEST, ManifestLine, ManifestLines, ProfileFile};

pub use error::FleetError;
pub use record::FleetRecorder;
pub use write::{FileFormat, FleetWriter, write_fleet};

/// The one partition of a folder.
const PARTITION: i32 = 0;

/// Which lines of a manifest are read; the others are ignored. A bad line without a service or type passes every
/// filter. In a file of records each profile is filtered once it is decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this service.
    pub service: Option<Service>,
    /// Only this type.
    pub profile_type: Option<ProfileType>,
}

impl Filter {
    /// Whether a line may contain something that passes: memory profiles hold two types.
    fn passes_line(&self, line: &ManifestLine) -> bool {
        let both = self.profile_type == Some(ProfileType::LiveHeap) && line.profile_type == Some(ProfileType::Heap);
        self.passes(line.service.as_ref(), line.profile_type.filter(|_| !both))
    }

    /// Whether a profile passes, by what is known about it.
    fn passes(&self, service: Option<&Service>, profile_type: Option<ProfileType>) -> bool {
        let same = self.service.as_ref().is_none_or(|wanted| service.is_none_or(|found| found == wanted));
        same && self.profile_type.is_none_or(|wanted| profile_type.is_none_or(|found| found == wanted))
    }

    fn passes_part(&self, part: &Result<Profile, Rejection>) -> bool {
        match part {
            Ok(profile) => self.passes(Some(&profile.identity.service), Some(profile.profile_type)),
            Err(fault) => self.passes(None, fault.profile_type),
        }
    }
}

/// A profile as it is in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawProfile {
    /// What the manifest says about it, or, for a file whose records say it themselves, why it says nothing.
    pub labels: Result<Labels, Rejection>,
    /// The file's content, still compressed.
    pub bytes: Vec<u8>,
    /// Its format.
    pub format: Format,
    /// Line of the manifest, counted from 1.
    pub line: i64,
    /// The file as the manifest names it.
    pub file: Arc<str>,
}

/// A line of a manifest that gives no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedLine {
    /// Line of the manifest, counted from 1.
    pub line: i64,
    /// The file, where the line names one.
    pub file: Option<Arc<str>>,
    /// Why.
    pub rejection: Rejection,
}

/// A folder with a manifest, read in the order of event time (end of the profile, then line).
pub struct RecordedFleet {
    name: Arc<str>,
    recorded: Arc<Recorded>,
    /// The line that is given next.
    next: usize,
    /// Files on their way, once the first was asked for.
    ahead: Option<Ahead<Parts>>,
    paused: bool,
    ended: bool,
}

/// What a record is decoded to.
type Parts = Vec<Result<Profile, Rejection>>;

/// What threads that decode have to know.
#[derive(Clone)]
struct Recorded {
    folder: PathBuf,
    lines: Vec<ManifestLine>,
    filter: Filter,
    options: Options,
}

impl RecordedFleet {
    /// Opens a folder and reads its manifest, not its profiles.
    ///
    /// # Errors
    /// [`FleetError::Folder`] or [`FleetError::Manifest`] with the path, if it cannot be read.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, FleetError> {
        let path = folder.as_ref();
        let folder = fs::canonicalize(path).and_then(|folder| fs::read_dir(&folder).map(|_| folder));
        let folder = folder.map_err(|source| FleetError::Folder { path: path.to_owned(), source })?;
        let manifest = folder.join(MANIFEST);
        let lines =
            read_manifest(&manifest).map_err(|source| FleetError::Manifest { path: path.join(MANIFEST), source })?;
        let name = folder.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned());
        let recorded = Recorded { folder, lines, filter: Filter::default(), options: Options::default() };
        let recorded = Arc::new(recorded);
        Ok(Self { name: name.into(), recorded, next: 0, ahead: None, paused: false, ended: false })
    }

    /// Keeps only the lines that pass the filter.
    #[must_use]
    pub fn filtered(mut self, filter: &Filter) -> Self {
        let recorded = Arc::make_mut(&mut self.recorded);
        recorded.lines.retain(|line| filter.passes_line(line));
        recorded.filter = filter.clone();
        self
    }

    /// Decodes with these limits and this label of cohorts instead of the defaults.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        Arc::make_mut(&mut self.recorded).options = options;
        self
    }

    /// How many records the fleet gives in total, including rejected ones.
    pub fn len(&self) -> usize {
        self.recorded.lines.len()
    }

    /// Whether it gives none.
    pub fn is_empty(&self) -> bool {
        self.recorded.lines.is_empty()
    }

    /// When the profiles of each good line were taken, in the order of reading.
    pub fn windows(&self) -> impl Iterator<Item = TimeRange> {
        self.recorded.lines.iter().filter_map(|line| line.entry.as_ref().ok()).map(|entry| entry.window)
    }

    /// The builds that the fleet has profiles of, with their services, as often as they occur: first those that the manifest names,
    /// also on lines that are rejected, then those in files of records. These are decoded for it, each when its turn comes.
    pub fn builds(&self) -> impl Iterator<Item = (Service, Build)> + '_ {
        let named = self.recorded.lines.iter().filter(|line| !line.is_of_records());
        let named = named.filter_map(|line| line.service.clone().zip(line.build.clone()));
        let mut decoder = Format::Otlp.decoder(&self.recorded.options);
        let of_records = self.recorded.lines.iter().filter(|line| line.is_of_records());
        named.chain(of_records.flat_map(move |line| {
            let raw = line.entry.as_ref().ok().and_then(|entry| self.recorded.raw(line.number, entry).ok());
            let parts = raw.map_or_else(Vec::new, |raw| decoder.decode(&raw.bytes, &raw.labels));
            let profiles = parts.into_iter().filter_map(Result::ok);
            profiles.map(|profile| (profile.identity.service.clone(), profile.identity.build.clone()))
        }))
    }

    /// The profiles as they are in their files, in the order of reading; each file is read when its turn comes. They
    /// include levels, which [`Source::poll`] refuses without reading them.
    pub fn entries(&self) -> impl Iterator<Item = Result<RawProfile, RejectedLine>> + '_ {
        self.recorded.lines.iter().map(|line| {
            let raw = line.entry.as_ref().map_err(Clone::clone).and_then(|entry| self.recorded.raw(line.number, entry));
            raw.map_err(|rejection| RejectedLine { line: line.number, file: line.file.clone(), rejection })
        })
    }
}

impl Recorded {
    fn raw(&self, line: i64, entry: &ProfileFile) -> Result<RawProfile, Rejection> {
        let bytes = read_file(&self.folder.join(&*entry.file), self.options.max_bytes)
            .map_err(|(reason, what)| entry.rejection(reason, format!("{}: {what}", entry.file)))?;
        let format = entry.format.unwrap_or_else(|| format_of(&entry.file, &bytes));
        Ok(RawProfile { labels: entry.labels.clone(), bytes, format, line, file: Arc::clone(&entry.file) })
    }

    /// The parts of a line; the decoders are those of a thread.
    fn decode(&self, line: &ManifestLine, decoders: &mut BTreeMap<Format, Box<dyn Decode>>) -> Parts {
        let raw = line.entry.as_ref().map_err(Clone::clone).and_then(|entry| {
            match entry.labels.as_ref().ok().and_then(Labels::uncountable) {
                Some(fault) => Err(fault),
                None => self.raw(line.number, entry),
            }
        });
        match raw {
            Err(fault) => vec![Err(fault)],
            Ok(raw) => {
                let decoder = decoders.entry(raw.format).or_insert_with(|| raw.format.decoder(&self.options));
                let mut parts = decoder.decode(&raw.bytes, &raw.labels);
                parts.retain(|part| self.filter.passes_part(part));
                parts.into_iter().map(|part| part.map_err(|fault| dated(line, fault))).collect()
            }
        }
    }
}

impl Source for RecordedFleet {
    fn name(&self) -> &str {
        &self.name
    }

    fn partitions(&self) -> Vec<i32> {
        vec![PARTITION]
    }

    fn poll(&mut self) -> Result<Polled, SourceError> {
        if self.paused {
            return Ok(Polled::Idle);
        }
        let recorded = &self.recorded;
        let parts = self.ahead.get_or_insert_with(|| decoded_ahead(recorded)).take();
        let Some((line, parts)) = recorded.lines.get(self.next).zip(parts) else {
            let end = if self.ended { Polled::End } else { Polled::PartitionEnd(PARTITION) };
            self.ended = true;
            return Ok(end);
        };
        self.next += 1;
        let (source, file) = (Arc::clone(&self.name), line.file.clone());
        let position = Position { source, partition: PARTITION, offset: line.number, file };
        Ok(Polled::Record(Box::new(Decoded { position, stamped: Stamped::No, parts, points: Vec::new() })))
    }

    fn set_paused(&mut self, partition: i32, paused: bool) {
        if partition == PARTITION {
            self.paused = paused;
        }
    }
}

/// The lines of a fleet, read and decoded on as many threads as the machine runs at a time.
fn decoded_ahead(recorded: &Arc<Recorded>) -> Ahead<Parts> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(recorded.lines.len());
    let workers = std::iter::repeat_with(|| {
        let (recorded, mut decoders) = (Arc::clone(recorded), BTreeMap::new());
        move |item: usize| {
            let parts = recorded.lines.get(item).map_or_else(Vec::new, |line| recorded.decode(line, &mut decoders));
            let bytes = parts.iter().flatten().map(Profile::bytes).sum();
            (parts, bytes)
        }
    });
    Ahead::start(recorded.lines.len(), workers.take(threads))
}

/// A fault in a file, with the time of its line if it has none itself.
fn dated(line: &ManifestLine, fault: Rejection) -> Rejection {
    let at = line.entry.as_ref().ok().map(|entry| entry.window.midpoint());
    Rejection { at: fault.at.or(at), ..fault }
}

fn read_manifest(path: &Path) -> io::Result<Vec<ManifestLine>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut lines = ManifestLines::default();
    let mut text = Vec::new();
    while file.read_until(b'\n', &mut text)? > 0 {
        lines.push(&text);
        text.clear();
    }
    Ok(lines.finish())
}

/// Reads a file of at most `max_bytes`; otherwise gives the reason and what is wrong.
fn read_file(path: &Path, max_bytes: usize) -> Result<Vec<u8>, (Reason, String)> {
    let missing = |error: io::Error| (Reason::MissingFile, error.to_string());
    // NB: this is checked first, since opening a pipe would wait for its other end.
    if !fs::metadata(path).map_err(missing)?.is_file() {
        return Err((Reason::MissingFile, "not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let one_more = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).and_then(|file| file.take(one_more).read_to_end(&mut bytes)).map_err(missing)?;
    if bytes.len() > max_bytes {
        return Err((Reason::TooLarge, format!("more than {max_bytes} bytes")));
    }
    Ok(bytes)
}
