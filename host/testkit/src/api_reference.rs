//! Generates reference pages of HTTP APIs from their OpenAPI documents.

use crate::reference_page::COMMAND;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The page of an API. `source`: the crate that owns the document. `introduction`: the text below the title.
#[must_use]
pub fn page(title: &str, source: &str, introduction: &str, document: &Value) -> String {
    let mut by_tag: BTreeMap<String, Vec<(&String, &String, &Value)>> = BTreeMap::new();
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            by_tag.entry(line(&operation["tags"][0])).or_default().push((path, method, operation));
        }
    }
    let mut text = format!(
        "# {title}\n\nGenerated from the OpenAPI document of `{source}` (`{COMMAND}`), do not edit.\n\n{introduction}\n"
    );
    for (tag, operations) in by_tag {
        let _ = writeln!(text, "\n## {}", if tag.is_empty() { "other" } else { &tag });
        for (path, method, operation) in operations {
            write_operation(&mut text, method, path, operation);
        }
    }
    text
}

/// A text on one line of a table.
fn line(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The entries of an object, sorted.
fn entries(value: &Value) -> BTreeMap<&String, &Value> {
    value.as_object().into_iter().flatten().collect()
}

fn write_operation(text: &mut String, method: &str, path: &str, operation: &Value) {
    let _ = writeln!(text, "\n### `{} {path}`\n", method.to_uppercase());
    for part in
        ["summary", "description"].iter().map(|key| line(&operation[*key])).filter(|part| !part.is_empty())
    {
        let _ = writeln!(text, "{part}\n");
    }
    if let Some(permission) = operation["x-permission"].as_str() {
        let _ = writeln!(text, "Permission: `{permission}`.");
    } else if operation.get("security").is_some() {
        let _ = writeln!(text, "Permission: none; the operation is public.");
    }
    let bodies = entries(&operation["requestBody"]["content"]);
    if !bodies.is_empty() {
        let types: Vec<String> = bodies.keys().map(|kind| format!("`{kind}`")).collect();
        let _ = writeln!(text, "Request body: {}.", types.join(", "));
    }
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    if !parameters.is_empty() {
        let _ = writeln!(text, "\n| parameter | in | meaning |\n|---|---|---|");
    }
    for parameter in parameters {
        let mut place = line(&parameter["in"]);
        if parameter["in"] == "query" && parameter["required"] == true {
            place.push_str(", required");
        }
        let described = &parameter["description"];
        let meaning = if described.is_null() { &parameter["schema"]["description"] } else { described };
        let _ = writeln!(text, "| `{}` | {place} | {} |", line(&parameter["name"]), line(meaning));
    }
}
