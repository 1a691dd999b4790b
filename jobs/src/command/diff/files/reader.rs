//! Turns files into runs.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleetdiff_diff::compare::{Recording, nobody};
use fleetdiff_diff::figures::grouped;
use fleetdiff_formats::Values;
use fleetdiff_formats::format_of;
use fleetdiff_formats::reading::{Divisor, Reading, Run, Unread};
use fleetdiff_formats::{Foreign, Format, FoundPeriod, Labels, Options, Period, Unit, pprof};
use fleetdiff_schemas::profile::{ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;

use super::super::arguments::is_piped;

/// Types that are tried, in this order, if no type was requested.
const TYPES: [ProfileType; 6] = [
    ProfileType::Cpu,
    ProfileType::Heap,
    ProfileType::Mutex,
    ProfileType::Wall,
    ProfileType::OffCpu,
    ProfileType::LiveHeap,
];

/// Types that only the clock distinguishes.
const CLOCKS: [ProfileType; 3] = [ProfileType::Cpu, ProfileType::Wall, ProfileType::OffCpu];

/// Why a file may hold no profile of a type, but one of another. Times of an unknown period are of the type: who left them for
/// another type would compare memory where time was meant.
const OF_OTHER_TYPE: [Reason; 2] = [Reason::UnitMismatch, Reason::UnsupportedType];

/// Why a file gives no profile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It does not exist, or cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    /// It is of another tool, and is not read.
    #[error("{path} is {what}", path = .path.display(), what = .kind.what)]
    Foreign { path: PathBuf, kind: &'static Foreign },
    /// It holds nothing of what is requested.
    #[error("{path} {fault}", path = .path.display())]
    Profile { path: PathBuf, fault: Unread },
    /// It holds another type than the first file.
    #[error("{first} is {first_type}, {other} is {other_type}: {fault}", first_type = .first_type.name(), other_type = .other_type.name())]
    OtherType { first: String, first_type: ProfileType, other: String, other_type: ProfileType, fault: Unread },
}

impl Unreadable {
    /// Whether it has times, of which nobody knows the period.
    pub(crate) fn is_of_unknown_period(&self) -> bool {
        matches!(self, Self::Profile { fault: Unread::Rejected(fault), .. } if fault.reason == Reason::UnknownPeriod)
    }
}

/// One run, with what is known about its time.
pub(crate) struct ReadRun {
    pub(crate) recording: Recording,
    /// When it began, if the file says it.
    pub(crate) began: Option<Nanos>,
    /// Whether the file says when each sample was taken.
    pub(crate) timed: bool,
}

/// What was said of the values of all files.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declared {
    /// How long it is from one sample to the next.
    pub(crate) period: Option<Period>,
    /// What they are in, where a file does not say it.
    pub(crate) unit: Option<Unit>,
}

/// Reads files one after the other.
pub(crate) struct Reader<'a> {
    /// What is compared, as requested.
    asked: Option<ProfileType>,
    /// The same, or the type of the first file.
    wanted: Option<ProfileType>,
    declared: Declared,
    values: Values,
    options: Options,
    /// What standard input holds, if it is one of the files.
    piped: Option<&'a [u8]>,
    /// Side and name of the first file that was read: it decides the type if none was requested.
    first: Option<String>,
    /// What a reader of the result should know about the files.
    pub(crate) notes: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Reads files for profiles of this type, or of the type that the first of them holds.
    pub(crate) fn new(
        wanted: Option<ProfileType>,
        declared: Declared,
        values: Values,
        options: &Options,
        piped: Option<&'a [u8]>,
    ) -> Self {
        Self {
            asked: wanted,
            wanted,
            declared,
            values,
            options: options.clone(),
            piped,
            first: None,
            notes: Vec::new(),
        }
    }

    /// The runs of one file: one, or as many as a record of OTLP has profiles of the type.
    pub(crate) fn runs(
        &mut self,
        side: &'static str,
        path: &Path,
        reading: &Reading,
    ) -> Result<Vec<ReadRun>, Unreadable> {
        let bytes = match self.piped.filter(|_| is_piped(path)) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => fs::read(path).map_err(|source| Unreadable::File { path: path.to_owned(), source })?.into(),
        };
        // Standard input has no name that could say what it is: its bytes do.
        let (path, named) = if is_piped(path) { (Path::new("standard input"), Path::new("")) } else { (path, path) };
        let format = format_of(&named.to_string_lossy(), &bytes);
        let place = format!("{side} ({})", path.display());
        let runs = match self.of_first_type(format, &bytes, reading) {
            Ok(runs) => runs,
            Err(fault) => {
                if let (true, Some(kind)) = (is_unsupported(&fault), Foreign::of(&bytes)) {
                    return Err(Unreadable::Foreign { path: path.to_owned(), kind });
                }
                return Err(match (self.other_type(format, &bytes, reading), self.wanted, &self.first) {
                    (Some(other_type), Some(first_type), Some(first)) => {
                        Unreadable::OtherType { first: first.clone(), first_type, other: place, other_type, fault }
                    }
                    _ => Unreadable::Profile { path: path.to_owned(), fault },
                });
            }
        };
        self.first.get_or_insert(place);
        self.notes.extend(runs.iter().find_map(|run| run.period).map(|period| divided(path, period)));
        self.notes.extend(runs.iter().filter(|run| run.lost > 0).map(|run| left_out(path, run)));
        let several = runs.len() > 1;
        let label =
            |number: usize| if several { format!("{} #{number}", path.display()) } else { path.display().to_string() };
        Ok((1..).zip(runs).map(|(number, run)| read_run(label(number), run, self.values)).collect())
    }

    /// The profiles of the requested type; if none is requested, of the first type that the file holds.
    fn of_first_type(&mut self, format: Format, bytes: &[u8], reading: &Reading) -> Result<Vec<Run>, Unread> {
        let wanted = self.wanted;
        let clock =
            if format == Format::Pprof && self.asked.is_none() { pprof::clock(bytes, &self.options) } else { None };
        // A column of samples does not show which clock was used, but another column may.
        let of_clock = |kind: ProfileType| clock.is_none_or(|clock| clock == kind || !CLOCKS.contains(&kind));
        if let (Some(wanted), Some(clock)) = (wanted, clock)
            && !of_clock(wanted)
        {
            let detail = format!("a {} profile, and those before it {}", clock.name(), wanted.name());
            return Err(Rejection::new(Reason::UnitMismatch, detail).into());
        }
        let can_be = |kind: ProfileType| self.values == Values::Samples || CLOCKS.contains(&kind);
        // V8's samples of memory are of what is in use, unless whoever asks knows better.
        let types = if format == Format::Heapprofile { &[ProfileType::LiveHeap][..] } else { &TYPES };
        let candidates = types
            .iter()
            .copied()
            .filter(|kind| wanted.is_none_or(|wanted| wanted == *kind) && of_clock(*kind) && can_be(*kind));
        let candidates: Vec<ProfileType> = candidates.chain(wanted.filter(|wanted| !types.contains(wanted))).collect();
        let mut first_fault = None;
        for kind in candidates {
            match self.of_type(kind, format, bytes, reading) {
                Ok(runs) => {
                    self.wanted = Some(kind);
                    return Ok(runs);
                }
                Err(fault) => {
                    let reason = if let Unread::Rejected(fault) = &fault { Some(fault.reason) } else { None };
                    if reason == Some(Reason::UnknownPeriod) {
                        return Err(fault);
                    }
                    if !reason.is_some_and(|reason| OF_OTHER_TYPE.contains(&reason)) {
                        return Err(first_fault.unwrap_or(fault));
                    }
                    first_fault.get_or_insert(fault);
                }
            }
        }
        if let (Format::Pprof, None) = (format, wanted)
            && let Some(fault) = pprof::of_no_type(bytes, &self.options)
        {
            return Err(fault.into());
        }
        Err(first_fault.unwrap_or_else(|| Rejection::new(Reason::UnsupportedType, "no such profile").into()))
    }

    /// The type that a file holds, if the first file and not the command line decided which one is compared.
    fn other_type(&self, format: Format, bytes: &[u8], reading: &Reading) -> Option<ProfileType> {
        let wanted = self.wanted.filter(|_| self.asked.is_none())?;
        let clock = if format == Format::Pprof { pprof::clock(bytes, &self.options) } else { None };
        clock
            .into_iter()
            .chain(TYPES)
            .find(|kind| *kind != wanted && self.of_type(*kind, format, bytes, reading).is_ok())
    }

    /// The profiles of one type, in their order, or why there is none.
    fn of_type(&self, kind: ProfileType, format: Format, bytes: &[u8], reading: &Reading) -> Result<Vec<Run>, Unread> {
        let mut found = Vec::new();
        let mut fault = None;
        let labels = labels(kind, self.declared);
        let mut parts = reading.runs(format, bytes, &labels, &self.options);
        let is_too_large = |part: &Result<Run, Unread>| matches!(part, Err(Unread::Rejected(fault)) if fault.reason == Reason::TooLarge);
        if reading.sliced && parts.iter().any(is_too_large) {
            // Each sample with its time takes more room than samples by stack.
            parts = Reading { sliced: false, ..reading.clone() }.runs(format, bytes, &labels, &self.options);
        }
        for part in parts {
            match part {
                Ok(run) if run.profile.profile_type == kind => found.push(run),
                Ok(_) => {}
                Err(refused) => fault = fault.or(Some(refused)),
            }
        }
        match fault {
            Some(fault) if found.is_empty() => Err(fault),
            None if found.is_empty() => {
                Err(Rejection::new(Reason::UnsupportedType, format!("no {} profile", kind.name())).into())
            }
            _ => Ok(found),
        }
    }
}

/// Whether the file is of a kind that is not read.
fn is_unsupported(fault: &Unread) -> bool {
    matches!(fault, Unread::Rejected(fault) if fault.reason == Reason::UnsupportedType)
}

/// What is said of a file whose counts or values were divided by what nobody declared.
fn divided(path: &Path, divisor: Divisor) -> String {
    let path = path.display();
    match divisor {
        Divisor::Number(period) => format!(
            "every count of {path} is a multiple of {}, which is taken for the period: counts are divided by it",
            grouped(period)
        ),
        Divisor::Time(FoundPeriod { period, values }) => format!(
            "all {} values of {path} are multiples of {period}, which is taken for the period, since the file names none that \
             fits: values are divided by it (--period names another)",
            grouped(values)
        ),
    }
}

/// What is said of a file of whose samples some have no stacks.
fn left_out(path: &Path, run: &Run) -> String {
    format!(
        "{} does not say of what stacks {} of its samples are: they are left out, and {} are compared",
        path.display(),
        grouped(run.lost),
        grouped(run.profile.total())
    )
}

fn read_run(label: String, run: Run, values: Values) -> ReadRun {
    ReadRun {
        recording: Recording { label, profile: run.profile, weights: run.weights, values, slices: run.slices },
        began: run.window.map(|window| window.start),
        timed: run.timed,
    }
}

/// Placeholders for what a file does not say; they are not used.
fn labels(kind: ProfileType, Declared { period, unit }: Declared) -> Labels {
    Labels {
        identity: Arc::new(nobody()),
        profile_type: kind,
        temporality: Temporality::Delta,
        window: None,
        sent_at: Some(Nanos(1)),
        requests: None,
        requests_window: None,
        unit,
        period,
        root_is_thread: false,
    }
}
