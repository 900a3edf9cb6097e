//! Plugins that the appliance pulls from the configured sources.

use crate::config::{PluginSource, SourceError};
use crate::hook_service::HookService;
use crate::plugins::plugin_version;
use crate::problems::{hook_problem, unprocessable};
use crate::source_readers::{ReadFailure, ReadKind, ReadResults};
use admin::{Problem, ProblemKind};
use api::{OutdatedPluginView, PluginOrigin, PluginPullRequest, PluginVersionView};
use hooks::{HookError, NewComponent, VersionInfo};
use oci::{BillOfMaterials, ContentDigest, ContentStore, OciError, PulledArtifact};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

/// Maximum time for resolving the tags of stored plugins in one request, if the source's own limit is not shorter.
/// Unresolved tags are left out.
const RESOLVING_TIME: Duration = Duration::from_secs(120);

/// The HTTP status of [`ProblemKind::Unavailable`].
const UNAVAILABLE: u16 = 503;

/// A tag with which stored versions were pulled.
#[derive(Debug)]
struct PulledTag {
    plugin: String,
    tag: String,
    /// The stored versions, as PLUGIN@VERSION, and the digests of their artifacts.
    stored: Vec<(String, String)>,
}

/// The digests of a source's tags, in the order of the tags.
type ResolvedTags = Result<ReadResults<Result<String, Problem>>, Problem>;

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

/// The problem, in terms of the configuration: some errors of the crate `oci` name command-line options.
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
                    "{url}: the registry requires credentials: set user and password-file of source {name:?} in [plugins] sources"
                ),
            })
        }
        OciError::Refused { status: 429 | 500.., .. } => {
            Problem::new(ProblemKind::Unavailable, format!("source {name:?}: {error}"))
        }
        other => unprocessable(format!("source {name:?}: {other}")),
    }
}

/// The tag or digest of a request, as a suffix of a location.
fn reference(request: &PluginPullRequest) -> Result<String, Problem> {
    match (&request.tag, &request.digest) {
        // In the location of a folder, an invalid tag could become a part of the path.
        (Some(tag), _) if !oci::is_tag(tag) => Err(unprocessable(format!(
            "{tag:?} is not a tag: use up to 128 letters, digits, '.', '_' and '-', and neither '.' nor '-' first"
        ))),
        (Some(tag), _) => Ok(format!(":{tag}")),
        (None, Some(digest)) => Ok(format!("@{digest}")),
        (None, None) => Err(unprocessable("a tag or a digest is needed: `tag` or `digest`")),
    }
}

/// Reads a plugin. A tag is resolved once; all later reads use digests.
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
                "{}:{tag} points to {}, not to {expected}; nothing is stored",
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

/// The tags with which these versions were pulled, by source.
fn pulled_tags(versions: Vec<VersionInfo>) -> BTreeMap<String, Vec<PulledTag>> {
    let mut tags: BTreeMap<(String, String, String), Vec<_>> = BTreeMap::new();
    for VersionInfo { plugin, version, origin, .. } in versions {
        if let Some(PluginOrigin { source, plugin: name, tag: Some(tag), digest, .. }) = origin {
            tags.entry((source, name, tag)).or_default().push((format!("{plugin}@{version}"), digest));
        }
    }
    let mut by_source: BTreeMap<String, Vec<PulledTag>> = BTreeMap::new();
    for ((source, plugin, tag), stored) in tags {
        by_source.entry(source).or_default().push(PulledTag { plugin, tag, stored });
    }
    by_source
}

fn resolve_tag(source: &PluginSource, plugin: &str, tag: &str) -> Result<String, Problem> {
    let resolved = open(source, plugin, Some(&format!(":{tag}")))?.resolve();
    Ok(resolved.map_err(|error| problem(source, plugin, &error.into()))?.digest.to_string())
}

/// The problem of a failed read of a source.
fn read_problem(source: &PluginSource, failure: ReadFailure) -> Problem {
    let name = &source.name;
    match failure {
        ReadFailure::Busy => Problem::new(
            ProblemKind::Conflict,
            format!(
                "source {name:?} is being read: try again when that has ended. If it does not end, the source hangs: is the folder's \
                 device or network there?"
            ),
        ),
        ReadFailure::TimedOut(limit) => Problem::new(
            ProblemKind::Unavailable,
            format!(
                "source {name:?} has not answered within {} s, its timeout in [plugins] sources: check whether {} is reachable",
                limit.as_secs(),
                source.url
            ),
        ),
        ReadFailure::Failed => {
            Problem::new(ProblemKind::Internal, format!("reading source {name:?} failed; see the log"))
        }
    }
}

impl HookService {
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

    /// Reads a source within its time limit.
    fn read_source<T: Send + 'static>(
        &self,
        source: &PluginSource,
        kind: ReadKind,
        read: impl FnOnce(&PluginSource) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let owned = source.clone();
        let read = self.source_readers.read(&source.name, kind, source.time_limit(), move || read(&owned));
        read.map_err(|failure| read_problem(source, failure))?
    }

    /// Starts to resolve the tags of a source. Stops at the first tag for which the source does not answer.
    fn resolve_tags(&self, source: &PluginSource, tags: &[PulledTag]) -> ResolvedTags {
        let tags: Vec<_> = tags.iter().map(|one| (one.plugin.clone(), one.tag.clone())).collect();
        let (owned, limit) = (source.clone(), source.time_limit().min(RESOLVING_TIME));
        let resolve = move |results: &std::sync::mpsc::Sender<_>| {
            let mut is_gone = false;
            for (plugin, tag) in tags {
                let resolved = if is_gone {
                    let what = "not asked: the source was not reachable before";
                    Err(Problem::new(ProblemKind::Unavailable, what))
                } else {
                    resolve_tag(&owned, &plugin, &tag)
                };
                is_gone |= resolved.as_ref().is_err_and(|problem| problem.status == UNAVAILABLE);
                if results.send(resolved).is_err() {
                    return;
                }
            }
        };
        let started = self.source_readers.start(&source.name, ReadKind::Inspect, limit, resolve);
        started.map_err(|failure| read_problem(source, failure))
    }
}

impl admin::PluginSources for HookService {
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
        let plugin = plugin.to_owned();
        let listed = self.read_source(&source, ReadKind::Inspect, move |source| {
            let listed = open(source, &plugin, None)?.tags();
            listed.map_err(|error| problem(source, &plugin, &error.into()))
        })?;
        Ok(api::PluginTagsView { tags: listed.tags, complete: listed.is_complete })
    }

    fn pull_plugin(&self, request: &PluginPullRequest) -> Result<PluginVersionView, Problem> {
        let source = self.plugin_source(&request.source)?;
        let name = request.name.as_ref().unwrap_or(&request.plugin);
        if !hooks::is_plugin_name(name) {
            return Err(hook_problem(&HookError::BadName(name.clone())));
        }
        let requested = request.clone();
        let (pulled, origin) =
            self.read_source(&source, ReadKind::Pull, move |source| pull(source, &requested))?;
        let (digest, artifact) = (origin.digest.clone(), pulled.artifact);
        let component = NewComponent {
            octets: &artifact.component,
            signature: artifact.signature.as_deref(),
            origin: Some(origin),
            sbom: artifact.bill.as_ref().map(BillOfMaterials::octets),
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
        // All sources are queried concurrently, so one that hangs does not delay the others.
        let asked: Vec<_> = pulled_tags(versions)
            .into_iter()
            .map(|(name, tags)| {
                let source = self.plugin_source(&name);
                let resolved = source.and_then(|source| Ok((self.resolve_tags(&source, &tags)?, source)));
                (name, tags, resolved)
            })
            .collect();
        let mut outdated = Vec::new();
        for (name, tags, resolved) in asked {
            for PulledTag { plugin, tag, stored } in tags {
                let resolved = match &resolved {
                    Ok((results, source)) => {
                        results.next().unwrap_or_else(|failure| Err(read_problem(source, failure)))
                    }
                    Err(problem) => Err(problem.clone()),
                };
                let (digest, problem) = match resolved {
                    Ok(digest) if stored.iter().any(|(_, stored)| *stored == digest) => continue,
                    Ok(digest) => (Some(digest), None),
                    Err(problem) => (None, Some(problem.detail.clone())),
                };
                let (source, stored) =
                    (name.clone(), stored.into_iter().map(|(version, _)| version).collect());
                outdated.push(OutdatedPluginView { source, plugin, tag, stored, digest, problem });
            }
        }
        Ok(outdated)
    }

    fn plugin_sbom(&self, name: &str, version: &str) -> Result<Vec<u8>, Problem> {
        self.routing.hooks.sbom(name, version).map_err(|error| hook_problem(&error))
    }

    fn add_plugin_sbom(
        &self,
        name: &str,
        version: &str,
        octets: &[u8],
    ) -> Result<PluginVersionView, Problem> {
        let bill = BillOfMaterials::new(octets.to_vec()).map_err(|error| unprocessable(error.to_string()))?;
        let described = bill.component_sha256();
        let stored = self.routing.hooks.add_sbom(name, version, bill.octets(), described.as_deref());
        let info = stored.map_err(|error| hook_problem(&error))?;
        tracing::info!(
            plugin = info.plugin,
            version = info.version,
            size = octets.len(),
            "bill of materials stored"
        );
        Ok(plugin_version(info))
    }
}
