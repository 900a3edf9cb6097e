//! Client of the appliance's HTTP API for plugins.

use crate::component::Component;
use crate::{WorkbenchError, format, signing};
use clap::Args;
use client::{ApiClient, ConnectionArgs, encode_segment};
use model::Hook;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The binding to activate or to try.
#[derive(Debug, Clone, Args)]
pub struct BindingArgs {
    /// NAME@VERSION, or the component's file: NAME.wasm.
    plugin: String,
    /// The policy document; default: the live policy of this plugin, or an empty one.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// The position in the live chain of routers, from 0; replaces an earlier version of the plugin. Default: the
    /// plugin is the only one.
    #[arg(long)]
    position: Option<usize>,
    /// Other settings of the binding, as KEY=VALUE: on-fault=reject, deadline-ms=50, grants.kv=4096,
    /// grants.tables=["subscribers"] …
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Accept a policy that names unknown peers or pools, and a component whose imports are not all granted.
    #[arg(long)]
    force: bool,
    /// The reason, for the audit log.
    #[arg(long)]
    why: Option<String>,
}

/// The appliance, and the output format.
#[derive(Debug, Args)]
pub struct ApiArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
}

impl ApiArgs {
    /// Sends a request to the appliance and returns its formatted answer.
    pub(crate) fn run(
        self,
        describe: impl FnOnce(&Value) -> String,
        task: impl FnOnce(&HooksApi) -> Result<Value, WorkbenchError>,
    ) -> Result<String, WorkbenchError> {
        let answer = task(&HooksApi(self.connection.connect()?))?;
        Ok(format::output(&answer, self.json, describe))
    }
}

/// The hooks of one appliance.
pub(crate) struct HooksApi(ApiClient);

impl BindingArgs {
    /// The binding as JSON for the API.
    pub(crate) fn json(&self) -> Result<Map<String, Value>, WorkbenchError> {
        let (plugin, version) = parse_plugin_reference(&self.plugin)?;
        let mut binding = Map::new();
        binding.insert("plugin".to_owned(), plugin.into());
        binding.insert("version".to_owned(), version.into());
        if let Some(path) = &self.policy {
            let policy = std::fs::read_to_string(path).map_err(WorkbenchError::file(path))?;
            binding.insert("policy".to_owned(), policy.into());
        }
        if let Some(position) = self.position {
            binding.insert("position".to_owned(), position.into());
        }
        for setting in &self.settings {
            apply_setting(&mut binding, setting)?;
        }
        if self.force {
            binding.insert("force".to_owned(), true.into());
        }
        if let Some(why) = &self.why {
            binding.insert("why".to_owned(), why.as_str().into());
        }
        Ok(binding)
    }
}

/// Parses name and version from NAME@VERSION or a component's file name.
fn parse_plugin_reference(plugin: &str) -> Result<(String, String), WorkbenchError> {
    if let Some((name, version)) = plugin.split_once('@') {
        return Ok((name.to_owned(), version.to_owned()));
    }
    let path = Path::new(plugin);
    if path.extension().is_none_or(|ending| ending != "wasm") {
        return Err(WorkbenchError::Usage(format!(
            "{plugin:?} is neither NAME@VERSION nor a component file NAME.wasm"
        )));
    }
    Ok((stem(path)?, Component::read(path)?.version))
}

pub(crate) fn stem(path: &Path) -> Result<String, WorkbenchError> {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.map(str::to_owned)
        .ok_or_else(|| WorkbenchError::Usage(format!("{} has no name; use --name", path.display())))
}

/// Keys of sizes: the configuration file has texts such as `64MiB`, the API has numbers of octets.
const SIZE_KEYS: [&str; 3] = ["memory", "grants.kv", "grants.http-answer"];

/// Sets KEY=VALUE in a binding; dots in the key separate levels. A value is parsed as TOML; if that fails, it is text.
fn apply_setting(binding: &mut Map<String, Value>, setting: &str) -> Result<(), WorkbenchError> {
    let Some((key, value)) = setting.split_once('=') else {
        return Err(WorkbenchError::Usage(format!("--set {setting:?}: expected KEY=VALUE")));
    };
    let read = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let read = match (SIZE_KEYS.contains(&key), read) {
        (true, toml::Value::String(size)) => {
            configuration::parse_size(&size).map(Value::from).ok_or_else(|| {
                WorkbenchError::Usage(format!("--set {setting:?}: expected a size such as 64KiB or 16MiB"))
            })?
        }
        (_, read) => serde_json::to_value(read).map_err(|error| WorkbenchError::Usage(error.to_string()))?,
    };
    let mut target = binding;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            target.insert(part.to_owned(), read);
            return Ok(());
        }
        let child = target.entry(part.to_owned()).or_insert_with(|| Value::Object(Map::new()));
        target = child.as_object_mut().ok_or_else(|| {
            WorkbenchError::Usage(format!("--set {setting:?}: {part:?} has a value already"))
        })?;
    }
    Ok(())
}

impl HooksApi {
    pub(crate) fn push(&self, file: &Path, name: &str) -> Result<Value, WorkbenchError> {
        let octets = std::fs::read(file).map_err(WorkbenchError::file(file))?;
        Component::new(file, &octets)?.hook()?;
        let signature = signing::read(file)?;
        let mut headers = vec![("content-type", "application/wasm")];
        headers.extend(signature.as_deref().map(|signature| ("switchyard-signature", signature)));
        Ok(self.0.send("PUT", &format!("/v1/plugins/{}", encode_segment(name)), &headers, &octets)?)
    }

    pub(crate) fn activate(&self, hook: Hook, binding: Map<String, Value>) -> Result<Value, WorkbenchError> {
        Ok(self.0.post(&format!("/v1/hooks/{}/activate", hook.name()), &Value::Object(binding))?)
    }

    /// Starts the trial of a candidate: with a share in percent as a canary, without one in shadow.
    pub(crate) fn start_trial(
        &self,
        hook: Hook,
        mut binding: Map<String, Value>,
        share: Option<f64>,
    ) -> Result<Value, WorkbenchError> {
        binding.insert("mode".to_owned(), if share.is_some() { "canary" } else { "shadow" }.into());
        if let Some(share) = share {
            binding.insert("share".to_owned(), share.into());
        }
        Ok(self.0.post(&format!("/v1/hooks/{}/candidate", hook.name()), &Value::Object(binding))?)
    }

    /// Ends the trial.
    pub(crate) fn end_trial(&self, hook: Hook) -> Result<Value, WorkbenchError> {
        Ok(self.0.delete(&format!("/v1/hooks/{}/candidate", hook.name()))?)
    }

    /// `promote` or `rollback`.
    pub(crate) fn change(&self, hook: Hook, verb: &str, why: Option<&str>) -> Result<Value, WorkbenchError> {
        let request = why.map_or_else(|| json!({}), |why| json!({ "why": why }));
        Ok(self.0.post(&format!("/v1/hooks/{}/{verb}", hook.name()), &request)?)
    }

    pub(crate) fn versions(&self) -> Result<Value, WorkbenchError> {
        Ok(self.0.get("/v1/plugins")?)
    }

    pub(crate) fn hook(&self, hook: Hook) -> Result<Value, WorkbenchError> {
        Ok(self.0.get(&format!("/v1/hooks/{}", hook.name()))?)
    }

    pub(crate) fn hooks(&self) -> Result<Value, WorkbenchError> {
        Ok(self.0.get("/v1/hooks")?)
    }

    pub(crate) fn start_replay(&self, change: Map<String, Value>) -> Result<String, WorkbenchError> {
        let answer = self.0.post("/v1/replays", &Value::Object(change))?;
        let id = match answer.get("id") {
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Number(id)) => Some(id.to_string()),
            _ => None,
        };
        id.ok_or_else(|| WorkbenchError::Replay {
            title: "unexpected answer",
            detail: format!("the replay has started without an id: {answer}"),
        })
    }

    pub(crate) fn replay(&self, id: &str) -> Result<Value, WorkbenchError> {
        Ok(self.0.get(&format!("/v1/replays/{id}"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_a_setting_separate_levels() {
        let mut binding = Map::new();
        for setting in [
            "on-fault=reject",
            "deadline-ms=50",
            "grants.kv=4096",
            "grants.tables=[\"a\", \"b\"]",
            "grants.counters=[{ name = \"daily\", window = \"day\", zone = \"UTC\" }]",
            "memory=64MiB",
            "note=a = b",
        ] {
            apply_setting(&mut binding, setting).unwrap();
        }
        assert_eq!(
            Value::Object(binding.clone()),
            json!({
                "on-fault": "reject",
                "deadline-ms": 50,
                "grants": {
                    "kv": 4096,
                    "tables": ["a", "b"],
                    "counters": [{ "name": "daily", "window": "day", "zone": "UTC" }],
                },
                "memory": 67_108_864,
                "note": "a = b",
            })
        );
        assert!(apply_setting(&mut binding, "no-value").is_err());
        assert!(apply_setting(&mut binding, "memory=much").is_err());
        assert!(apply_setting(&mut binding, "on-fault.peer=x").is_err());
    }

    #[test]
    fn a_plugin_is_named_by_version_or_file() {
        assert_eq!(
            parse_plugin_reference("first@0123456789ab").unwrap(),
            ("first".to_owned(), "0123456789ab".to_owned())
        );
        assert!(parse_plugin_reference("first").unwrap_err().to_string().contains("NAME@VERSION"));
        assert!(matches!(parse_plugin_reference("/nowhere/first.wasm"), Err(WorkbenchError::File { .. })));
    }
}
