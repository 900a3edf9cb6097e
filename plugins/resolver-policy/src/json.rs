//! Finding a field in an answer.

use serde_json::Value;

/// The field of this path, such as `subscriber.imsi`; `None` where there is none, or null.
pub(crate) fn field<'a>(answer: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(answer, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// A text, or a whole number written as one.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Whole seconds, as a number or a text.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
