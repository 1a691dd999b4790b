//! How V8 names a function, in each of the files that it writes.

use std::borrow::Cow;

use serde::Deserialize;

/// A function as V8 writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallFrame<'a> {
    #[serde(borrow)]
    pub(crate) function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) url: Cow<'a, str>,
}

impl CallFrame<'_> {
    /// Whether it is the root of V8's own, which is no function.
    pub(crate) fn is_root(&self) -> bool {
        self.function_name == "(root)"
    }

    /// Whether the engine was waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.function_name == "(idle)"
    }

    pub(crate) fn name(&self) -> &str {
        if self.function_name.is_empty() { "(anonymous)" } else { &self.function_name }
    }

    /// The name with the file, since names repeat. What was made in memory (`blob:`) has another address each time, and none here.
    pub(crate) fn full_name(&self) -> Cow<'_, str> {
        match self.url.strip_prefix("file://").unwrap_or(&self.url) {
            file if file.is_empty() || file.starts_with("blob:") => Cow::Borrowed(self.name()),
            file => format!("{} ({file})", self.name()).into(),
        }
    }
}
