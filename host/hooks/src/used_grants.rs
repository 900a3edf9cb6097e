//! Finds the capabilities that a policy document uses, by the schema of the plugin's documents.
//!
//! A component imports every capability that any document may need. The keyword `x-switchyard-grant` of a property in the
//! schema says that the property uses a capability. If a schema has such properties for a capability, a grant is needed only
//! if the document has one of the properties.

use serde_json::Value;

/// The keyword of a property that uses a capability; its value is the name of the capability's interface.
const KEYWORD: &str = "x-switchyard-grant";

/// Maximum nesting of a schema; deeper levels are ignored.
const MAX_DEPTH: usize = 32;

/// Whether a document needs the grant of a capability, according to the schema. Documents that are neither TOML nor JSON
/// need every grant.
pub(crate) fn needs(schema: &Value, policy: &str, capability: &str) -> bool {
    if !mentions(schema, capability, 0) {
        return true;
    }
    let document = toml::from_str::<Value>(policy).ok().or_else(|| serde_json::from_str(policy).ok());
    document.is_none_or(|document| uses(schema, schema, &document, capability, 0))
}

/// Whether any property of a schema uses the capability.
fn mentions(schema: &Value, capability: &str, depth: usize) -> bool {
    let children: Box<dyn Iterator<Item = &Value>> = match schema {
        Value::Object(members) => {
            if members.get(KEYWORD).and_then(Value::as_str) == Some(capability) {
                return true;
            }
            Box::new(members.values())
        }
        Value::Array(elements) => Box::new(elements.iter()),
        _ => return false,
    };
    let mut children = children;
    depth < MAX_DEPTH && children.any(|child| mentions(child, capability, depth + 1))
}

/// Whether a part of the document has a property that uses the capability. `root` is the whole schema, for references.
fn uses(root: &Value, schema: &Value, part: &Value, capability: &str, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    if schema[KEYWORD].as_str() == Some(capability) {
        return true;
    }
    let below = |schema: &Value, part: &Value| uses(root, schema, part, capability, depth + 1);
    let referred = schema["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    if referred.is_some_and(|schema| below(schema, part)) {
        return true;
    }
    let mut alternatives =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    if alternatives.any(|schema| below(schema, part)) {
        return true;
    }
    match part {
        Value::Object(members) => members.iter().any(|(name, member)| {
            let property = schema["properties"].get(name);
            below(property.unwrap_or(&schema["additionalProperties"]), member)
        }),
        Value::Array(elements) => elements.iter().any(|element| below(&schema["items"], element)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "properties": {
                "source": { "items": { "$ref": "#/$defs/Source" } },
                "named": { "additionalProperties": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Source" }] } },
            },
            "$defs": { "Source": { "properties": {
                "table": { "type": "string" },
                "http": { "type": "string", "x-switchyard-grant": "http" },
                "enum": { "type": "string", "x-switchyard-grant": "dns" },
            } } },
        })
    }

    #[test]
    fn a_capability_is_needed_where_the_document_uses_it() {
        let needs = |policy: &str| ["http", "dns", "kv"].map(|name| super::needs(&schema(), policy, name));
        assert_eq!(needs("[[source]]\ntable = 'a'\n"), [false, false, true], "the schema says nothing of kv");
        assert_eq!(needs("[[source]]\ntable = 'a'\n[[source]]\nhttp = 'b'\n"), [true, false, true]);
        assert_eq!(needs("[named.x]\nenum = 'e164.arpa'\n"), [false, true, true]);
        assert_eq!(needs(r#"{ "source": [{ "enum": "e164.arpa" }] }"#), [false, true, true]);
        assert_eq!(needs("http = 'not a source'\n"), [false, false, true]);
        assert_eq!(needs("route 86 to north"), [true, true, true], "neither TOML nor JSON");
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let endless =
            json!({ "$ref": "#", "properties": { "a": { "$ref": "#" } }, "x": { KEYWORD: "http" } });
        assert!(!needs(&endless, "[a.a.a]\nb = 1\n", "http"));
    }
}
