//! One value as JSON.
//!
//! Instants are RFC 3339 in UTC. JSON has no infinity, so both infinite and unknown numbers are null. In an
//! inconclusive row `reason` distinguishes the two: `needs_pods` says that `seconds_to_significance` is infinite.

use serde_json::Value as Json;

use super::calendar::rfc3339;
use super::value::Value;

pub(super) fn json_of(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => Json::from(text),
        Value::Count(count) => Json::from(count),
        // NB: serde_json turns infinity into null.
        Value::Number(number) => Json::from(number),
        Value::Instant(at) => Json::from(rfc3339(at)),
        Value::Texts(texts) => Json::from(texts),
        Value::Counts(counts) => Json::from(counts),
        Value::Truth(truth) => Json::from(truth),
    }
}
