//! The format of a file of which nothing else says it.

mod documents;

use crate::format::Format;
use crate::{compression, jfr, otlp, perf_data, perf_script};

/// What editors and scripts of Windows may write before text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much of a file is looked at. Some documents begin with kilobytes of what recorded them.
const BEGINNING: usize = 64 << 10;

/// As much as tells text from what is not.
const FEW: usize = 512;

/// The first bytes decide: the magic numbers of Flight Recorder and of perf's recordings, the keys of JSON, the text of `perf script`, the first message of OTLP. What
/// they leave open the name decides, and where it says nothing either, text is folded stacks and the rest is pprof.
pub fn format_of(file: &str, bytes: &[u8]) -> Format {
    let few = compression::prefix(bytes, FEW);
    if few.starts_with(jfr::MAGIC) {
        return Format::Jfr;
    }
    if perf_data::begins(&few) {
        return Format::PerfData;
    }
    let named = by_name(file);
    if few.is_empty() {
        return named.unwrap_or(Format::Pprof);
    }
    if text(&few).is_some() {
        let beginning = compression::prefix(bytes, BEGINNING);
        if let Some(text) = text(&beginning) {
            return of_text(text, named);
        }
    }
    if otlp::begins(&few) || named == Some(Format::Otlp) { Format::Otlp } else { Format::Pprof }
}

/// The format that a part of the file's name bears.
fn by_name(file: &str) -> Option<Format> {
    const BY_NAME: [(Format, &[&str]); 8] = [
        (Format::Folded, &["folded", "collapsed"]),
        (Format::PerfScript, &["perf_script", "perf-script", "perfscript"]),
        (Format::Speedscope, &["speedscope"]),
        (Format::Cpuprofile, &["cpuprofile"]),
        (Format::Pyroscope, &["pyroscope", "flamebearer"]),
        (Format::Otlp, &["otlp"]),
        (Format::Jfr, &["jfr"]),
        (Format::Pprof, &["pb", "pprof"]),
    ];
    let name = file.rsplit('/').next().unwrap_or(file);
    let named = |known: &[&str]| name.split('.').skip(1).any(|part| known.contains(&part));
    BY_NAME.into_iter().find(|(_, known)| named(known)).map(|(format, _)| format)
}

/// The keys of a document of which no format is known.
pub(crate) fn unknown_keys(bytes: &[u8]) -> Option<Vec<String>> {
    let beginning = compression::prefix(bytes, BEGINNING);
    documents::unknown_keys(text(&beginning).filter(|text| documents::can_be(text))?)
}

/// Whether bytes are no text.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    text(&compression::prefix(bytes, BEGINNING)).is_none()
}

/// The format of a text by how it begins, and by the name of its file where that leaves several.
fn of_text(text: &str, named: Option<Format>) -> Format {
    let among = |formats: &[Format]| named.filter(|named| formats.contains(named));
    if documents::can_be(text) {
        let of_keys = documents::format_of(text);
        let is_unknown = documents::unknown_keys(text).is_some();
        return among(&[Format::Cpuprofile, Format::Pyroscope]).filter(|_| is_unknown).unwrap_or(of_keys);
    }
    if perf_script::begins(text) {
        return Format::PerfScript;
    }
    among(&[Format::PerfScript]).unwrap_or(Format::Folded)
}

/// The bytes as text, if they are some.
fn text(bytes: &[u8]) -> Option<&str> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character may be cut at the end of what was read.
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).map_or("", |valid| std::str::from_utf8(valid).unwrap_or_default())
        }
        Err(_) => return None,
    };
    let printable =
        !whole.contains(|character: char| character.is_control() && !matches!(character, '\n' | '\r' | '\t'));
    printable.then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_first_bytes_tell_formats() {
        let perf = "# captured on: today\n\nredis-server 7 [001] 12.5: 1001 cpu-clock:\n\t55d0 dictFind+0x4 (/usr/bin/redis)\n\n";
        let cases = [
            ("x.folded.gz", "", Format::Folded),
            ("out.txt", "main;work 3\n", Format::Folded),
            ("out.txt", "worker 7 12\nmain 2 3\n", Format::Folded),
            ("out.txt", perf, Format::PerfScript),
            ("perf", "redis-server 7 12.5: cpu-clock:  55d0 dictFind (/usr/bin/redis)\n", Format::PerfScript),
            (
                "a.json",
                "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{}}",
                Format::Speedscope,
            ),
            ("a.json", " {\"nodes\":[{\"id\":1,\"callFrame\":{}}]}", Format::Cpuprofile),
            ("a.json", "{\"version\":1,\"flamebearer\":{\"names\":[]}}", Format::Pyroscope),
            ("x.otlp.pb", "", Format::Otlp),
            ("x.pb.gz", "", Format::Pprof),
            ("x.pb.gz", "main 3\n", Format::Folded),
            ("shop.folded", perf, Format::PerfScript),
            ("shop.pprof.json", "{\"nodes\":[{\"id\":1,\"callFrame\":{}}]}", Format::Cpuprofile),
            ("shop.speedscope", "{\"version\":1,\"flamebearer\":{\"names\":[]}}", Format::Pyroscope),
            ("shop.cpuprofile", "{\"a\":1}", Format::Cpuprofile),
            ("x.perf_script", "no header\n", Format::PerfScript),
            ("shop.folded.pb", "\n\u{4}\u{8}\u{1}\u{10}\u{2}", Format::Pprof),
            ("shop.folded.pb", "\n\u{6}\n\u{2}\n\0\u{12}\0", Format::Otlp),
            ("shop.otlp", "\u{12}\u{2}\u{8}\u{1}", Format::Otlp),
            ("x", "\u{1}\u{2}", Format::Pprof),
            ("x.jfr.gz", "", Format::Jfr),
            ("x.jfr", "main 3\n", Format::Folded),
            ("x.pb", "FLR\0\0\u{2}", Format::Jfr),
            ("x.folded", "PERFILE2", Format::PerfData),
            ("perf.data", "main 3\n", Format::Folded),
            ("perf.data", "\u{1}\u{2}", Format::Pprof),
        ];
        for (name, bytes, format) in cases {
            assert_eq!(format_of(name, bytes.as_bytes()), format, "{name} {bytes}");
        }
    }
}
