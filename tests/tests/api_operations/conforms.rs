//! Validates answers against the API document. Supports the JSON Schema keywords that the document uses,
//! and fails on any other.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// Keywords without influence on validity.
const SILENT: &[&str] = &["description", "format", "title", "default", "examples", "example", "deprecated"];

/// Validates a value against a schema of the document; `at` is its position.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<()> {
    let Some(schema) = schema.as_object() else {
        ensure!(schema == &Value::Bool(true), "{at}: {schema} allows nothing");
        return Ok(());
    };
    for (word, wanted) in schema {
        let fits = match word.as_str() {
            "$ref" => {
                let place = wanted.as_str().and_then(|place| place.strip_prefix('#'));
                let named = place.and_then(|place| document.pointer(place));
                check(document, named.with_context(|| format!("{wanted} is nowhere"))?, value, at)?;
                true
            }
            "type" => is_one_of(wanted, |kind| is_of(kind, value)),
            "enum" => is_one_of(wanted, |one| one == value),
            "const" => wanted == value,
            "minimum" => value.as_f64().zip(wanted.as_f64()).is_none_or(|(value, least)| value >= least),
            "maximum" => value.as_f64().zip(wanted.as_f64()).is_none_or(|(value, most)| value <= most),
            "minLength" => length(value).zip(wanted.as_u64()).is_none_or(|(length, least)| length >= least),
            "maxLength" => length(value).zip(wanted.as_u64()).is_none_or(|(length, most)| length <= most),
            // Only request schemas have patterns; they need no regex engine here.
            "pattern" | "minItems" | "maxItems" => true,
            "required" => {
                let mut names = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                match (value.as_object(), names.find(|name| value.get(name).is_none())) {
                    (Some(_), Some(missing)) => bail!("{at}: {missing} is missing in {value}"),
                    _ => true,
                }
            }
            "properties" | "additionalProperties" => {
                object(document, schema, value, at)?;
                true
            }
            "propertyNames" => true,
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, wanted, item, &format!("{at}/{index}"))?;
                }
                true
            }
            "allOf" => {
                for part in wanted.as_array().into_iter().flatten() {
                    check(document, part, value, at)?;
                }
                true
            }
            "oneOf" | "anyOf" => {
                let tried = wanted.as_array().into_iter().flatten();
                let tried: Vec<_> = tried.map(|part| check(document, part, value, at)).collect();
                let wrong: Vec<_> = tried.iter().filter_map(|one| one.as_ref().err()).collect();
                ensure!(wrong.len() < tried.len(), "{at}: none fits: {wrong:#?}");
                true
            }
            word => SILENT.contains(&word) || word.starts_with("x-"),
        };
        ensure!(fits, "{at}: {value} against {word}: {wanted}");
    }
    Ok(())
}

fn is_one_of(wanted: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    wanted.as_array().map_or_else(|| fits(wanted), |all| all.iter().any(&fits))
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

fn object(document: &Value, schema: &Map<String, Value>, value: &Value, at: &str) -> Result<()> {
    let known = schema.get("properties");
    for (name, value) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        match known.and_then(|known| known.get(name)).or_else(|| schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => bail!("{at}: is not described"),
            Some(schema) => check(document, schema, value, &at)?,
            None => {}
        }
    }
    Ok(())
}

#[test]
fn nonconforming_values_are_detected() -> Result<()> {
    let document: Value = serde_json::from_str(
        r##"{ "components": { "schemas": { "One": {
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": { "type": "integer", "minimum": 1, "maximum": 3 },
                "b": { "type": ["string", "null"], "maxLength": 2 },
                "c": { "type": "array", "items": { "oneOf": [{ "enum": ["x"] }, { "type": "boolean" }] } }
            }
        } } } }"##,
    )?;
    let schema: Value = serde_json::from_str(r##"{ "$ref": "#/components/schemas/One" }"##)?;
    for good in [r#"{"a":1}"#, r#"{"a":3,"b":null,"c":[]}"#, r#"{"a":2,"b":"xy","c":["x",true]}"#] {
        check(&document, &schema, &serde_json::from_str(good)?, "")?;
    }
    for wrong in [
        "{}",
        "[]",
        r#"{"a":0}"#,
        r#"{"a":4}"#,
        r#"{"a":1.5}"#,
        r#"{"a":1,"b":1}"#,
        r#"{"a":1,"b":"xyz"}"#,
        r#"{"a":1,"c":["y"]}"#,
        r#"{"a":1,"d":1}"#,
    ] {
        ensure!(check(&document, &schema, &serde_json::from_str(wrong)?, "").is_err(), "{wrong}");
    }
    let odd: Value = serde_json::from_str(r#"{ "if": {} }"#)?;
    ensure!(check(&document, &odd, &Value::Null, "").is_err(), "an unknown keyword");
    Ok(())
}
