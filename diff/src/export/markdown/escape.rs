//! Names and sentences within a table of GitHub's Markdown.

use crate::shorten::shortened;

/// Most characters shown of a name; the middle of a longer name is left out, since its ends identify the package and
/// the function.
pub const NAME: usize = 80;

/// A name as a code span that is safe in a cell of a table.
///
/// The fence is longer than any run of backticks within. A `|` must be escaped even in a code span, since the cell is
/// cut out first. The number of backslashes before it must be odd; otherwise the last of them would be escaped instead
/// of it.
pub fn code(name: &str) -> String {
    let name = shortened(name, NAME);
    let mut body = String::with_capacity(name.len());
    let (mut fence, mut ticks, mut backslashes) = (1, 0, 0usize);
    for character in name.chars() {
        let character = if ends_a_line(character) { ' ' } else { character };
        ticks = if character == '`' { ticks + 1 } else { 0 };
        fence = fence.max(ticks + 1);
        if character == '|' {
            body.push_str(if backslashes.is_multiple_of(2) { "\\" } else { "\\\\" });
        }
        backslashes = if character == '\\' { backslashes + 1 } else { 0 };
        body.push(character);
    }
    if body.trim().is_empty() {
        return "(no name)".to_owned();
    }
    let fence = "`".repeat(fence);
    // One blank at each end is removed, if both ends have one.
    let needs_room = |character: Option<char>| matches!(character, Some('`' | ' '));
    let room = if needs_room(body.chars().next()) || needs_room(body.chars().next_back()) { " " } else { "" };
    format!("{fence}{room}{body}{room}{fence}")
}

/// A sentence in which nothing is markup, of at most `most` characters before escapes.
pub fn text(sentence: &str, most: usize) -> String {
    let mut escaped = String::with_capacity(sentence.len());
    for character in shortened(sentence, most).chars() {
        match character {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other if ends_a_line(other) => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

fn ends_a_line(character: char) -> bool {
    character.is_control() || character == '\u{2028}' || character == '\u{2029}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        assert_eq!(code("plain<T>::f"), "`plain<T>::f`");
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`a`"), "`` `a` ``");
        assert_eq!(code("two\nlines\r"), "` two lines  `");
        assert_eq!(code("\n"), "(no name)");
    }

    #[test]
    fn a_pipe_has_an_odd_number_of_backslashes_before_it() {
        assert_eq!(code("a|b"), r"`a\|b`");
        assert_eq!(code(r"a\|b"), r"`a\\\|b`");
        assert_eq!(code(r"a\\|b||"), r"`a\\\|b\|\|`");
    }
}
