//! The format of a file of which nothing else says it.

mod documents;

use crate::format::Format;
use crate::{compression, jfr, perf_script};

/// What editors and scripts of Windows may write before text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much of a file is looked at. Some documents begin with kilobytes of what recorded them.
const BEGINNING: usize = 64 << 10;

/// Recordings of Flight Recorder are known by their first bytes. Of the others the name decides, where it is one that no other format bears; else the first bytes do: the keys of JSON, the text of `perf script`,
/// other text is folded, and the rest is pprof.
pub fn format_of(file: &str, bytes: &[u8]) -> Format {
    if compression::prefix(bytes, jfr::MAGIC.len()) == jfr::MAGIC {
        return Format::Jfr;
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let parts: Vec<&str> = name.split('.').skip(1).collect();
    let named = |known: &[&str]| parts.iter().any(|part| known.contains(part));
    const BY_NAME: [(Format, &[&str]); 7] = [
        (Format::Folded, &["folded", "collapsed"]),
        (Format::PerfScript, &["perf_script", "perf-script", "perfscript"]),
        (Format::Speedscope, &["speedscope"]),
        (Format::Cpuprofile, &["cpuprofile"]),
        (Format::Pyroscope, &["pyroscope", "flamebearer"]),
        (Format::Otlp, &["otlp"]),
        (Format::Jfr, &["jfr"]),
    ];
    if let Some((format, _)) = BY_NAME.into_iter().find(|(_, known)| named(known)) {
        return format;
    }
    if named(&["pb", "pprof"]) {
        return Format::Pprof;
    }
    text(&compression::prefix(bytes, BEGINNING)).map_or(Format::Pprof, of_text)
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

/// The format of a text by how it begins.
fn of_text(text: &str) -> Format {
    if !documents::can_be(text) {
        return if perf_script::begins(text) { Format::PerfScript } else { Format::Folded };
    }
    documents::format_of(text)
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
            ("x.pb.gz", "main 3\n", Format::Pprof),
            ("x", "\u{1}\u{2}", Format::Pprof),
            ("x.jfr.gz", "", Format::Jfr),
            ("x.pb", "FLR\0\0\u{2}", Format::Jfr),
        ];
        for (name, bytes, format) in cases {
            assert_eq!(format_of(name, bytes.as_bytes()), format, "{name} {bytes}");
        }
    }
}
