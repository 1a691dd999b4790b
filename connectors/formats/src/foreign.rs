//! Files of other tools that are not read, known by how they begin, or by their keys: what they are, and what to do instead.
//!
//! Asked only of records that cannot be read: else a trace of .NET would be taken for a broken pprof.

mod known;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::known::KNOWN;
use crate::decode::Decode;
use crate::format::Format;
use crate::labels::Labels;
use crate::{compression, recognition};

/// How much of a record is looked at.
const BEGINNING: usize = 16 << 10;

/// How many keys of a document are named.
const NAMED_KEYS: usize = 8;

/// A kind of file that is not read.
#[derive(Debug)]
pub struct Foreign {
    /// What it begins with.
    begins: &'static [u8],
    /// What else its beginning holds; nothing if that tells nothing more.
    holds: &'static [u8],
    /// Keys of a document of JSON, all of which it has.
    keys: &'static [&'static str],
    /// What it is.
    pub what: &'static str,
    /// What to do, as a command where there is one.
    pub instead: &'static str,
}

impl Foreign {
    /// The kind of such a file, if it is a known one.
    pub fn of(bytes: &[u8]) -> Option<&'static Self> {
        let beginning = compression::prefix(bytes, BEGINNING);
        let begun = beginning.strip_prefix(recognition::BYTE_ORDER_MARK).unwrap_or(&beginning).trim_ascii_start();
        let keys = recognition::unknown_keys(bytes).unwrap_or_default();
        let has = |key: &&str| keys.iter().any(|known| known == key);
        let holds = |what: &[u8]| what.is_empty() || begun.windows(what.len()).any(|window| window == what);
        let is = |known: &&Self| begun.starts_with(known.begins) && known.keys.iter().all(has) && holds(known.holds);
        KNOWN.iter().find(is)
    }
}

/// The fault of a record that cannot be read: that it is a file of another tool, if it is one, or of none that is
/// known.
pub(crate) fn named(format: Format, bytes: &[u8], fault: Rejection) -> Rejection {
    if ![Reason::Malformed, Reason::Truncated].contains(&fault.reason) {
        return fault;
    }
    match Foreign::of(bytes) {
        Some(Foreign { what, instead, .. }) => {
            Rejection { reason: Reason::UnsupportedType, detail: format!("{what}; {instead}"), ..fault }
        }
        None => unknown(format, bytes, fault),
    }
}

/// The same of what is taken for a format only because it is of no other.
fn unknown(format: Format, bytes: &[u8], fault: Rejection) -> Rejection {
    let detail = match format {
        _ if fault.reason != Reason::Malformed => return fault,
        Format::Pprof if recognition::is_binary(bytes) => {
            format!("no pprof profile and no other format that is known ({})", fault.detail)
        }
        Format::Speedscope => match recognition::unknown_keys(bytes) {
            Some(keys) if keys.is_empty() => "JSON of no known profiler".to_owned(),
            Some(mut keys) => {
                keys.truncate(NAMED_KEYS);
                format!("JSON of no known profiler, with the keys {}", keys.join(", "))
            }
            None => return fault,
        },
        _ => return fault,
    };
    Rejection { detail, ..fault }
}

/// A decoder that names files of other tools.
pub(crate) struct Naming {
    pub(crate) format: Format,
    pub(crate) decoder: Box<dyn Decode>,
}

impl Decode for Naming {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let mut parts = self.decoder.decode(bytes, labels);
        if let [part] = &mut parts[..]
            && let Err(fault) = part
        {
            *fault = named(self.format, bytes, fault.clone());
        }
        parts
    }
}
