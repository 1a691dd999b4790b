//! The formats in JSON, by the keys of the document.

use crate::format::Format;

/// The format of a document that begins so.
pub(super) fn format_of(text: &str) -> Format {
    let keys = keys(text);
    let has = |known: &str| keys.contains(&known);
    let holds = |key: &str| text.contains(key);
    if has("traceEvents") || (text.trim_start().starts_with('[') && has("ph")) {
        Format::ChromeTrace
    } else if keys.first() == Some(&"meta") && holds("\"interval\"") {
        Format::Gecko
    } else if has("flamebearer") || holds("\"flamebearer\"") {
        Format::Pyroscope
    } else if has("head") && holds("\"selfSize\"") {
        Format::Heapprofile
    } else if has("mode") && has("interval") && !has("$schema") {
        Format::Stackprof
    } else if holds("\"callFrame\"") || has("nodes") {
        Format::Cpuprofile
    } else {
        Format::Speedscope
    }
}

/// The keys of the outermost object, as far as the text goes; of a list those of its first object.
fn keys(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let text = text.strip_prefix('[').map_or(text, str::trim_start);
    let (mut keys, mut depth, mut begun, mut escaped) = (Vec::new(), 0usize, None, false);
    let mut last: Option<&str> = None;
    for (place, byte) in text.bytes().enumerate() {
        if let Some(start) = begun {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    last = text.get(start..place).filter(|_| depth == 1);
                    begun = None;
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => begun = Some(place + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => break,
            b'}' | b']' => depth -= 1,
            b':' => keys.extend(last.take()),
            b',' => last = None,
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_outermost_object() {
        let keys = |text| super::keys(text).join(" ");
        assert_eq!(keys(r#" {"a":{"b":1,"c":[{"d":2}]}, "e" : "f:\"g\"", "h":[], "#), "a e h");
        assert_eq!(keys(r#"[ {"name":"x","args":{"y":1}},{"z":1}]"#), "name args");
        assert_eq!(keys(r#"{"a":"b"}{"c":1}"#), "a");
        assert_eq!(keys("{\"a"), "");
    }

    #[test]
    fn a_document_is_known_by_its_keys_and_not_by_what_it_holds() {
        let head = r#"{"head":{"callFrame":{"functionName":"(root)"},"#;
        assert_eq!(format_of(&format!("{head}\"selfSize\":0")), Format::Heapprofile);
        assert_eq!(format_of(r#"{"head":{"functionName":"(root)","callFrame":{}"#), Format::Cpuprofile);
        assert_eq!(format_of(r#"{"metadata":{},"traceEvents":[{"ph":"P""#), Format::ChromeTrace);
        assert_eq!(format_of(r#"[{"args":{"callFrame":{}},"name":"x","ph":"X"}"#), Format::ChromeTrace);
        assert_eq!(format_of(r#"{"meta":{"interval":1,"preprocessedProfileVersion":55},"#), Format::Gecko);
        assert_eq!(format_of(r#"{"version":1.2,"mode":"cpu","interval":1000,"frames":{"#), Format::Stackprof);
        assert_eq!(format_of(r#"{"shared":{"frames":[{"name":"\"selfSize\" \"head\":"}]}"#), Format::Speedscope);
    }
}
