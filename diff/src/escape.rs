//! Escapes text for HTML, SVG and scripts: function names may contain anything.

/// JSON that is safe within a script element: characters that could end the element, or a line of an old script, are
/// written as escapes. In JSON they occur only within strings, where the escape means the same.
pub(crate) fn for_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

/// Text as HTML and as XML, for an element or a quoted attribute.
pub fn for_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML does not allow other control characters, not even as an escape.
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_script() {
        let hostile = "</script><!--\u{2028}&\u{2029}";
        let json = for_script(&serde_json::to_string(hostile).unwrap());
        assert!(json.chars().all(|character| !"<>&\u{2028}\u{2029}".contains(character)), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn nothing_ends_an_element_or_an_attribute() {
        assert_eq!(for_text("<a b=\"c\" d='e'>&\u{1}"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd}");
    }
}
