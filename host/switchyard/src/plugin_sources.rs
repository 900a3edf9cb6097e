//! Plugins that the appliance pulls from the sources of its configuration.

use crate::api_backend::Switchyard;
use crate::config::{PluginSource, SourceError};
use crate::plugins::{hook_problem, plugin_version};
use admin::{Problem, ProblemKind};
use api::{OutdatedPluginView, PluginOrigin, PluginPullRequest, PluginVersionView};
use hooks::{HookError, NewComponent, VersionInfo};
use oci::{ContentDigest, ContentStore, OciError, PulledArtifact};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long the tags of stored plugins are resolved for one request; the rest is left out.
const RESOLVING_TIME: Duration = Duration::from_secs(120);

/// The HTTP status of [`ProblemKind::Unavailable`].
const UNAVAILABLE: u16 = 503;

/// The tag of a plugin of a source: source, plugin, tag.
type SourceTag = (String, String, String);

fn unprocessable(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unprocessable, what)
}

/// The plugin's repository or folder, at a tag or digest.
fn open(
    source: &PluginSource,
    plugin: &str,
    reference: Option<&str>,
) -> Result<Box<dyn ContentStore>, Problem> {
    if !hooks::is_plugin_name(plugin) {
        return Err(unprocessable(format!(
            "{plugin:?} cannot be a plugin's name: use 1 to 64 letters, digits, '-' or '_'"
        )));
    }
    let location = source.location(plugin, reference);
    let opened = location.map_err(SourceError::from).and_then(|location| source.open(location));
    opened.map_err(|error| problem(source, plugin, &error))
}

/// The problem in the words of the configuration: some errors of the crate `oci` name options of commands.
fn problem(source: &PluginSource, plugin: &str, error: &SourceError) -> Problem {
    let name = &source.name;
    let error = match error {
        SourceError::Artifact(error) => error,
        SourceError::Authority(error) => {
            return unprocessable(format!("ca of source {name:?} in [plugins] sources: {error}"));
        }
    };
    match error {
        OciError::Location(why) => unprocessable(format!("source {name:?}: {why}")),
        OciError::NotFound { location, content } => Problem::new(
            ProblemKind::NotFound,
            format!("{location} has no {content}; `switchyard plugin tags {name}/{plugin}` lists the tags"),
        ),
        OciError::File { path, source: error } if error.kind() == ErrorKind::NotFound => Problem::new(
            ProblemKind::NotFound,
            format!(
                "{} does not exist: is the folder of source {name:?} mounted, and does it have the plugin {plugin}?",
                path.display()
            ),
        ),
        OciError::Unreachable { url, why } => Problem::new(
            ProblemKind::Unavailable,
            format!(
                "{url}: {why}. Is the url of source {name:?} in [plugins] sources that of a registry that is running? A registry \
                 without TLS needs plain-http = true, one with its own certificate authority needs ca"
            ),
        ),
        OciError::Unauthorized { url, .. } | OciError::Refused { url, status: 401 | 403, .. } => {
            unprocessable(match source.has_credentials() {
                true => format!(
                    "{url}: the registry refuses the credentials, or the user may not read this: check user and password of source \
                     {name:?} in [plugins] sources"
                ),
                false => format!(
                    "{url}: the registry wants credentials: set user and password-file of source {name:?} in [plugins] sources"
                ),
            })
        }
        OciError::Refused { status: 429 | 500.., .. } => {
            Problem::new(ProblemKind::Unavailable, format!("source {name:?}: {error}"))
        }
        other => unprocessable(format!("source {name:?}: {other}")),
    }
}

/// The tag or digest of a request, as the end of a location.
fn reference(request: &PluginPullRequest) -> Result<String, Problem> {
    match (&request.tag, &request.digest) {
        // In the location of a folder, what is no tag would be a part of the path.
        (Some(tag), _) if !oci::is_tag(tag) => Err(unprocessable(format!(
            "{tag:?} is no tag: use up to 128 letters, digits, '.', '_' and '-', and neither '.' nor '-' first"
        ))),
        (Some(tag), _) => Ok(format!(":{tag}")),
        (None, Some(digest)) => Ok(format!("@{digest}")),
        (None, None) => Err(unprocessable("a tag or a digest is needed: `tag` or `digest`")),
    }
}

/// Reads a plugin. A tag is resolved once; what follows is read by digests.
fn pull(
    source: &PluginSource,
    request: &PluginPullRequest,
) -> Result<(PulledArtifact, PluginOrigin), Problem> {
    let plugin = &request.plugin;
    let expected = request.digest.as_deref().map(str::parse::<ContentDigest>);
    let expected = expected.transpose().map_err(|error| unprocessable(format!("digest: {error}")))?;
    let store = open(source, plugin, Some(&reference(request)?))?;
    let pulled = oci::pull(&*store).map_err(|error| problem(source, plugin, &error.into()))?;
    if let (Some(tag), Some(expected)) = (&request.tag, expected)
        && expected != pulled.digest
    {
        return Err(Problem::new(
            ProblemKind::Conflict,
            format!(
                "{}:{tag} leads to {}, not to {expected}; nothing is stored",
                store.location(),
                pulled.digest
            ),
        ));
    }
    let origin = PluginOrigin {
        source: source.name.clone(),
        plugin: plugin.clone(),
        tag: request.tag.clone(),
        location: store.location(),
        digest: pulled.digest.to_string(),
    };
    Ok((pulled, origin))
}

/// The tags by which these versions were pulled, with the versions and their digests.
fn pulled_tags(versions: Vec<VersionInfo>) -> BTreeMap<SourceTag, Vec<(String, String)>> {
    let mut tags: BTreeMap<SourceTag, Vec<_>> = BTreeMap::new();
    for VersionInfo { plugin, version, origin, .. } in versions {
        if let Some(PluginOrigin { source, plugin: name, tag: Some(tag), digest, .. }) = origin {
            tags.entry((source, name, tag)).or_default().push((format!("{plugin}@{version}"), digest));
        }
    }
    tags
}

impl Switchyard {
    fn plugin_source(&self, name: &str) -> Result<PluginSource, Problem> {
        let sources = self.tuning.plugin_sources();
        if let Some(source) = sources.iter().find(|source| source.name == name) {
            return Ok(source.clone());
        }
        let names: Vec<_> = sources.iter().map(|source| &*source.name).collect();
        let known = if names.is_empty() { "it names none".to_owned() } else { names.join(", ") };
        let what = format!("{name:?} is not in [plugins] sources of the configuration: {known}");
        Err(Problem::new(ProblemKind::NotFound, what))
    }

    fn resolve_tag(&self, source: &str, plugin: &str, tag: &str) -> Result<String, Problem> {
        let source = self.plugin_source(source)?;
        let resolved = open(&source, plugin, Some(&format!(":{tag}")))?.resolve();
        let resolved = resolved.map_err(|error| problem(&source, plugin, &error.into()))?;
        Ok(resolved.digest.to_string())
    }
}

impl admin::PluginSources for Switchyard {
    fn plugin_sources(&self) -> Vec<api::PluginSourceView> {
        let sources = self.tuning.plugin_sources();
        let view = |source: &PluginSource| api::PluginSourceView {
            name: source.name.clone(),
            url: source.url.clone(),
        };
        sources.iter().map(view).collect()
    }

    fn plugin_tags(&self, source: &str, plugin: &str) -> Result<api::PluginTagsView, Problem> {
        let source = self.plugin_source(source)?;
        let listed = open(&source, plugin, None)?.tags();
        let listed = listed.map_err(|error| problem(&source, plugin, &error.into()))?;
        Ok(api::PluginTagsView { tags: listed.tags, complete: listed.is_complete })
    }

    fn pull_plugin(&self, request: &PluginPullRequest) -> Result<PluginVersionView, Problem> {
        let source = self.plugin_source(&request.source)?;
        let name = request.name.as_ref().unwrap_or(&request.plugin);
        if !hooks::is_plugin_name(name) {
            return Err(hook_problem(&HookError::BadName(name.clone())));
        }
        // A pull holds an artifact in memory.
        let Some(_turn) = self.plugin_pull.try_lock() else {
            let what = "another plugin is being pulled: try again when it is stored";
            return Err(Problem::new(ProblemKind::Conflict, what));
        };
        let (pulled, origin) = pull(&source, request)?;
        let (digest, artifact) = (origin.digest.clone(), pulled.artifact);
        let component = NewComponent {
            octets: &artifact.component,
            signature: artifact.signature.as_deref(),
            origin: Some(origin),
            sbom: artifact.bill.as_ref().map(oci::BillOfMaterials::octets),
        };
        let info = self.routing.hooks.store(name, component).map_err(|error| match error {
            HookError::Unsigned => unprocessable(format!(
                "{digest} of source {:?} is not signed, but this appliance requires signatures: its author signs it with \
                 `switchyard plugin sign` and pushes it again",
                source.name
            )),
            other => hook_problem(&other),
        })?;
        tracing::info!(
            plugin = info.plugin,
            version = info.version,
            source = source.name,
            digest,
            "plugin pulled"
        );
        Ok(plugin_version(info))
    }

    fn outdated_plugins(&self) -> Result<Vec<OutdatedPluginView>, Problem> {
        let versions = self.routing.hooks.versions().map_err(|error| hook_problem(&error))?;
        let deadline = Instant::now() + RESOLVING_TIME;
        let mut unreachable: BTreeSet<String> = BTreeSet::new();
        let mut outdated = Vec::new();
        for ((source, plugin, tag), stored) in pulled_tags(versions) {
            let resolved = if unreachable.contains(&source) || Instant::now() >= deadline {
                let what = "not asked: the source was not reachable before, or the time was up";
                Err(Problem::new(ProblemKind::Unavailable, what))
            } else {
                self.resolve_tag(&source, &plugin, &tag)
            };
            let (digest, problem) = match resolved {
                Ok(digest) if stored.iter().any(|(_, stored)| *stored == digest) => continue,
                Ok(digest) => (Some(digest), None),
                Err(problem) => {
                    if problem.status == UNAVAILABLE {
                        unreachable.insert(source.clone());
                    }
                    (None, Some(problem.detail.clone()))
                }
            };
            let stored = stored.into_iter().map(|(version, _)| version).collect();
            outdated.push(OutdatedPluginView { source, plugin, tag, stored, digest, problem });
        }
        Ok(outdated)
    }

    fn plugin_sbom(&self, name: &str, version: &str) -> Result<Vec<u8>, Problem> {
        self.routing.hooks.sbom(name, version).map_err(|error| hook_problem(&error))
    }
}
