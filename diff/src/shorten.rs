//! Names that are too long for a sentence or a cell.

/// At most `most` characters, with the middle left out.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let (front, back) = ((most - 1) / 2, most / 2);
    text.chars().take(front).chain(['…']).chain(text.chars().skip(length - back)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_ends() {
        let name: String = ('a'..='z').cycle().take(200).collect();
        let short = shortened(&name, 80);
        assert_eq!(short.chars().count(), 80);
        assert!(name.starts_with(&short[..39]) && name.ends_with(&short[short.len() - 40..]), "{short}");
        assert_eq!(shortened("short", 5), "short");
    }
}
