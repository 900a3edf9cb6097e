//! The configuration document as Rust types, from which the JSON Schema is generated.
//!
//! The daemon's reader is authoritative. A test in the daemon checks that both know the same keys.

mod daemon;
mod endpoints;
mod front_ends;
#[cfg(test)]
mod reference;
mod values;

pub use daemon::*;
pub use endpoints::*;
pub use front_ends::*;
pub use values::*;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

/// The configuration of Switchyard. It has the same structure as the TOML file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConfigDocument {
    /// The daemon itself.
    pub appliance: ApplianceConfig,
    /// How the configuration is managed. Set in the file only; the API cannot change it.
    pub configuration: Option<ManagementConfig>,
    /// The admin API and console.
    pub http: Option<HttpConfig>,
    /// The log.
    pub log: Option<LogConfig>,
    /// Thresholds of `GET /v1/attention`.
    pub attention: Option<AttentionConfig>,
    /// OpenTelemetry traces of messages.
    pub telemetry: Option<TelemetryConfig>,
    /// Listeners for ESMEs and SGIP nodes.
    pub listener: Option<Vec<ListenerConfig>>,
    /// Accounts that submit messages.
    pub account: Option<Vec<AccountConfig>>,
    /// SMSCs that the appliance connects to by SMPP.
    pub peer: Option<Vec<PeerConfig>>,
    /// SGIP gateways (SMGs) that the appliance connects to.
    pub gateway: Option<Vec<GatewayConfig>>,
    /// GSM core networks for which the appliance is the SMSC.
    pub gsm: Option<Vec<GsmConfig>>,
    /// The number plans.
    pub numbering: Option<NumberingConfig>,
    /// The listener for business systems (HTTP and XML-RPC).
    pub business: Option<BusinessConfig>,
    /// The local socket of the `switchyard sms` command.
    pub shell: Option<ShellConfig>,
    /// The listener for Redis clients that use number pools.
    pub redis: Option<RedisConfig>,
    /// Settings shared by all number pools.
    pub pools: Option<PoolsConfig>,
    /// Number pools. Each is created, or reset to these settings, at every start and change.
    pub pool: Option<Vec<PoolConfig>>,
    /// Opt-out keywords.
    pub opt_out: Option<Vec<OptOutConfig>>,
    /// The archive of finished messages.
    pub archive: Option<ArchiveConfig>,
    /// The initial binding of the router. Later bindings are set over `/v1/hooks`.
    pub router: Option<RouterConfig>,
    /// The initial binding of the resolver, which finds the subscriber for a number.
    pub resolver: Option<HookConfig>,
    /// The initial binding of the delivery policy, which decides what follows a failed attempt.
    pub delivery_policy: Option<HookConfig>,
    /// The initial binding of the biller, which prices messages.
    pub biller: Option<HookConfig>,
    /// The home network.
    pub home: Option<HomeConfig>,
    /// Settings shared by all plugins.
    pub plugins: Option<PluginsConfig>,
    /// The engine.
    pub engine: Option<EngineConfig>,
}

/// The JSON Schema (draft 2020-12) of the document.
#[must_use]
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ConfigDocument>().to_value();
    remove_null_alternatives(&mut schema);
    schema
}

/// Removes the `null` alternative of optional keys: a key can be omitted, but not `null`.
fn remove_null_alternatives(schema: &mut Value) {
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
            map.values_mut().for_each(remove_null_alternatives);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_null_alternatives),
        _ => {}
    }
}

/// All keys of a schema, in the form of [`crate::Diagnostics::known_keys`]: `peer[].address`.
#[must_use]
pub fn schema_keys(schema: &Value) -> std::collections::BTreeSet<String> {
    let mut keys = std::collections::BTreeSet::new();
    collect_keys(schema, schema, String::new(), &mut keys);
    keys
}

fn collect_keys(root: &Value, schema: &Value, path: String, keys: &mut std::collections::BTreeSet<String>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
        && let Some(target) = root.pointer(reference.trim_start_matches('#'))
    {
        collect_keys(root, target, path, keys);
        return;
    }
    for choice in ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(*word)?.as_array()).flatten() {
        collect_keys(root, choice, path.clone(), keys);
    }
    if let Some(items) = schema.get("items")
        && !path.is_empty()
    {
        collect_keys(root, items, format!("{path}[]"), keys);
    }
    for (key, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        keys.insert(path.clone());
        collect_keys(root, below, path, keys);
    }
    if schema.get("additionalProperties").is_some_and(Value::is_object) {
        keys.insert(format!("{path}.*"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_marks_secrets_and_has_no_null() {
        let schema = schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$defs"]["SecretConfig"]["writeOnly"], true);
        assert_eq!(schema["$defs"]["PeerConfig"]["additionalProperties"], false);
        assert_eq!(schema["$defs"]["PeerConfig"]["required"], serde_json::json!(["name", "address"]));
        assert!(!schema.to_string().contains("null"), "{schema:#}");
        let keys = schema_keys(&schema);
        for key in
            ["peer[].tls.ca", "account[].business.push.url", "peer[].error-classes.*", "shell.users[].uid"]
        {
            assert!(keys.contains(key), "{key}: {keys:?}");
        }
    }

    #[test]
    fn every_key_has_a_description() {
        fn check(value: &Value, path: &str) {
            for (key, property) in value.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let explained = property.get("description").is_some() || property.get("$ref").is_some();
                assert!(explained, "{path}.{key}: {property}");
            }
        }
        let schema = schema();
        check(&schema, "");
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            check(definition, name);
        }
    }
}
