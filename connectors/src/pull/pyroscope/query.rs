//! A selection of series, as Pyroscope and Prometheus write it: `{service_name="shop", namespace="prod"}`.

/// A selection of series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(String);

/// Why a text is no selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected labels in braces, as in {{service_name=\"shop\"}}")]
pub struct NoQuery;

impl Query {
    /// All series.
    pub fn all() -> Self {
        Self("{}".to_owned())
    }

    /// Reads a selection. What is between its braces is the server's to check.
    ///
    /// # Errors
    /// [`NoQuery`] without braces around it.
    pub fn of(text: &str) -> Result<Self, NoQuery> {
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or(NoQuery)?;
        Ok(Self(format!("{{{}}}", inner.trim().trim_end_matches(','))))
    }

    /// The selection as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Those of it that have these labels; an empty value is that of a label that is absent.
    pub(super) fn with(&self, labels: &[(&str, &str)]) -> String {
        let own = self.0.trim_start_matches('{').trim_end_matches('}');
        let more = labels.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let all: Vec<String> = Some(own.to_owned()).into_iter().filter(|own| !own.is_empty()).chain(more).collect();
        format!("{{{}}}", all.join(","))
    }
}

/// A text between quotes, as Go reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_narrowed_by_labels() {
        let shop = Query::of(r#" {service_name="shop", namespace=~"prod|}",} "#).unwrap();
        let pod = shop.with(&[("pod", r#"a"b\c"#), ("region", "")]);
        assert_eq!(pod, r#"{service_name="shop", namespace=~"prod|}",pod="a\"b\\c",region=""}"#);
        assert_eq!(Query::of("{}").unwrap().with(&[("pod", "x")]), r#"{pod="x"}"#);
        assert_eq!(Query::of("service_name=\"shop\""), Err(NoQuery));
    }
}
