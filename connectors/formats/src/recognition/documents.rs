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

/// Whether a text can be a document: a frame of folded stacks may begin with a bracket too.
pub(super) fn can_be(text: &str) -> bool {
    let text = text.trim_start();
    let in_list = |rest: &str| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with(|next: char| "{[]\"-".contains(next) || next.is_ascii_digit())
    };
    text.starts_with('{') || text.strip_prefix('[').is_some_and(in_list)
}

/// The outermost keys of a document that none of the formats has.
pub(super) fn unknown_keys(text: &str) -> Option<Vec<String>> {
    const OF_SPEEDSCOPE: [&str; 2] = ["$schema", "shared"];
    let keys = keys(text);
    let is_known = format_of(text) != Format::Speedscope || keys.iter().any(|key| OF_SPEEDSCOPE.contains(key));
    (!is_known).then(|| keys.into_iter().map(str::to_owned).collect())
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
        assert!(unknown_keys(r#"{"shared":{"frames":[]}}"#).is_none() && unknown_keys(r#"{"nodes":[]}"#).is_none());
        assert_eq!(unknown_keys(r#"{"a":1,"b":{"c":2}}"#).unwrap(), ["a", "b"]);
        assert!(can_be(" [ {") && can_be("{") && !can_be("[unknown];main 3") && !can_be("main 3"));
        assert_eq!(format_of(r#"{"shared":{"frames":[{"name":"\"selfSize\" \"head\":"}]}"#), Format::Speedscope);
    }
}
