//! The forms in which records can be written, and how profiles become one.

use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::{Format, Labels, Unencodable, folded, otlp, perf_script, pprof};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::Profile;

/// The form of the records of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordForm {
    /// One pprof profile per record, with its identity in the headers.
    Pprof,
    /// Profiles of OpenTelemetry, with their identities in attributes.
    Otlp,
    /// The folded stacks of one profile per record, with its identity in the headers.
    Folded,
    /// The text of `perf script` of one profile per record, with its identity in the headers.
    PerfScript,
    /// The columnar delta, which carries its own identities.
    Delta,
}

impl RecordForm {
    /// Every form.
    pub const ALL: [Self; 5] = [Self::Pprof, Self::Otlp, Self::Folded, Self::PerfScript, Self::Delta];

    /// The form of records of this format; none if there is a decoder of it alone.
    pub fn of(format: Format) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.format() == format)
    }

    /// The format by which its records are read.
    pub fn format(self) -> Format {
        match self {
            Self::Pprof => Format::Pprof,
            Self::Otlp => Format::Otlp,
            Self::Folded => Format::Folded,
            Self::PerfScript => Format::PerfScript,
            Self::Delta => Format::Delta,
        }
    }

    /// How profiles become records.
    pub(super) fn encoder(self) -> Encoder {
        match self {
            Self::Pprof => Encoder::Labelled(|profile| Ok((Labels::of(profile), pprof::encode(profile)?))),
            Self::Folded => Encoder::Labelled(|profile| Ok((Labels::of_counts(profile), folded::encode(profile)?))),
            Self::PerfScript => Encoder::Labelled(|profile| {
                let labels = Labels { root_is_thread: true, ..Labels::of_counts(profile) };
                Ok((labels, perf_script::encode(profile)?))
            }),
            Self::Otlp => Encoder::Batches(otlp::encode),
            Self::Delta => Encoder::Batches(|profiles, _| Ok(delta::encode(profiles))),
        }
    }

    /// Whether what samples stand for is lost: this form has no place for it, and neither have the headers.
    pub(super) fn loses_values(self, profile: &Profile, labels: &Labels) -> bool {
        matches!(self, Self::Folded | Self::PerfScript) && labels.period.is_none() && profile.value() > 0
    }
}

/// The bytes of a record, and what its headers say.
type Labelled = (Labels, Vec<u8>);

/// How profiles become records.
#[derive(Clone, Copy)]
pub(super) enum Encoder {
    /// Each is a record, and headers say what these labels do.
    Labelled(fn(&Profile) -> Result<Labelled, Unencodable>),
    /// Several are a record, which says itself whose they are.
    Batches(fn(&[Profile], &IdentityMapping) -> Result<Vec<u8>, Unencodable>),
}
