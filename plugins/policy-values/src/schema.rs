//! JSON Schemas of policy documents: the schemas of the values, and the files in `policies/schemas`.
//!
//! A schema says what an editor needs: keys with their descriptions, types, limits and keywords. The keyword `x-switchyard` of a
//! property says that its value is a name, or a list of names, of objects in the appliance: `account`, `ledger-account`,
//! `pace-bucket`, `peer`, `pool`, `send-window` or `table`. `x-switchyard-grant` says that a property uses a capability:
//! `http`, `dns`, `kv` or `hlr`.

use crate::{AttributeConditions, MAX_PREFIX_DIGITS, Millionths, Names, Time};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::PathBuf;

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|min|h|d)$" })
    }
}

impl JsonSchema for Millionths {
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]{1,6})?$" })
    }
}

impl JsonSchema for Names {
    fn schema_name() -> Cow<'static, str> {
        "Names".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        one_or_many(&json_schema!({ "type": "string" }))
    }
}

/// Attributes that the default plugins set, with their meanings.
const KNOWN_ATTRIBUTES: [(&str, &str); 6] = [
    ("mcc", "Mobile country code of the network, such as 262."),
    ("mnc", "Mobile network code, such as 01."),
    ("ported", "Whether the number is ported: yes or no."),
    ("line-type", "Such as mobile or fixed."),
    ("rn", "Routing number of an ENUM record."),
    ("spn", "Service provider of an ENUM record."),
];

impl JsonSchema for AttributeConditions {
    fn schema_name() -> Cow<'static, str> {
        "AttributeConditions".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let values = one_or_many(&json_schema!({ "type": "string" }));
        let known = KNOWN_ATTRIBUTES.into_iter().map(|(name, description)| {
            let mut values = values.clone();
            values.insert("description".to_owned(), description.into());
            (name.to_owned(), values.to_value())
        });
        json_schema!({
            "type": "object",
            "properties": known.collect::<Map<_, _>>(),
            "additionalProperties": values,
            "propertyNames": { "pattern": "^[a-z0-9._-]{1,64}$" },
        })
    }
}

fn one_or_many(one: &Schema) -> Schema {
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}

/// The schema of a prefix, as [`crate::check_prefix`] accepts it.
pub fn prefix(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^[0-9]{{0,{MAX_PREFIX_DIGITS}}}$") })
}

/// The schema of a prefix, or of a list of prefixes.
pub fn prefixes(generator: &mut SchemaGenerator) -> Schema {
    one_or_many(&prefix(generator))
}

/// Compares the schema of a document with the file `policies/schemas/PLUGIN.json`. With `UPDATE=1` in the environment, writes
/// the file.
///
/// # Panics
/// The file does not have this schema.
pub fn assert_up_to_date<Document: JsonSchema>(plugin: &str) {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Document>().to_value();
    simplify(&mut schema);
    if let Value::Object(schema) = &mut schema {
        schema.insert("title".to_owned(), format!("Policy of {plugin}").into());
        schema.remove("description");
    }
    let text = format!("{schema:#}\n");
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/schemas"))
        .join(format!("{plugin}.json"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let written = std::fs::write(&path, &text);
        assert!(written.is_ok(), "writing {}: {written:?}", path.display());
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{} is not up to date; run this test with UPDATE=1", path.display());
}

/// Removes details of Rust types: number formats, and null for optional values, which TOML does not have.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove("format");
            map.retain(|key, value| !(key == "default" && value.is_null()));
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    map.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            remove_null_alternative(map);
            map.values_mut().for_each(simplify);
        }
        Value::Array(all) => all.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn remove_null_alternative(schema: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") else { return };
    alternatives.retain(|one| one.get("type").is_none_or(|name| name != "null"));
    if alternatives.len() == 1
        && let Some(Value::Object(one)) = alternatives.pop()
    {
        schema.remove("anyOf");
        for (key, value) in one {
            // The description of the property is more specific than that of its type.
            schema.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_values_have_no_null() {
        let mut schema = serde_json::json!({
            "a": { "type": ["integer", "null"], "format": "uint8", "maximum": 255, "default": null },
            "b": { "description": "b", "anyOf": [{ "type": "string", "description": "its type" }, { "type": "null" }] },
            "c": { "anyOf": [{ "type": "string" }, { "type": "array" }, { "type": "null" }] },
        });
        simplify(&mut schema);
        let expected = serde_json::json!({
            "a": { "type": "integer", "maximum": 255 },
            "b": { "description": "b", "type": "string" },
            "c": { "anyOf": [{ "type": "string" }, { "type": "array" }] },
        });
        assert_eq!(schema, expected);
    }
}
