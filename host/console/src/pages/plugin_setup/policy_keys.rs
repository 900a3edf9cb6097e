//! The keys of a policy document, from the JSON Schema in the component.

use crate::table::{MAX_ROWS, table};
use maud::{Markup, html};
use serde_json::Value;

/// The maximum depth of keys. Schemas may refer to themselves.
const MAX_DEPTH: usize = 5;

/// A key: its path, its type and its description.
struct PolicyKey {
    path: String,
    kind: String,
    about: String,
}

fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|pointer| pointer.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn kind(root: &Value, schema: &Value) -> String {
    if let Some(name) = schema["x-switchyard"].as_str() {
        return format!("name of a {}", name.replace('-', " "));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list: {}", kind(root, resolve(root, &schema["items"]))),
        Some("object") => "table".to_owned(),
        Some(name) => name.to_owned(),
        None => String::new(),
    }
}

fn collect(root: &Value, schema: &Value, path: &str, depth: usize, keys: &mut Vec<PolicyKey>) {
    let schema = resolve(root, schema);
    if depth > MAX_DEPTH || keys.len() >= MAX_ROWS {
        return;
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let target = resolve(root, below);
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let about = below["description"].as_str().or(target["description"].as_str()).unwrap_or_default();
        keys.push(PolicyKey { path: path.clone(), kind: kind(root, target), about: about.to_owned() });
        collect(root, target, &path, depth + 1, keys);
        collect(root, &target["items"], &format!("{path}[]"), depth + 1, keys);
        collect(root, &target["additionalProperties"], &format!("{path}.NAME"), depth + 1, keys);
    }
}

/// The keys as a folded table; nothing if the schema describes none.
pub(super) fn list(schema: &Value) -> Markup {
    let mut keys = Vec::new();
    collect(schema, schema, "", 0, &mut keys);
    for (keyword, line) in schema["x-switchyard-lines"].as_object().into_iter().flatten() {
        let words = line["words"].as_array().into_iter().flatten();
        let about_word = |word: &Value| match word["x-switchyard"].as_str() {
            Some(name) => format!("name of a {}", name.replace('-', " ")),
            None => word["description"].as_str().unwrap_or_default().trim_end_matches('.').to_owned(),
        };
        let words: Vec<String> = words.map(about_word).collect();
        let about = line["description"].as_str().unwrap_or_default().to_owned();
        keys.push(PolicyKey { path: keyword.clone(), kind: words.join("; "), about });
    }
    let rows: Vec<_> = keys
        .iter()
        .map(|key| vec![html! { code { (key.path) } }, html! { (key.kind) }, html! { (key.about) }])
        .collect();
    html! {
        @if !rows.is_empty() {
            details #policy-keys {
                summary { "What the document may contain" }
                (table("Keys of the document", &["Key", "Value", "Meaning"], &rows, &html! {}))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_listed_with_their_descriptions_and_a_recursive_schema_ends() {
        let schema = json!({
            "properties": {
                "default": { "type": "string", "x-switchyard": "peer", "description": "The <default>." },
                "route": { "type": "array", "items": { "$ref": "#/$defs/route" } },
            },
            "$defs": { "route": { "type": "object", "properties": {
                "prefix": { "type": "string" },
                "else": { "$ref": "#/$defs/route" },
            } } },
        });
        let text = list(&schema).into_string();
        for words in
            ["name of a peer", "The &lt;default&gt;.", "route[].prefix", "list: table", "route[].else"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(list(&json!({})).into_string().is_empty());
    }
}
