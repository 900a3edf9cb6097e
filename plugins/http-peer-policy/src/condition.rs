//! Conditions on fields of JSON documents, which JSON Pointers name (RFC 6901).

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A value, or several.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text, a number, true or false, or a list of these")]
pub(crate) enum Values {
    One(Scalar),
    Many(Vec<Scalar>),
}

/// A value of a field.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text, a number, true or false")]
pub(crate) enum Scalar {
    Text(String),
    Integer(i64),
    Switch(bool),
}

impl Scalar {
    fn is(&self, found: &str) -> bool {
        match self {
            Self::Text(text) => text == found,
            Self::Integer(number) => number.to_string() == found,
            Self::Switch(value) => value.to_string() == found,
        }
    }
}

impl Values {
    fn has(&self, found: &str) -> bool {
        match self {
            Self::One(one) => one.is(found),
            Self::Many(many) => many.iter().any(|one| one.is(found)),
        }
    }
}

/// JSON Pointers with the values that the fields must have.
pub(crate) type Conditions = BTreeMap<String, Values>;

/// Whether all fields have one of their values; a missing field has none.
pub(crate) fn hold(conditions: &Conditions, document: &Value) -> bool {
    conditions.iter().all(|(pointer, values)| text(document, pointer).is_some_and(|found| values.has(&found)))
}

/// A text, a number or a truth value, as text; `None` for anything else.
pub(crate) fn text(document: &Value, pointer: &str) -> Option<String> {
    match document.pointer(pointer)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Checks that a text is a JSON Pointer.
///
/// # Errors
/// The correction.
pub(crate) fn check_pointer(key: &str, pointer: &str) -> Result<(), String> {
    if pointer.is_empty() || pointer.starts_with('/') {
        return Ok(());
    }
    Err(format!("{key} is {pointer:?}: write a JSON Pointer, such as \"/{pointer}\" or \"/messages/0/id\""))
}
