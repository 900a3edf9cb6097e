//! Declarations of keys: the meaning of a key, its valid values, and the effect of a change.

use crate::{ChangeKind, ConfigChange, Diagnostics, Section};
use serde_json::{Map, Value, json};
use std::path::Path;

/// A table of the document. Derived with `#[derive(Keys)]`: a field is a key, its doc comment is the description, and
/// attributes of the form `#[key(…)]` give the other properties.
///
/// | attribute | meaning |
/// |---|---|
/// | `default = LITERAL` | the value of a missing key, as in the file |
/// | `default_with = EXPRESSION` | the value of a missing key, computed from the fields above |
/// | `default_as = "…"` | the default in words |
/// | `example = LITERAL`, `hint = "…"` | the key is mandatory; the example is part of the error |
/// | `range = 1..=10`, `at_most = FIELD` | the limits of an integer |
/// | `length = 1..=15` | the length of an ASCII text |
/// | `size` | a size such as `64MiB` |
/// | `existing` | a file that must exist |
/// | `words = TABLE` | keywords of an enum of another crate: word, value, meaning |
/// | `format = FORMAT` | another [`KeyFormat`](crate::KeyFormat) |
/// | `secret` | the value is never shown |
/// | `or_file` | the value, or a file with it in the key `…-file` |
/// | `check = FUNCTION` | a check of a value that is present: `fn(&T) -> Result<(), String>` |
/// | `live = "…"`, `restart = "…"` | the effect of a change, or why it needs a restart |
/// | `added = "…"`, `removed = "…"` | the effect of an item that is new or removed |
/// | `was = "…"` | the key in stored versions of an older daemon |
/// | `named` | items of the list have unique names |
/// | `reference = "…"` | the value, or each value of a list, is the name of something in the appliance, such as a `peer` |
/// | `label = "…"` | the console's form has a field with this label |
/// | `name = "…"` | the key, if it is not the field's name |
/// | `flatten` | the keys of another table belong to this one |
/// | `skip`, `skip = EXPRESSION` | the field is not a key |
///
/// An `Option` is a key without a default. A field without a default, an example or an `Option` is empty, `false` or a
/// table of defaults if its key is missing. `#[keys(live = "…")]` and `#[keys(restart = "…")]` set the effect of keys
/// that declare none, `#[keys(check = FUNCTION)]` a check of the whole table: `fn(&mut Self, &Section)`.
pub trait Keys: Clone {
    /// Reads the keys; unknown keys are not reported. An invalid value is reported and replaced with the default.
    fn read_keys(section: &Section<'_>) -> Self;

    /// The declarations of the keys.
    fn keys() -> Vec<Key>;

    /// Takes the values of another table that take effect while the daemon runs. Keys without a declared effect do if `live`
    /// is true.
    fn take_live(&mut self, new: &Self, live: bool);

    /// Reads the keys, and reports unknown ones.
    fn read_table(section: &Section<'_>) -> Self {
        let table = Self::read_keys(section);
        section.finish();
        table
    }

    /// The table with the defaults of all keys; mandatory keys are empty.
    #[must_use]
    fn defaults() -> Self {
        let (diagnostics, nothing) = (Diagnostics::new(None, Path::new("")), json!({}));
        Self::read_keys(&Section::root(&diagnostics, &nothing))
    }
}

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The change takes effect while the daemon runs, in this way.
    Live(&'static str),
    /// The change takes effect at the next start, for this reason.
    Restart(&'static str),
}

impl Effect {
    /// The effect in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Live(description) => description,
            Self::Restart(_) => "takes effect at the next start",
        }
    }

    /// Whether the change takes effect at the next start only.
    #[must_use]
    pub fn needs_restart(self) -> bool {
        matches!(self, Self::Restart(_))
    }
}

/// The declaration of a key.
#[derive(Debug, Default)]
pub struct Key {
    /// The key as written in the file.
    pub name: &'static str,
    /// The meaning, one paragraph.
    pub doc: &'static str,
    /// The values.
    pub shape: Shape,
    /// The default as JSON, if it does not depend on other keys.
    pub default: Option<&'static str>,
    /// The default in words.
    pub default_as: Option<&'static str>,
    /// Whether the key is mandatory.
    pub required: bool,
    /// Whether the value is never shown.
    pub secret: bool,
    /// Whether the items of the list have unique names, are patched and compared by name, and have no order.
    pub named: bool,
    /// The label of the console's field; `None`: the form has none.
    pub label: Option<&'static str>,
    /// The effect of a change; `None`: the effect of the enclosing table.
    pub effect: Option<Effect>,
    /// The effect of an item that is new.
    pub added: Option<&'static str>,
    /// The effect of an item that is removed.
    pub removed: Option<&'static str>,
    /// The name in stored versions of an older daemon.
    pub was: Option<&'static str>,
    /// The kind of object that the value, or each value of the list, names: `account`, `pace-bucket`, `peer`, `pool`,
    /// `send-window` or `table`.
    pub reference: Option<&'static str>,
}

/// The values of a key.
#[derive(Debug)]
pub enum Shape {
    /// Values with a name for people, and their JSON Schema.
    Value(&'static str, Value),
    /// Keywords with their meanings.
    Words(Vec<(&'static str, &'static str)>),
    /// A table.
    Table(Vec<Key>),
    /// A list of tables.
    Tables(Vec<Key>),
    /// A list.
    List(Box<Shape>),
    /// A table with arbitrary keys.
    Map(Box<Shape>),
    /// Either of two.
    Either(Box<Shape>, Box<Shape>),
}

impl Default for Shape {
    fn default() -> Self {
        Self::Table(Vec::new())
    }
}

impl Shape {
    /// A secret text.
    #[must_use]
    pub fn secret() -> Self {
        Self::Value("secret", json!({ "type": "string", "format": "password", "writeOnly": true }))
    }

    /// The keys of the table, or of the tables in the list.
    #[must_use]
    pub fn keys(&self) -> Option<&[Key]> {
        match self {
            Self::Table(keys) | Self::Tables(keys) => Some(keys),
            Self::Either(one, other) => one.keys().or_else(|| other.keys()),
            Self::Value(..) | Self::Words(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// The JSON Schema.
    #[must_use]
    pub fn schema(&self) -> Value {
        match self {
            Self::Value(_, schema) => schema.clone(),
            Self::Words(words) => {
                let words = words.iter().map(|(word, doc)| json!({ "const": word, "description": doc }));
                json!({ "type": "string", "oneOf": words.collect::<Vec<_>>() })
            }
            Self::Table(keys) => table_schema(keys),
            Self::Tables(keys) => json!({ "type": "array", "items": table_schema(keys) }),
            Self::List(items) => json!({ "type": "array", "items": items.schema() }),
            Self::Map(values) => json!({ "type": "object", "additionalProperties": values.schema() }),
            Self::Either(one, other) => json!({ "anyOf": [one.schema(), other.schema()] }),
        }
    }
}

impl Key {
    /// A key without default that can be omitted.
    #[must_use]
    pub fn new(name: &'static str, doc: &'static str, shape: Shape) -> Self {
        Self { name, doc, shape, ..Self::default() }
    }

    /// The key of a file that contains the value of another key.
    #[must_use]
    pub fn file(name: &'static str, doc: &'static str) -> Self {
        Self::new(name, doc, Shape::Value("file path", json!({ "type": "string" })))
    }

    /// Sets the effect of keys that declare none.
    #[must_use]
    pub fn inherit(mut keys: Vec<Self>, effect: Option<Effect>) -> Vec<Self> {
        for key in &mut keys {
            key.effect = key.effect.or(effect);
        }
        keys
    }

    /// The default for people, if there is one.
    #[must_use]
    pub fn default_text(&self) -> Option<String> {
        if let Some(words) = self.default_as {
            return Some(words.to_owned());
        }
        let value: Value = serde_json::from_str(self.default?).ok()?;
        Some(match (&self.shape, value) {
            (Shape::Words(_), Value::String(word)) => format!("`{word}`"),
            (_, Value::String(text)) => text,
            (_, Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            (_, other) => other.to_string(),
        })
    }
}

/// The declaration of the key at a path. The path names list items by name, by number or as `*`.
#[must_use]
pub fn find<'a, T: AsRef<str>>(keys: &'a [Key], path: &[T]) -> Option<&'a Key> {
    let (name, mut rest) = path.split_first()?;
    let key = keys.iter().find(|key| key.name == name.as_ref())?;
    if rest.is_empty() {
        return Some(key);
    }
    if matches!(key.shape, Shape::Tables(_)) {
        rest = &rest[1..];
    }
    find(key.shape.keys()?, rest)
}

/// The effect of a change. A key without a declared effect has the effect of the enclosing table.
#[must_use]
pub fn effect_of(keys: &[Key], change: &ConfigChange) -> Effect {
    let mut effect = Effect::Restart("an unknown key");
    for length in 1..=change.path.len() {
        if let Some(key) = find(keys, &change.path[..length]) {
            effect = key.effect.unwrap_or(effect);
            if length + 1 == change.path.len() && key.named {
                let of_item = match change.kind() {
                    ChangeKind::Added => key.added,
                    ChangeKind::Removed => key.removed,
                    ChangeKind::Changed => None,
                };
                return of_item.map_or(effect, Effect::Live);
            }
        }
    }
    effect
}

/// The JSON Schema (draft 2020-12) of the document. `title` and `propertyOrder` are for forms, `x-switchyard` for
/// completions.
#[must_use]
pub fn schema(keys: &[Key]) -> Value {
    let mut schema = table_schema(keys);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["description"] =
        "The configuration of Switchyard. It has the same structure as the TOML file.".into();
    schema
}

fn table_schema(keys: &[Key]) -> Value {
    let properties = keys.iter().enumerate().map(|(position, key)| {
        let mut schema = key.shape.schema();
        let mut doc = key.doc.to_owned();
        if let Some(default) = key.default_as {
            doc = format!("{doc} Default: {default}.");
        }
        schema["description"] = doc.into();
        if let Some(default) = key.default.and_then(|default| serde_json::from_str::<Value>(default).ok()) {
            schema["default"] = default;
        }
        if let Some(label) = key.label {
            schema["title"] = label.into();
            schema["propertyOrder"] = position.into();
        }
        if key.secret {
            schema["writeOnly"] = true.into();
        }
        if let Some(kind) = key.reference {
            // As in the schemas of policy documents.
            schema["x-switchyard"] = kind.into();
        }
        (key.name.to_owned(), schema)
    });
    let properties: Map<String, Value> = properties.collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Keys;

    #[derive(Clone, Keys)]
    #[allow(dead_code)]
    #[keys(live = "reconnects")]
    struct Peer {
        /// The name.
        #[key(example = "up")]
        name: String,
        /// The password.
        #[key(or_file, secret)]
        password: String,
        /// The rate.
        #[key(live = "at once", label = "Rate", default_as = "no limit")]
        rate: Option<f64>,
        /// The window.
        #[key(range = 1..=100, default = 10, at_most = 50, was = "size")]
        window: usize,
        /// The account of its messages.
        #[key(reference = "account")]
        default_account: Option<String>,
    }

    #[derive(Clone, Keys)]
    #[allow(dead_code)]
    struct Account {
        /// The hash.
        #[key(secret)]
        password_hash: String,
    }

    #[derive(Clone, Keys)]
    #[allow(dead_code)]
    struct Redis {
        /// Accounts.
        #[key(named)]
        account: Vec<Account>,
    }

    #[derive(Clone, Keys)]
    #[allow(dead_code)]
    struct Document {
        /// Peers.
        #[key(named, live = "changes", added = "is connected to")]
        peer: Vec<Peer>,
        /// Accounts.
        #[key(named)]
        account: Vec<Account>,
        /// Redis.
        #[key(restart = "its listener")]
        redis: Option<Redis>,
        /// The interval.
        #[key(default = "30s", live = "at once")]
        interval: std::time::Duration,
    }

    /// The keys of a small document.
    pub(crate) fn keys() -> Vec<Key> {
        Document::keys()
    }

    #[test]
    fn a_declaration_is_read_with_its_default_and_its_limits() {
        let read = |document: Value| {
            let diagnostics = Diagnostics::new(None, Path::new("/base"));
            let read = Document::read_table(&Section::root(&diagnostics, &document));
            let problems: Vec<String> = diagnostics.problems().iter().map(ToString::to_string).collect();
            (read, problems)
        };
        let (document, problems) = read(json!({ "peer": [{ "name": "a", "password": "x" }] }));
        assert_eq!(problems, [""; 0]);
        assert_eq!((document.interval.as_secs(), document.peer[0].window), (30, 10));
        assert!(document.redis.is_none() && document.peer[0].password == "x");
        let peer =
            json!({ "name": "", "window": 60, "password": "x", "password-file": "f", "rate": 0, "widow": 1 });
        let (document, problems) = read(json!({ "peer": [peer], "interval": 5 }));
        assert_eq!(document.peer[0].window, 10);
        assert_eq!(
            problems,
            [
                "peer[0].name: is empty; write for example name = \"up\"",
                "peer[0].password-file: is set together with password; keep one of them",
                "peer[0].rate: must be above 0 messages per second; omit it for no limit",
                "peer[0].window: is 60, and must be 1 to 50",
                "peer[0].widow: is unknown; did you mean \"window\"?",
                "interval: is integer, and must be a string in quotes",
            ]
        );
    }

    #[test]
    fn values_of_keys_that_need_a_restart_stay() {
        let read = |rate: f64, hash: &str| {
            let peer = json!({ "name": "a", "rate": rate });
            let account = json!({ "account": [{ "password-hash": hash }] });
            let document = json!({ "peer": [peer], "redis": account, "interval": format!("{rate}s") });
            let diagnostics = Diagnostics::new(None, Path::new(""));
            Document::read_table(&Section::root(&diagnostics, &document))
        };
        let (mut running, new) = (read(1.0, "x"), read(2.0, "y"));
        running.take_live(&new, false);
        assert_eq!((running.peer[0].rate, running.interval.as_secs()), (Some(2.0), 2));
        assert_eq!(running.redis.unwrap().account[0].password_hash, "x");
    }

    #[test]
    fn the_effect_is_that_of_the_key_or_of_the_table_around_it() {
        let effect = |path: &str, before: bool, after: bool| {
            let path = path.split('.').map(str::to_owned).collect();
            let value = |there: bool| there.then(|| json!(1));
            effect_of(&keys(), &ConfigChange { path, before: value(before), after: value(after) })
        };
        assert_eq!(effect("peer.a.rate", true, true), Effect::Live("at once"));
        assert_eq!(effect("peer.a.password-file", true, true), Effect::Live("reconnects"));
        assert_eq!(effect("peer.a", false, true), Effect::Live("is connected to"));
        assert_eq!(effect("peer.a", true, false), Effect::Live("changes"));
        assert_eq!(effect("redis.account.b.password-hash", true, true), Effect::Restart("its listener"));
        assert!(effect("unknown", true, true).needs_restart());
    }

    #[test]
    fn the_schema_has_limits_defaults_labels_and_marks_secrets() {
        let schema = schema(&keys());
        let peer = &schema["properties"]["peer"]["items"];
        assert_eq!(peer["required"], json!(["name"]));
        assert_eq!(peer["additionalProperties"], false);
        let window = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 10, "description": "The window." });
        assert_eq!(peer["properties"]["window"], window);
        assert_eq!(peer["properties"]["password"]["writeOnly"], true);
        assert_eq!(peer["properties"]["rate"]["title"], "Rate");
        assert_eq!(peer["properties"]["default-account"]["x-switchyard"], "account");
        assert_eq!(peer["properties"]["rate"]["description"], "The rate. Default: no limit.");
    }
}
