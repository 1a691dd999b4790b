//! In what two configurations differ, in words.

use std::collections::BTreeMap;

use serde_json::Value;

/// The settings that differ, each with its values; both configurations are JSON. Empty if none does.
pub(crate) fn changes(was: &str, is: &str) -> String {
    if was == is {
        return String::new();
    }
    let (Some(was_each), Some(is_each)) = (each(was), each(is)) else {
        return format!("they were {was}, now they are {is}");
    };
    let removed = was_each.iter().filter(|(key, _)| !is_each.contains_key(*key));
    let removed = removed.map(|(key, was)| format!("{key} was {was}, now there is no such setting"));
    let others = is_each.iter().filter_map(|(key, is)| match was_each.get(key) {
        None => Some(format!("{key} is {is}, before there was no such setting")),
        Some(was) if was != is => Some(format!("{key} was {was}, now it is {is}")),
        Some(_) => None,
    });
    others.chain(removed).collect::<Vec<_>>().join(", ")
}

/// Every setting by its whole name.
fn each(json: &str) -> Option<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    let mut objects = vec![(String::new(), serde_json::from_str::<Value>(json).ok()?)];
    while let Some((name, value)) = objects.pop() {
        let Value::Object(parts) = value else {
            all.insert(name, value);
            continue;
        };
        let prefix = if name.is_empty() { name } else { format!("{name}.") };
        objects.extend(parts.into_iter().map(|(part, value)| (format!("{prefix}{part}"), value)));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_named() {
        let was =
            r#"{"dataflow":{"min_count":30,"window":"30m","gone":1},"kafka":{"topic":"a","identity":{"pod":"x"}}}"#;
        let is =
            r#"{"dataflow":{"min_count":31,"window":"30m","added":[1]},"kafka":{"topic":"a","identity":{"pod":"y"}}}"#;
        assert_eq!(
            changes(was, is),
            concat!(
                "dataflow.added is [1], before there was no such setting, dataflow.min_count was 30, now it is 31, ",
                r#"kafka.identity.pod was "x", now it is "y", dataflow.gone was 1, now there is no such setting"#
            )
        );
        assert_eq!(changes(was, was), "");
        assert_eq!(changes("a", "{}"), "they were a, now they are {}");
    }
}
