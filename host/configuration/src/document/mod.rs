//! The document as types, of which its JSON Schema is made.
//!
//! The reader of the daemon decides what is right; that these types know the same keys is held by a test beside it.

mod doors;
mod house;
mod parties;
mod words;

pub use doors::*;
pub use house::*;
pub use parties::*;
pub use words::*;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

/// The configuration of a Switchyard, of the same shape as its TOML file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// The appliance itself.
    pub appliance: Appliance,
    /// Who says what is in this document. The file's own: it is not changed over the API.
    pub configuration: Option<Managed>,
    /// The admin's API and console.
    pub http: Option<Http>,
    /// What is logged, and in which form.
    pub log: Option<Log>,
    /// Limits beyond which something needs attention.
    pub attention: Option<Attention>,
    /// Traces of messages, for a collector of OpenTelemetry's.
    pub telemetry: Option<Telemetry>,
    /// Where ESMEs and gateways connect to us.
    pub listener: Option<Vec<Listener>>,
    /// Who may submit messages.
    pub account: Option<Vec<Account>>,
    /// SMSCs that we connect to by SMPP.
    pub peer: Option<Vec<Peer>>,
    /// Operators' gateways that we connect to by SGIP.
    pub gateway: Option<Vec<Gateway>>,
    /// GSM core networks whose SMSC we are.
    pub gsm: Option<Vec<Gsm>>,
    /// What subscribers dial, and whose numbers are whose.
    pub numbering: Option<Numbering>,
    /// The door of business systems.
    pub business: Option<Business>,
    /// Subscribers on the command line.
    pub shell: Option<Shell>,
    /// The door of Redis clients that use number pools.
    pub redis: Option<Redis>,
    /// What all number pools share.
    pub pools: Option<Pools>,
    /// Number pools: made, or set back to this, at each start and change.
    pub pool: Option<Vec<Pool>>,
    /// Words by which subscribers stop a sender.
    pub opt_out: Option<Vec<OptOut>>,
    /// Where finished messages go.
    pub archive: Option<Archive>,
    /// The first binding of routers. Later ones come over `/v1/hooks`.
    pub router: Option<Router>,
    /// The first binding of the resolver, who knows who stands behind a number.
    pub resolver: Option<Hook>,
    /// The first binding of the delivery policy: what follows a refused attempt.
    pub delivery_policy: Option<Hook>,
    /// The first binding of the biller: what a message costs.
    pub biller: Option<Hook>,
    /// Who serves our own subscribers.
    pub home: Option<Home>,
    /// What all plugins share.
    pub plugins: Option<Plugins>,
    /// The engine.
    pub engine: Option<Engine>,
}

/// What a document may have in it: JSON Schema, draft 2020-12.
#[must_use]
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Document>().to_value();
    plain(&mut schema);
    schema
}

/// What may be left out may not be `null`: takes that choice out.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    map.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
                if let [Value::Object(only)] = &choices[..] {
                    let only = only.clone();
                    map.remove("anyOf");
                    for (key, value) in only {
                        map.entry(key).or_insert(value);
                    }
                }
            }
            map.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

/// All keys that a schema knows, as [`crate::Reading::keys`] has those that a reader asks for: `peer[].address`.
#[must_use]
pub fn keys(schema: &Value) -> std::collections::BTreeSet<String> {
    let mut keys = std::collections::BTreeSet::new();
    collect(schema, schema, String::new(), &mut keys);
    keys
}

fn collect(root: &Value, schema: &Value, path: String, keys: &mut std::collections::BTreeSet<String>) {
    if let Some(place) = schema.get("$ref").and_then(Value::as_str)
        && let Some(there) = root.pointer(place.trim_start_matches('#'))
    {
        collect(root, there, path, keys);
        return;
    }
    for choice in ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(*word)?.as_array()).flatten() {
        collect(root, choice, path.clone(), keys);
    }
    if let Some(items) = schema.get("items")
        && !path.is_empty()
    {
        collect(root, items, format!("{path}[]"), keys);
    }
    for (key, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        keys.insert(path.clone());
        collect(root, below, path, keys);
    }
    if schema.get("additionalProperties").is_some_and(Value::is_object) {
        keys.insert(format!("{path}.*"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_says_what_is_secret_and_what_is_not_nothing() {
        let schema = schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$defs"]["Secret"]["writeOnly"], true);
        assert_eq!(schema["$defs"]["Peer"]["additionalProperties"], false);
        assert_eq!(schema["$defs"]["Peer"]["required"], serde_json::json!(["name", "address"]));
        assert!(!schema.to_string().contains("null"), "{schema:#}");
        let keys = keys(&schema);
        for key in
            ["peer[].tls.ca", "account[].business.push.url", "peer[].error-classes.*", "shell.users[].uid"]
        {
            assert!(keys.contains(key), "{key}: {keys:?}");
        }
    }

    #[test]
    fn every_key_is_explained() {
        fn look(value: &Value, place: &str) {
            for (key, property) in value.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let explained = property.get("description").is_some() || property.get("$ref").is_some();
                assert!(explained, "{place}.{key}: {property}");
            }
        }
        let schema = schema();
        look(&schema, "");
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            look(definition, name);
        }
    }
}
