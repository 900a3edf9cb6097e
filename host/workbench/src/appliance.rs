//! The appliance's HTTP API, as a plugin's author uses it.

use crate::component::Component;
use crate::{WorkbenchError, signing};
use clap::Args;
use model::Hook;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which appliance.
#[derive(Debug, Clone, Args)]
pub struct At {
    /// The appliance's HTTP listener; SWITCHYARD_URL otherwise, or http://127.0.0.1:8080.
    #[arg(long)]
    url: Option<String>,
    /// The token of its API; SWITCHYARD_TOKEN otherwise.
    #[arg(long, conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the token: `token` in the appliance's data folder; SWITCHYARD_TOKEN_FILE otherwise.
    #[arg(long)]
    token_file: Option<PathBuf>,
}

/// What is to serve a hook.
#[derive(Debug, Clone, Args)]
pub struct Bound {
    /// NAME@VERSION, or the component's file: NAME.wasm.
    plugin: String,
    /// The policy document; otherwise the one that is live for this plugin, or an empty one.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// Its place among the live routers, from 0, instead of an earlier version of it; otherwise it is alone.
    #[arg(long)]
    position: Option<usize>,
    /// Anything else in the binding, as KEY=VALUE: on-fault=reject, deadline-ms=50, grants.kv=4096,
    /// grants.tables=["subscribers"] …
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

/// One appliance, and the right to talk to it.
pub(crate) struct Appliance {
    agent: ureq::Agent,
    url: String,
    authorization: String,
}

impl At {
    pub(crate) fn reach(self) -> Result<Appliance, WorkbenchError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = self.url.or_else(|| set("SWITCHYARD_URL"));
        let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
        let file = self.token_file.or_else(|| set("SWITCHYARD_TOKEN_FILE").map(PathBuf::from));
        let token = match (self.token, file) {
            (Some(token), _) => token,
            (None, Some(file)) => std::fs::read_to_string(&file).map_err(WorkbenchError::file(&file))?,
            (None, None) => set("SWITCHYARD_TOKEN").ok_or_else(|| {
                WorkbenchError::Usage(
                    "the appliance wants a token: give --token-file DATA/token, DATA being its data folder, or set \
                     SWITCHYARD_TOKEN_FILE"
                        .to_owned(),
                )
            })?,
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A component of many megabytes may take a while to compile.
            .timeout_global(Some(Duration::from_secs(300)))
            .build()
            .new_agent();
        let authorization = format!("Bearer {}", token.trim());
        Ok(Appliance { agent, url: url.trim_end_matches('/').to_owned(), authorization })
    }
}

impl Bound {
    /// The binding, in the API's words.
    pub(crate) fn json(&self) -> Result<Map<String, Value>, WorkbenchError> {
        let (plugin, version) = named(&self.plugin)?;
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
            set(&mut binding, setting)?;
        }
        Ok(binding)
    }
}

/// Name and version, from NAME@VERSION or a component's file.
fn named(plugin: &str) -> Result<(String, String), WorkbenchError> {
    if let Some((name, version)) = plugin.split_once('@') {
        return Ok((name.to_owned(), version.to_owned()));
    }
    let path = Path::new(plugin);
    if path.extension().is_none_or(|ending| ending != "wasm") {
        return Err(WorkbenchError::Usage(format!(
            "{plugin:?} is neither NAME@VERSION nor a component's file NAME.wasm"
        )));
    }
    Ok((stem(path)?, Component::read(path)?.version))
}

pub(crate) fn stem(path: &Path) -> Result<String, WorkbenchError> {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.map(str::to_owned)
        .ok_or_else(|| WorkbenchError::Usage(format!("{} has no name; give --name", path.display())))
}

/// Puts KEY=VALUE into a binding; dots in the key go deeper. A value is read as TOML, and is a text where it is none.
fn set(binding: &mut Map<String, Value>, setting: &str) -> Result<(), WorkbenchError> {
    let Some((key, value)) = setting.split_once('=') else {
        return Err(WorkbenchError::Usage(format!("--set {setting:?}: expected KEY=VALUE")));
    };
    let read = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let read = serde_json::to_value(read).map_err(|error| WorkbenchError::Usage(error.to_string()))?;
    let mut place = binding;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            place.insert(part.to_owned(), read);
            return Ok(());
        }
        let deeper = place.entry(part.to_owned()).or_insert_with(|| Value::Object(Map::new()));
        place = deeper.as_object_mut().ok_or_else(|| {
            WorkbenchError::Usage(format!("--set {setting:?}: {part:?} is a value already"))
        })?;
    }
    Ok(())
}

impl Appliance {
    pub(crate) fn push(&self, file: &Path, name: &str) -> Result<Value, WorkbenchError> {
        let octets = std::fs::read(file).map_err(WorkbenchError::file(file))?;
        Component::new(file, &octets)?.hook()?;
        let url = format!("{}/v1/plugins/{name}", self.url);
        let mut request = self.agent.put(&url).header("authorization", &self.authorization);
        if let Some(signature) = signing::read(file)? {
            request = request.header("switchyard-signature", signature);
        }
        read(&url, request.header("content-type", "application/wasm").send(&octets[..]))
    }

    pub(crate) fn activate(&self, hook: Hook, binding: Map<String, Value>) -> Result<Value, WorkbenchError> {
        self.post(&format!("/v1/hooks/{}/activate", hook.name()), &Value::Object(binding))
    }

    /// Puts a candidate beside what is live; with a share in percent as a canary, without one as a shadow.
    pub(crate) fn candidate(
        &self,
        hook: Hook,
        mut binding: Map<String, Value>,
        share: Option<f64>,
    ) -> Result<Value, WorkbenchError> {
        binding.insert("mode".to_owned(), if share.is_some() { "canary" } else { "shadow" }.into());
        if let Some(share) = share {
            binding.insert("share".to_owned(), share.into());
        }
        self.post(&format!("/v1/hooks/{}/candidate", hook.name()), &Value::Object(binding))
    }

    /// Takes the candidate away.
    pub(crate) fn withdraw(&self, hook: Hook) -> Result<Value, WorkbenchError> {
        let url = format!("{}/v1/hooks/{}/candidate", self.url, hook.name());
        read(&url, self.agent.delete(&url).header("authorization", &self.authorization).call())
    }

    /// `promote` or `rollback`.
    pub(crate) fn order(&self, hook: Hook, verb: &str) -> Result<Value, WorkbenchError> {
        self.post(&format!("/v1/hooks/{}/{verb}", hook.name()), &json!({}))
    }

    pub(crate) fn hooks(&self) -> Result<Value, WorkbenchError> {
        self.get("/v1/hooks")
    }

    pub(crate) fn start_replay(&self, order: Map<String, Value>) -> Result<String, WorkbenchError> {
        let answer = self.post("/v1/replays", &Value::Object(order))?;
        let id = match answer.get("id") {
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Number(id)) => Some(id.to_string()),
            _ => None,
        };
        id.ok_or_else(|| WorkbenchError::Refused {
            title: "unexpected answer".to_owned(),
            detail: format!("a replay was started, but it has no id: {answer}"),
        })
    }

    pub(crate) fn replay(&self, id: &str) -> Result<Value, WorkbenchError> {
        self.get(&format!("/v1/replays/{id}"))
    }

    fn get(&self, path: &str) -> Result<Value, WorkbenchError> {
        let url = format!("{}{path}", self.url);
        read(&url, self.agent.get(&url).header("authorization", &self.authorization).call())
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, WorkbenchError> {
        let url = format!("{}{path}", self.url);
        read(&url, self.agent.post(&url).header("authorization", &self.authorization).send_json(body))
    }
}

/// The answer's JSON; what is no success is an error in the appliance's own words (RFC 9457).
fn read(
    url: &str,
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<Value, WorkbenchError> {
    let unreachable = |why: String| WorkbenchError::Unreachable { url: url.to_owned(), why };
    let mut answer = answer.map_err(|error| unreachable(error.to_string()))?;
    let status = answer.status();
    let text = answer.body_mut().read_to_string().map_err(|error| unreachable(error.to_string()))?;
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if status.is_success() {
        return Ok(body);
    }
    let word = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    Err(WorkbenchError::Refused {
        title: word("title").unwrap_or_else(|| format!("HTTP status {status}")),
        detail: word("detail").unwrap_or_else(|| {
            let words: String = text.chars().take(500).collect();
            if words.is_empty() { format!("{url} says no more") } else { words }
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_where_their_dots_say() {
        let mut binding = Map::new();
        for setting in [
            "on-fault=reject",
            "deadline-ms=50",
            "grants.kv=4096",
            "grants.tables=[\"a\", \"b\"]",
            "note=a = b",
        ] {
            set(&mut binding, setting).unwrap();
        }
        assert_eq!(
            Value::Object(binding.clone()),
            json!({
                "on-fault": "reject",
                "deadline-ms": 50,
                "grants": { "kv": 4096, "tables": ["a", "b"] },
                "note": "a = b",
            })
        );
        assert!(set(&mut binding, "no-value").is_err());
        assert!(set(&mut binding, "on-fault.peer=x").is_err());
    }

    #[test]
    fn a_plugin_is_named_by_version_or_file() {
        assert_eq!(named("first@0123456789ab").unwrap(), ("first".to_owned(), "0123456789ab".to_owned()));
        assert!(named("first").unwrap_err().to_string().contains("NAME@VERSION"));
        assert!(matches!(named("/nowhere/first.wasm"), Err(WorkbenchError::File { .. })));
    }
}
