//! Generates `docs/reference/http-api.md` from the OpenAPI document.

use super::document_ref;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEAD: &str = "# HTTP API\n\n\
    Generated from the OpenAPI document of `host/admin` (`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.\n\n\
    `GET /v1/openapi.json` also describes requests and answers. A request needs a token (`Authorization: Bearer TOKEN`) or a session; \
    [TLS, users and permissions](../guide/tls-and-users.md) describes both. An error is a problem document (RFC 9457). Business systems \
    have an API of their own: see [HTTP and webhooks](../guide/http-and-webhooks.md).\n";

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
    match operation["x-permission"].as_str() {
        Some(permission) => {
            let _ = writeln!(text, "Permission: `{permission}`.");
        }
        None => {
            let _ = writeln!(text, "Permission: none; the operation is public.");
        }
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

fn page() -> String {
    let mut by_tag: BTreeMap<String, Vec<(&String, &String, &Value)>> = BTreeMap::new();
    for (path, item) in entries(&document_ref()["paths"]) {
        for (method, operation) in entries(item) {
            by_tag.entry(line(&operation["tags"][0])).or_default().push((path, method, operation));
        }
    }
    let mut text = HEAD.to_owned();
    for (tag, operations) in by_tag {
        let _ = writeln!(text, "\n## {}", if tag.is_empty() { "other" } else { &tag });
        for (path, method, operation) in operations {
            write_operation(&mut text, method, path, operation);
        }
    }
    text
}

#[test]
fn http_api_reference_is_up_to_date() {
    testkit::reference_page::check("docs/reference/http-api.md", &page());
}

#[test]
fn the_reference_has_every_operation() {
    let page = page();
    let operations: usize = entries(&document_ref()["paths"]).values().map(|item| entries(item).len()).sum();
    assert_eq!(page.matches("\n### `").count(), operations);
    assert!(page.contains("### `GET /v1/messages/{id}`") && page.contains("Permission: `read`."), "{page}");
}
