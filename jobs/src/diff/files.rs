//! The files of both sides, decoded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fleetdiff_connectors::files::format_of;
use fleetdiff_connectors::formats::{Format, Labels, Options};
use fleetdiff_diff::compare::Recording;
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use crate::failure::Failure;

/// What is compared.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is compared")]
pub struct FileSettings {
    /// Profiles of how it was, each a run
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    pub base: Vec<PathBuf>,
    /// Profiles of how it is, each a run
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    pub head: Vec<PathBuf>,
    /// What of the profiles is compared; without it, what the first file holds: cpu, else heap, mutex, wall, off_cpu
    #[arg(long)]
    pub profile_type: Option<ProfileType>,
}

/// What a file is taken for where nobody says it, in this order.
const TYPES: [ProfileType; 5] = [ProfileType::Cpu, ProfileType::Heap, ProfileType::Mutex, ProfileType::Wall, ProfileType::OffCpu];

/// Why a file gives no profile.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("cannot read {path}", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is no profile that can be compared ({reason}): {detail}", path = .path.display(), reason = .fault.reason.name(), detail = .fault.detail)]
    Profile { path: PathBuf, fault: Rejection },
}

/// Reads all files. What the first holds decides what is compared, if nothing else does.
pub fn read(settings: &FileSettings) -> Result<Sides<Vec<Recording>>, Failure> {
    let mut reader = Reader { wanted: settings.profile_type, options: Options::default() };
    let mut side = |paths: &[PathBuf]| -> Result<Vec<Recording>, Failure> {
        let read = paths.iter().map(|path| reader.recordings(path)).collect::<Result<Vec<_>, _>>();
        Ok(read.map_err(explained)?.into_iter().flatten().collect())
    };
    Ok(Sides { base: side(&settings.base)?, head: side(&settings.head)? })
}

struct Reader {
    wanted: Option<ProfileType>,
    options: Options,
}

impl Reader {
    /// The runs of one file: one, or as many as a record of OTLP has profiles of the type.
    fn recordings(&mut self, path: &Path) -> Result<Vec<Recording>, Unreadable> {
        let bytes = fs::read(path).map_err(|source| Unreadable::File { path: path.to_owned(), source })?;
        let format = format_of(&path.to_string_lossy(), &bytes);
        let wanted = self.wanted;
        let candidates = TYPES.into_iter().filter(|kind| wanted.is_none_or(|wanted| wanted == *kind));
        let candidates: Vec<ProfileType> = candidates.chain(wanted.filter(|wanted| !TYPES.contains(wanted))).collect();
        let mut first_fault = None;
        for kind in candidates {
            match self.of_type(kind, format, &bytes) {
                Ok(profiles) => {
                    self.wanted = Some(kind);
                    let several = profiles.len() > 1;
                    let label = |number: usize| if several { format!("{} #{number}", path.display()) } else { path.display().to_string() };
                    return Ok((1..).zip(profiles).map(|(number, profile)| Recording { label: label(number), profile, weights: None }).collect());
                }
                Err(fault) => {
                    let goes_on = fault.reason == Reason::UnitMismatch || fault.reason == Reason::UnsupportedType;
                    first_fault.get_or_insert(fault);
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        let fault = first_fault.unwrap_or_else(|| Rejection::new(Reason::UnsupportedType, "no such profile"));
        Err(Unreadable::Profile { path: path.to_owned(), fault })
    }

    /// The profiles of one type, in their order; why there is none.
    fn of_type(&self, kind: ProfileType, format: Format, bytes: &[u8]) -> Result<Vec<Profile>, Rejection> {
        let parts = format.decoder(&self.options).decode(bytes, &Ok(labels(kind)));
        let mut found = Vec::new();
        let mut fault = None;
        for part in parts {
            match part {
                Ok(profile) if profile.profile_type == kind => found.push(profile),
                Ok(_) => {}
                Err(refused) => fault = fault.or(Some(refused)),
            }
        }
        match fault {
            Some(fault) if found.is_empty() => Err(fault),
            None if found.is_empty() => Err(Rejection::new(Reason::UnsupportedType, format!("no {} profile", kind.name()))),
            _ => Ok(found),
        }
    }
}

/// What stands in for what a file does not say; none of it is looked at.
fn labels(kind: ProfileType) -> Labels {
    let nobody = Identity {
        service: "-".into(),
        build: "-".into(),
        region: "-".into(),
        cohort: "-".into(),
        hardware: "-".into(),
        node: None,
        pod: "-".into(),
        process_start: None,
    };
    Labels {
        identity: Arc::new(nobody),
        profile_type: kind,
        temporality: Temporality::Delta,
        window: Some(TimeRange { start: Nanos(1), end: Nanos(2) }),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
    }
}

fn explained(fault: Unreadable) -> Failure {
    let hint = match &fault {
        Unreadable::File { .. } => "give profiles in pprof, folded stacks, perf script's text, or the JSON of speedscope, V8 or Pyroscope",
        Unreadable::Profile { fault, .. } if fault.reason == Reason::UnitMismatch => "say what is compared with --profile-type: cpu, wall, off_cpu, heap, live_heap, mutex, block",
        Unreadable::Profile { .. } => "the format is told by the name (.pb.gz, .folded, .perf_script, .speedscope, .cpuprofile, .pyroscope) or the bytes",
    };
    Failure::with_hint(fault, hint)
}
