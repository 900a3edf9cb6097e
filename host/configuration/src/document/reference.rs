//! Generates `docs/reference/configuration.md` from the JSON Schema.

use super::schema;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const HEAD: &str = "# Configuration keys\n\n\
    Generated from `host/configuration/src/document` (`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.\n\n\
    A section in double brackets, such as `[[peer]]`, may occur any number of times. [Configuration](../guide/configuration.md) describes how \
    the file and the API work together. The sample `host/switchyard/switchyard.toml` shows the usual keys.\n";

/// A table of the document.
struct Table<'a> {
    path: String,
    is_list: bool,
    schema: &'a Value,
    description: String,
}

impl Table<'_> {
    fn title(&self) -> String {
        if self.is_list { format!("[[{}]]", self.path) } else { format!("[{}]", self.path) }
    }
}

/// The name of the definition that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The schema itself, or the definition that it refers to.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    reference(schema).and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(move |key| schema.get(key)?.as_array()).flatten()
}

/// The keys of a table, sorted.
fn properties(schema: &Value) -> BTreeMap<&String, &Value> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten().collect()
}

/// A type's name as words: `ListenAddressConfig` is "listen address".
fn words(name: &str) -> String {
    let mut words = String::new();
    for c in name.trim_end_matches("Config").chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

fn code(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{text}`"))
}

/// The type of a value, for people.
fn type_text(root: &Value, schema: &Value) -> String {
    let target = resolve(root, schema);
    let mut choices: Vec<String> = Vec::new();
    for choice in alternatives(target) {
        let text = type_text(root, choice);
        if !choices.contains(&text) {
            choices.push(text);
        }
    }
    if !choices.is_empty() {
        let are_words = choices.iter().all(|choice| choice.starts_with('`'));
        return choices.join(if are_words { ", " } else { " or " });
    }
    if let Some(value) = target.get("const") {
        return code(value);
    }
    if let Some(values) = target.get("enum").and_then(Value::as_array) {
        return values.iter().map(code).collect::<Vec<_>>().join(", ");
    }
    if let Some(types) = target.get("type").and_then(Value::as_array) {
        return types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ");
    }
    let bound = |key: &str| target.get(key).and_then(Value::as_u64);
    match target.get("type").and_then(Value::as_str) {
        Some("boolean") => "true or false".to_owned(),
        Some("array") => {
            format!(
                "list of {}",
                target.get("items").map_or("anything".to_owned(), |items| type_text(root, items))
            )
        }
        Some("object") => match target.get("additionalProperties").filter(|value| value.is_object()) {
            Some(value) => format!("table of {}", type_text(root, value)),
            None => "table".to_owned(),
        },
        Some("integer") => match (bound("minimum").filter(|minimum| *minimum > 0), bound("maximum")) {
            (Some(minimum), Some(maximum)) => format!("integer, {minimum} to {maximum}"),
            (Some(minimum), None) => format!("integer, at least {minimum}"),
            (None, Some(maximum)) => format!("integer, at most {maximum}"),
            (None, None) => "integer".to_owned(),
        },
        Some("string") => reference(schema).map_or("string".to_owned(), words),
        Some(other) => other.to_owned(),
        None => "any value".to_owned(),
    }
}

/// The description of a value, on one line.
fn description(root: &Value, schema: &Value) -> String {
    let own = schema.get("description").or_else(|| resolve(root, schema).get("description"));
    let text = own.and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The description of a key without its default, the meaning of its values included; and the default.
fn described(root: &Value, schema: &Value) -> (String, String) {
    let text = description(root, schema);
    let (mut before, default) = match text.split_once("Default: ") {
        Some((before, after)) => {
            let (default, rest) = after.split_once(". ").unwrap_or((after.trim_end_matches('.'), ""));
            (format!("{before}{rest}").trim().to_owned(), default.to_owned())
        }
        None => (text, String::new()),
    };
    for choice in alternatives(resolve(root, schema)) {
        if let (Some(value), Some(meaning)) = (choice.get("const"), choice.get("description")) {
            let meaning =
                meaning.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = write!(before, " {}: {}", code(value), meaning.replace('|', "\\|"));
        }
    }
    (before.trim().to_owned(), default)
}

/// The tables in a value: itself, the items of a list, or alternatives.
fn tables<'a>(root: &'a Value, schema: &'a Value, path: &str, is_list: bool, found: &mut Vec<Table<'a>>) {
    let target = resolve(root, schema);
    if target.get("properties").is_some() {
        let description = description(root, schema);
        found.push(Table { path: path.to_owned(), is_list, schema: target, description });
    }
    for choice in alternatives(target) {
        tables(root, choice, path, is_list, found);
    }
    if let Some(items) = target.get("items") {
        tables(root, items, path, true, found);
    }
}

/// Writes a table, and the tables in it. A table with the keys of an earlier one refers to that.
fn write_table<'a>(
    root: &'a Value,
    table: &Table<'a>,
    text: &mut String,
    written: &mut Vec<(&'a Value, String)>,
) {
    let hashes = if table.path.contains('.') { "###" } else { "##" };
    let _ = writeln!(text, "\n{hashes} `{}`\n\n{}", table.title(), table.description);
    if let Some((_, title)) = written.iter().find(|(schema, _)| std::ptr::eq(*schema, table.schema)) {
        let _ = writeln!(text, "\nIt has the keys of `{title}`.");
        return;
    }
    written.push((table.schema, table.title()));
    let required: BTreeSet<&str> = table
        .schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let _ = writeln!(text, "\n| key | type | default | meaning |\n|---|---|---|---|");
    let mut below = Vec::new();
    for (key, property) in properties(table.schema) {
        let (mut meaning, mut default) = described(root, property);
        if required.contains(key.as_str()) {
            default = "required".to_owned();
        }
        let first = below.len();
        tables(root, property, &format!("{}.{key}", table.path), false, &mut below);
        if let Some(inner) = below.get(first) {
            let _ = write!(meaning, " See `{}`.", inner.title());
        }
        let _ =
            writeln!(text, "| `{key}` | {} | {default} | {} |", type_text(root, property), meaning.trim());
    }
    for inner in &below {
        write_table(root, inner, text, written);
    }
}

fn page() -> String {
    let root = schema();
    let (mut text, mut written, mut sections) = (HEAD.to_owned(), Vec::new(), Vec::new());
    for (key, property) in properties(&root) {
        let mut found = Vec::new();
        tables(&root, property, key, false, &mut found);
        for table in &mut found {
            // The document says more about a section than its type.
            let own = described(&root, property).0;
            if !own.is_empty() {
                table.description = own;
            }
        }
        sections.extend(found);
    }
    for table in &sections {
        write_table(&root, table, &mut text, &mut written);
    }
    text
}

#[test]
fn configuration_reference_is_up_to_date() {
    testkit::reference_page::check("docs/reference/configuration.md", &page());
}

#[test]
fn the_reference_names_every_section_and_its_defaults() {
    let page = page();
    for part in [
        "## `[[peer]]`",
        "### `[account.business]`",
        "### `[[redis.account]]`",
        "| `audit-retention` | duration | 400d |",
        "| `name` | string | required |",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert!(rows > 150, "only {rows} rows: {page}");
}
