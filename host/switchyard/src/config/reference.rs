//! Generates `docs/reference/configuration.md` and `docs/reference/configuration-changes.md` from the declarations.

use super::keys;
use configuration::{Effect, Key, Shape};
use serde_json::Value;
use std::fmt::Write as _;

const COMMAND: &str = "(`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.";

/// The readable name of a type.
fn type_text(shape: &Shape) -> String {
    let code = |words: &[(&str, &str)]| {
        words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    match shape {
        Shape::Value("integer", schema) => {
            let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
            match (bound("minimum").filter(|minimum| *minimum > 0), bound("maximum")) {
                (Some(minimum), Some(maximum)) => format!("integer, {minimum} to {maximum}"),
                (Some(minimum), None) => format!("integer, at least {minimum}"),
                (None, Some(maximum)) => format!("integer, at most {maximum}"),
                (None, None) => "integer".to_owned(),
            }
        }
        Shape::Value(name, _) => (*name).to_owned(),
        Shape::Words(words) => code(words),
        Shape::Table(_) => "table".to_owned(),
        Shape::Tables(_) => "list of table".to_owned(),
        Shape::List(items) => format!("list of {}", type_text(items)),
        Shape::Map(values) => format!("table of {}", type_text(values)),
        Shape::Either(one, other) => format!("{} or {}", type_text(one), type_text(other)),
    }
}

/// The meanings of the permitted words of a key.
fn word_meanings(shape: &Shape) -> String {
    match shape {
        Shape::Words(words) if words.iter().any(|(_, meaning)| !meaning.is_empty()) => {
            words.iter().map(|(word, meaning)| format!(" `{word}`: {meaning}")).collect()
        }
        _ => String::new(),
    }
}

/// A table of the document: its path, its description and its keys.
struct Table<'a> {
    path: String,
    is_list: bool,
    doc: &'a str,
    keys: &'a [Key],
    /// The effect of changes to keys that declare none.
    effect: Effect,
}

impl<'a> Table<'a> {
    fn of(path: String, key: &'a Key, around: Effect) -> Option<Self> {
        let is_list = matches!(key.shape, Shape::Tables(_));
        Some(Self {
            path,
            is_list,
            doc: key.doc,
            keys: key.shape.keys()?,
            effect: key.effect.unwrap_or(around),
        })
    }

    fn title(&self) -> String {
        if self.is_list { format!("[[{}]]", self.path) } else { format!("[{}]", self.path) }
    }

    fn sorted_keys(&self) -> Vec<&'a Key> {
        let mut keys: Vec<&Key> = self.keys.iter().collect();
        keys.sort_by_key(|key| key.name);
        keys
    }

    fn has_same_keys(&self, other: &Self) -> bool {
        let docs = |table: &Self| table.keys.iter().map(|key| (key.name, key.doc)).collect::<Vec<_>>();
        docs(self) == docs(other)
    }
}

/// All sections of the document, sorted.
fn sections() -> Vec<Table<'static>> {
    let mut sections: Vec<_> =
        keys().iter().filter_map(|key| Table::of(key.name.to_owned(), key, Effect::Restart(""))).collect();
    sections.sort_by(|one, other| one.path.cmp(&other.path));
    sections
}

/// Writes a table and its subtables. A table with the same keys as an earlier one refers to that one.
fn write_table(table: Table<'static>, text: &mut String, written: &mut Vec<Table<'static>>) {
    let hashes = if table.path.contains('.') { "###" } else { "##" };
    let _ = writeln!(text, "\n{hashes} `{}`\n\n{}", table.title(), table.doc);
    if let Some(same) = written.iter().find(|known| known.has_same_keys(&table)) {
        let _ = writeln!(text, "\nIt has the keys of `{}`.", same.title());
        return;
    }
    let _ = writeln!(text, "\n| key | type | default | change | meaning |\n|---|---|---|---|---|");
    let mut below = Vec::new();
    for key in table.sorted_keys() {
        let mut meaning = format!("{}{}", key.doc, word_meanings(&key.shape));
        let inner = Table::of(format!("{}.{}", table.path, key.name), key, table.effect);
        if let Some(inner) = &inner {
            let _ = write!(meaning, " See `{}`.", inner.title());
        }
        below.extend(inner);
        let default =
            if key.required { "required".to_owned() } else { key.default_text().unwrap_or_default() };
        let change = if key.effect.unwrap_or(table.effect).needs_restart() { "restart" } else { "live" };
        let (name, meaning) = (key.name, meaning.replace('|', "\\|"));
        let _ = writeln!(text, "| `{name}` | {} | {default} | {change} | {meaning} |", type_text(&key.shape));
    }
    written.push(table);
    for inner in below {
        write_table(inner, text, written);
    }
}

fn page() -> String {
    let mut text = format!(
        "# Configuration keys\n\n\
         Generated from the declarations of the keys {COMMAND}\n\n\
         A section in double brackets, such as `[[peer]]`, may occur any number of times. [Configuration](../guide/configuration.md) \
         describes how the file and the API work together. The sample `host/switchyard/switchyard.toml` shows the usual keys. The column \
         *change* says whether a changed key takes effect while the daemon runs, or at the next start; \
         [Changes of keys](configuration-changes.md) says how and why.\n"
    );
    let mut written = Vec::new();
    for section in sections() {
        write_table(section, &mut text, &mut written);
    }
    text
}

/// Collects the keys of a section by the effect of their changes, in the order of declaration.
fn effects(table: &Table<'static>, prefix: &str, found: &mut Vec<(Effect, Vec<String>)>) {
    for key in table.sorted_keys() {
        let effect = key.effect.unwrap_or(table.effect);
        let name = format!("{prefix}{}", key.name);
        if let Some(inner) = Table::of(String::new(), key, effect) {
            effects(&inner, &format!("{name}."), found);
            continue;
        }
        match found.iter_mut().find(|(known, _)| *known == effect) {
            Some((_, names)) => names.push(name),
            None => found.push((effect, vec![name])),
        }
    }
}

fn changes_page() -> String {
    let mut text = format!(
        "# Changes of configuration keys\n\n\
         Generated from the declarations of the keys {COMMAND}\n\n\
         A change takes effect while the daemon runs, unless this table says that it needs a restart. A validation and a change \
         name the keys that need one.\n\n\
         | section | keys | effect of a change |\n|---|---|---|\n"
    );
    for section in sections() {
        let title = section.title();
        for key in keys().iter().filter(|key| key.name == section.path) {
            for (what, effect) in [("a new one", key.added), ("a removed one", key.removed)] {
                if let Some(effect) = effect {
                    let _ = writeln!(text, "| `{title}` | {what} | {effect} |");
                }
            }
        }
        let mut found = Vec::new();
        effects(&section, "", &mut found);
        let all = found.len() == 1;
        for (effect, names) in found {
            let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let names = if all { "all keys" } else { &names };
            let effect = match effect {
                Effect::Live(effect) => effect.to_owned(),
                Effect::Restart(reason) => format!("**needs a restart**: {reason}"),
            };
            let _ = writeln!(text, "| `{title}` | {names} | {effect} |");
        }
    }
    text
}

#[test]
fn configuration_reference_is_up_to_date() {
    testkit::reference_page::check("docs/reference/configuration.md", &page());
}

#[test]
fn configuration_changes_is_up_to_date() {
    testkit::reference_page::check("docs/reference/configuration-changes.md", &changes_page());
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

#[test]
fn every_key_is_described_and_says_what_a_change_does() {
    fn check(keys: &[Key], path: &str, around: Option<Effect>) {
        for key in keys {
            let path = format!("{path}.{}", key.name);
            assert!(key.doc.ends_with(['.', '`']) && key.doc.len() > 3, "{path}: {:?}", key.doc);
            let effect = key.effect.or(around);
            if let Some(keys) = key.shape.keys() {
                check(keys, &path, effect);
            } else {
                assert!(effect.is_some(), "{path} has no effect");
            }
        }
    }
    check(keys(), "", None);
}
