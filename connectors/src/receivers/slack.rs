//! Texts for Slack: its escapes, its lengths, and no mention that an event brings along.

/// The template of messages.
pub(super) const TEMPLATE: &str = include_str!("slack.json.jinja");

/// Longest URL of a link; a longer one is left out.
const LONGEST_URL: usize = 2000;

/// What is put after an `@`: it has no width, and the word no longer mentions anybody.
const BREAK: char = '\u{200b}';

/// A text for mrkdwn of at most `limit` characters after its escapes: `&`, `<` and `>` are escaped, as Slack asks, control
/// characters become spaces, and an `@` mentions nobody.
pub(super) fn mrkdwn(text: &str, limit: usize) -> String {
    bounded(text, limit, |c| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        other => harmless(other),
    })
}

/// A text of at most `limit` characters that is not marked up. Slack's own escapes are not read there, so angle brackets are
/// replaced by others.
pub(super) fn plain(text: &str, limit: usize) -> String {
    bounded(text, limit, |c| match c {
        '<' => "\u{2039}".to_owned(),
        '>' => "\u{203a}".to_owned(),
        other => harmless(other),
    })
}

fn harmless(c: char) -> String {
    match c {
        '@' => format!("@{BREAK}"),
        c if c.is_control() => " ".to_owned(),
        // These turn the direction of what follows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => String::new(),
        c => c.to_string(),
    }
}

/// Whole pieces as long as they fit, then an ellipsis if something is missing.
fn bounded(text: &str, limit: usize, piece: impl Fn(char) -> String) -> String {
    let (mut written, mut length, mut end) = (String::new(), 0, 0);
    for c in text.chars() {
        let piece = piece(c);
        length += piece.chars().count();
        if length > limit {
            written.truncate(end);
            written.push('\u{2026}');
            return written;
        }
        written.push_str(&piece);
        // Where it can be cut so that the ellipsis fits too.
        if length < limit {
            end = written.len();
        }
    }
    written
}

/// A link with a label; nothing if it is unknown, too long, or not http.
pub(super) fn link(url: Option<String>, label: &str) -> String {
    let Some(url) = url.filter(|url| url.starts_with("https://") || url.starts_with("http://")) else {
        return String::new();
    };
    let encode = |c: char| match c {
        '<' => "%3C".to_owned(),
        '>' => "%3E".to_owned(),
        '|' => "%7C".to_owned(),
        '&' => "&amp;".to_owned(),
        c if c.is_control() || c.is_whitespace() => String::new(),
        c => c.to_string(),
    };
    let url: String = url.chars().map(encode).collect();
    if url.len() > LONGEST_URL { String::new() } else { format!("<{url}|{label}>") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_nobody_is_mentioned() {
        let text = mrkdwn("a<!channel>&b\n<@U1> @here\u{7}", 100);
        assert_eq!(text, "a&lt;!channel&gt;&amp;b &lt;@\u{200b}U1&gt; @\u{200b}here ");
        assert_eq!(plain("Vec<T> & <!here>", 100), "Vec\u{2039}T\u{203a} & \u{2039}!here\u{203a}");
    }

    #[test]
    fn a_long_text_is_cut_between_escapes() {
        for limit in 1..30 {
            let text = mrkdwn(&"<&>x".repeat(10), limit);
            assert!(text.chars().count() <= limit, "{limit}: {text}");
            let whole = text.trim_end_matches('\u{2026}');
            let rest = whole.replace("&lt;", "").replace("&amp;", "").replace("&gt;", "").replace('x', "");
            assert_eq!(rest, "", "{limit}: {text}");
        }
        assert_eq!(mrkdwn("abc", 3), "abc");
        assert_eq!(mrkdwn("abcd", 3), "ab\u{2026}");
    }

    #[test]
    fn only_links_to_pages_are_links() {
        let some = |url: &str| link(Some(url.to_owned()), "Runbook");
        assert_eq!(some("https://x.example/a|b?c=<d>&e"), "<https://x.example/a%7Cb?c=%3Cd%3E&amp;e|Runbook>");
        assert_eq!(some("javascript:alert(1)"), "");
        assert_eq!(some(&format!("https://x.example/{}", "a".repeat(3000))), "");
        assert_eq!(link(None, "Runbook"), "");
    }
}
