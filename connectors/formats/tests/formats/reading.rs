//! What of a file is read for a comparison: the law that asking for nothing changes nothing, and what the tests of single
//! formats share.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use fleetdiff_formats::format_of;
use fleetdiff_formats::reading::{Reading, Run, Unread};
use fleetdiff_formats::{Format, Labels, Options};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::examples::good;
use super::fixtures::{kind_of, labels, options, recorded, unweighed, written_out};

/// Labels of a file that nothing is known of but its type.
pub fn of_file(kind: ProfileType) -> Labels {
    Labels { window: None, sent_at: Some(fleetdiff_schemas::time::Nanos(1)), ..labels(kind) }
}

/// The one run of a file.
pub fn read_as(reading: &Reading, format: Format, bytes: &[u8], kind: ProfileType) -> Result<Run, Unread> {
    let mut runs = reading.runs(format, bytes, &of_file(kind), &options(format));
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// Counts by stack, frames joined by `;`.
pub fn stacks(profile: &Profile) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (frames, count, _) in written_out(profile) {
        *found.entry(frames.join(";")).or_insert(0) += count;
    }
    found
}

/// Counts by leaf.
pub fn leaves(profile: &Profile) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (frames, count, _) in written_out(profile) {
        *found.entry(frames.last().cloned().unwrap_or_default()).or_insert(0) += count;
    }
    found
}

/// The same as a list that can be written down.
pub fn listed(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    counts.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

fn reads_like_its_decoder(format: Format, bytes: &[u8], kind: ProfileType, what: &str) {
    let labels = labels(kind);
    let decoded = format.decoder(&options(format)).decode(bytes, &Ok(labels.clone()));
    let runs = Reading::default().runs(format, bytes, &labels, &options(format));
    let read: Vec<Result<Profile, Unread>> =
        runs.into_iter().map(|run| run.map(|run| unweighed(&run.profile))).collect();
    // A file of memory holds what is in use beside what was allocated; a reading is of one type.
    let decoded = decoded.into_iter().take(read.len()).map(|part| part.map_err(Unread::Rejected));
    let decoded: Vec<Result<Profile, Unread>> = decoded.map(|part| part.map(|profile| unweighed(&profile))).collect();
    assert_eq!(read, decoded, "{what}");
}

#[test]
fn oracle_a_reading_that_asks_for_nothing_is_the_decoder() {
    for format in Format::ALL {
        for (bytes, _) in good(format) {
            reads_like_its_decoder(format, &bytes, kind_of(format), format.name());
        }
    }
}

/// Every recorded profile of this repository.
fn recorded_files() -> Vec<PathBuf> {
    let mut folders = vec![recorded("")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains("/profiles/") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn oracle_recorded_profiles_are_read_as_they_are_decoded() {
    let files = recorded_files();
    assert!(files.len() > 500, "{} files", files.len());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let format = format_of(&file.to_string_lossy(), &bytes);
        // Files are named by their type: heap-003.pb.gz.
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let kind = name.split('-').next().unwrap().parse().unwrap();
        reads_like_its_decoder(format, &bytes, kind, &file.to_string_lossy());
    }
}

/// A file that the decoder refuses is refused for the same reason.
#[test]
fn what_cannot_be_decoded_cannot_be_read() {
    for format in Format::ALL {
        let (bytes, _) = good(format).remove(0);
        let cut = &bytes[..bytes.len() / 2];
        let decoded = format.decoder(&options(format)).decode(cut, &Ok(labels(kind_of(format)))).remove(0);
        let read = Reading::default().runs(format, cut, &labels(kind_of(format)), &options(format)).remove(0);
        let (read, decoded) = (
            read.map(|run| run.profile),
            decoded.map_err(|fault| Unread::Rejected(Rejection { detail: String::new(), ..fault })),
        );
        let read = read.map_err(|fault| match fault {
            Unread::Rejected(fault) => Unread::Rejected(Rejection { detail: String::new(), ..fault }),
            other => other,
        });
        assert_eq!(read, decoded, "{}", format.name());
    }
    let empty = Reading::default().runs(Format::Folded, b"", &labels(ProfileType::Cpu), &Options::default()).remove(0);
    assert!(matches!(empty, Err(Unread::Rejected(fault)) if fault.reason == Reason::Empty));
}
