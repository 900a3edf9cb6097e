//! Access to fields of a JSON response.

use serde_json::Value;

/// The field at this path, such as `subscriber.imsi`; `None` if it is missing or null.
pub(crate) fn field<'a>(answer: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(answer, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// A text, or an integer as text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Whole seconds, from a number or a text.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
