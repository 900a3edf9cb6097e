//! Client of the appliance's HTTP API for plugins.

use crate::bill_file::read_bill;
use crate::build::debug_info_path;
use crate::component::Component;
use crate::{WorkbenchError, format, signing};
use api::{
    ActivationRequest, Binding, BindingRecord, BindingRequest, CandidateRecordView, FaultCase,
    HookRollbackRequest, HookStateView, MessageCase, OutdatedPluginView, PluginPullRequest, PluginSourceView,
    PluginTagsView, PluginVersionView, PolicyTryRequest, PolicyTryView, PromotionRequest, ReplayRequest,
    ReplayStart, ReplayStateView, TrialModeView, TrialRequest,
};
use clap::Args;
use client::{ApiClient, ConnectionArgs, Progress, encode_segment};
use model::Hook;
use oci::{BillOfMaterials, MAX_BILL_OCTETS};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::{IsTerminal as _, Read as _};
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
    position: Option<u64>,
    /// The tenant that the router serves: it is called only for messages of the tenant's accounts. Set its peers with --set
    /// 'peers=["smsc"]'. Default: all messages.
    #[arg(long)]
    tenant: Option<String>,
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
    pub(crate) json: bool,
}

impl ApiArgs {
    /// Sends a request to the appliance and returns its formatted answer.
    pub(crate) fn run<T: Serialize>(
        self,
        describe: impl FnOnce(&T) -> String,
        task: impl FnOnce(&HooksApi) -> Result<T, WorkbenchError>,
    ) -> Result<String, WorkbenchError> {
        let answer = task(&HooksApi::connect(self.connection)?)?;
        Ok(format::result(self.json, &answer, describe))
    }

    /// The appliance, and whether to print JSON.
    pub(crate) fn connect(self) -> Result<(HooksApi, bool), WorkbenchError> {
        Ok((HooksApi::connect(self.connection)?, self.json))
    }
}

/// The hooks of one appliance.
pub(crate) struct HooksApi(ApiClient);

impl BindingArgs {
    /// The binding of NAME@VERSION with these settings.
    pub(crate) fn of(plugin: String, settings: &[String], force: bool) -> Self {
        Self {
            plugin,
            policy: None,
            position: None,
            tenant: None,
            settings: settings.to_vec(),
            force,
            why: None,
        }
    }

    /// The request to activate the binding.
    pub(crate) fn request(&self) -> Result<ActivationRequest, WorkbenchError> {
        let (plugin, version) = parse_plugin_reference(&self.plugin)?;
        let settings = binding_request(plugin, Some(version), self.policy.as_deref(), &self.settings)?;
        Ok(ActivationRequest {
            position: settings.position.or(self.position),
            tenant: settings.tenant.or_else(|| self.tenant.clone()),
            force: if self.force { Some(true) } else { settings.force },
            why: self.why.clone().or(settings.why),
            ..settings
        })
    }
}

/// The request for a binding of this plugin, with the policy document of a file. Without a version, it uses the live
/// version.
pub(crate) fn binding_request(
    plugin: String,
    version: Option<String>,
    policy: Option<&Path>,
    settings: &[String],
) -> Result<ActivationRequest, WorkbenchError> {
    let policy = match policy {
        Some(path) => Some(std::fs::read_to_string(path).map_err(WorkbenchError::file(path))?),
        None => None,
    };
    let mut read = Map::new();
    for setting in settings {
        apply_setting(&mut read, setting)?;
    }
    let settings: ActivationRequest = serde_json::from_value(Value::Object(read))
        .map_err(|error| WorkbenchError::Usage(format!("--set: {error}")))?;
    Ok(ActivationRequest {
        plugin: settings.plugin.or(Some(plugin)),
        version: settings.version.or(version),
        policy: settings.policy.or(policy),
        ..settings
    })
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
    pub(crate) fn connect(connection: ConnectionArgs) -> Result<Self, WorkbenchError> {
        Ok(Self(connection.connect()?))
    }

    fn post<T: DeserializeOwned>(
        &self,
        hook: Hook,
        verb: &str,
        request: &impl Serialize,
    ) -> Result<T, WorkbenchError> {
        Ok(self.0.call("POST", &format!("/v1/hooks/{}/{verb}", hook.name()), request)?)
    }

    /// Uploads a component with its signature, its bill of materials (from the given file, or from the component's folder),
    /// and its debug information if it is in the component's folder.
    pub(crate) fn push(
        &self,
        file: &Path,
        name: &str,
        sbom: Option<&Path>,
    ) -> Result<PluginVersionView, WorkbenchError> {
        let octets = std::fs::read(file).map_err(WorkbenchError::file(file))?;
        Component::new(file, &octets)?.hook()?;
        let bill = read_bill(file, &octets, sbom)?;
        let stored = self.upload(name, &octets, signing::read(file)?.as_deref(), bill.as_ref())?;
        let debug_path = debug_info_path(file);
        match std::fs::read(&debug_path) {
            Ok(octets) => {
                let path = format!("/v1/plugins/{}/{}/debug-info", encode_segment(name), stored.version);
                Ok(self.0.upload("PUT", &path, &[("content-type", "application/wasm")], &octets)?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(stored),
            Err(error) => Err(WorkbenchError::file(&debug_path)(error)),
        }
    }

    /// Uploads a checked component, and its bill of materials.
    pub(crate) fn upload(
        &self,
        name: &str,
        component: &[u8],
        signature: Option<&str>,
        bill: Option<&BillOfMaterials>,
    ) -> Result<PluginVersionView, WorkbenchError> {
        let mut headers = vec![("content-type", "application/wasm")];
        headers.extend(signature.map(|signature| ("switchyard-signature", signature)));
        let path = format!("/v1/plugins/{}", encode_segment(name));
        let progress = Progress::for_octets(
            std::io::stderr().is_terminal(),
            "uploaded",
            u64::try_from(component.len()).ok(),
        );
        let answer = self.0.send_all("PUT", &path, &headers, &mut progress.reader(component))?;
        drop(progress);
        let stored: PluginVersionView = self.0.typed(&path, answer)?;
        let Some(bill) = bill else { return Ok(stored) };
        let path = format!("{path}/{}/sbom", stored.version);
        Ok(self.0.upload("PUT", &path, &[("content-type", "application/json")], bill.octets())?)
    }

    /// Lets the appliance pull a plugin from one of its sources.
    pub(crate) fn pull(&self, request: &PluginPullRequest) -> Result<PluginVersionView, WorkbenchError> {
        Ok(self.0.call("POST", "/v1/plugins/pull", request)?)
    }

    /// The sources of the appliance.
    pub(crate) fn plugin_sources(&self) -> Result<Vec<PluginSourceView>, WorkbenchError> {
        Ok(self.0.read("/v1/plugins/sources")?)
    }

    /// The tags of a plugin in a source.
    pub(crate) fn plugin_tags(&self, source: &str, plugin: &str) -> Result<PluginTagsView, WorkbenchError> {
        let (source, plugin) = (encode_segment(source), encode_segment(plugin));
        Ok(self.0.read(&format!("/v1/plugins/sources/{source}/{plugin}/tags"))?)
    }

    /// The tags that resolve to an artifact that the appliance does not store.
    pub(crate) fn outdated_plugins(&self) -> Result<Vec<OutdatedPluginView>, WorkbenchError> {
        Ok(self.0.read("/v1/plugins/outdated")?)
    }

    /// The bill of materials of NAME@VERSION.
    pub(crate) fn sbom(&self, plugin: &str) -> Result<Vec<u8>, WorkbenchError> {
        let (name, version) = parse_plugin_reference(plugin)?;
        let path = format!("/v1/plugins/{}/{}/sbom", encode_segment(&name), encode_segment(&version));
        let mut octets = Vec::new();
        let mut body = self.0.open(&path, &[])?.take(MAX_BILL_OCTETS);
        body.read_to_end(&mut octets).map_err(WorkbenchError::file(Path::new(&path)))?;
        Ok(octets)
    }

    /// The schema of the policy document of NAME@VERSION.
    pub(crate) fn policy_schema(&self, plugin: &str) -> Result<Value, WorkbenchError> {
        let (name, version) = parse_plugin_reference(plugin)?;
        let path =
            format!("/v1/plugins/{}/{}/policy-schema", encode_segment(&name), encode_segment(&version));
        Ok(self.0.read(&path)?)
    }

    /// Cases of messages, with the decisions of a chain.
    pub(crate) fn message_cases(
        &self,
        hook: Hook,
        request: &PolicyTryRequest,
    ) -> Result<Vec<MessageCase>, WorkbenchError> {
        self.post(hook, "cases", request)
    }

    /// Cases of this number of the newest archived messages, with the decisions of the plugin; default: the first live
    /// plugin. NAME alone is the live version.
    pub(crate) fn newest_cases(
        &self,
        hook: Hook,
        plugin: Option<&str>,
        last: u64,
    ) -> Result<Vec<MessageCase>, WorkbenchError> {
        let live = match plugin {
            Some(_) => None,
            None => self.hook(hook)?.live.chain.first().map(|binding| binding.plugin.clone()),
        };
        let Some(plugin) = plugin.map(str::to_owned).or(live) else {
            return Err(WorkbenchError::Usage(format!(
                "the hook {} has no live plugin; name one",
                hook.name()
            )));
        };
        let (name, version) = match plugin.split_once('@') {
            Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
            None => (plugin, None),
        };
        let activation = binding_request(name, version, None, &[])?;
        self.message_cases(
            hook,
            &PolicyTryRequest { last: Some(last), activation, ..PolicyTryRequest::default() },
        )
    }

    /// Cases of the archived message with this id, with the decisions of the live chain.
    pub(crate) fn cases_of_message(&self, hook: Hook, id: &str) -> Result<Vec<MessageCase>, WorkbenchError> {
        // Omitted settings of a binding are taken from the plugin's live binding.
        let binding = |live: Binding| BindingRequest {
            plugin: live.plugin,
            tenant: live.tenant,
            ..BindingRequest::default()
        };
        let chain = self.hook(hook)?.live.chain.into_iter().map(binding).collect();
        let activation = ActivationRequest { chain: Some(chain), ..ActivationRequest::default() };
        let message = Some(id.to_owned());
        self.message_cases(hook, &PolicyTryRequest { message, activation, ..PolicyTryRequest::default() })
    }

    /// Tries a policy document.
    pub(crate) fn try_policy(
        &self,
        hook: Hook,
        request: &PolicyTryRequest,
    ) -> Result<PolicyTryView, WorkbenchError> {
        self.post(hook, "try", request)
    }

    pub(crate) fn activate(
        &self,
        hook: Hook,
        request: &ActivationRequest,
    ) -> Result<BindingRecord, WorkbenchError> {
        self.post(hook, "activate", request)
    }

    /// Starts the trial of a candidate: with a share in percent as a canary, without one in shadow.
    pub(crate) fn start_trial(
        &self,
        hook: Hook,
        activation: ActivationRequest,
        share: Option<f64>,
    ) -> Result<CandidateRecordView, WorkbenchError> {
        let mode = if share.is_some() { TrialModeView::Canary } else { TrialModeView::Shadow };
        self.post(hook, "candidate", &TrialRequest { mode, share, activation })
    }

    /// Ends the trial.
    pub(crate) fn end_trial(&self, hook: Hook) -> Result<(), WorkbenchError> {
        self.0.delete(&format!("/v1/hooks/{}/candidate", hook.name()))?;
        Ok(())
    }

    pub(crate) fn promote(&self, hook: Hook, why: Option<String>) -> Result<BindingRecord, WorkbenchError> {
        self.post(hook, "promote", &PromotionRequest { expected: None, why })
    }

    pub(crate) fn rollback(&self, hook: Hook, why: Option<String>) -> Result<BindingRecord, WorkbenchError> {
        self.post(hook, "rollback", &HookRollbackRequest { why })
    }

    pub(crate) fn versions(&self) -> Result<Vec<PluginVersionView>, WorkbenchError> {
        Ok(self.0.read("/v1/plugins")?)
    }

    pub(crate) fn hook(&self, hook: Hook) -> Result<HookStateView, WorkbenchError> {
        Ok(self.0.read(&format!("/v1/hooks/{}", hook.name()))?)
    }

    /// The number of the last fault of a hook.
    pub(crate) fn last_fault(&self, hook: Hook) -> Result<u64, WorkbenchError> {
        let state = self.hook(hook)?;
        let ids = state.faults.iter().flat_map(|version| &version.examples).map(|example| example.id);
        ids.max().ok_or_else(|| {
            WorkbenchError::Usage(format!("the hook {} had no fault since the start", hook.name()))
        })
    }

    pub(crate) fn fault_case(&self, hook: Hook, id: u64) -> Result<FaultCase, WorkbenchError> {
        Ok(self.0.read(&format!("/v1/hooks/{}/faults/{id}/case", hook.name()))?)
    }

    pub(crate) fn hooks(&self) -> Result<Vec<HookStateView>, WorkbenchError> {
        Ok(self.0.read("/v1/hooks")?)
    }

    pub(crate) fn start_replay(&self, request: &ReplayRequest) -> Result<ReplayStart, WorkbenchError> {
        Ok(self.0.call("POST", "/v1/replays", request)?)
    }

    pub(crate) fn replay(&self, id: &str) -> Result<ReplayStateView, WorkbenchError> {
        Ok(self.0.read(&format!("/v1/replays/{id}"))?)
    }

    /// A replay, with the differences in requests.
    pub(crate) fn replay_with_texts(&self, id: &str) -> Result<ReplayStateView, WorkbenchError> {
        Ok(self.0.read(&format!("/v1/replays/{id}?body=1"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
