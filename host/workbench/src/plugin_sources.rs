//! Plugins in the sources of an appliance: `switchyard plugin pull SOURCE/PLUGIN:TAG`, `sources`, `tags`, `outdated` and `sbom`.

use crate::WorkbenchError;
use crate::hooks_api::HooksApi;
use api::{OutdatedPluginView, PluginOrigin, PluginPullRequest, PluginSourceView, PluginTagsView};
use cli::format::{table, value_text};
use std::path::Path;

/// Parses `SOURCE/PLUGIN:TAG`, `SOURCE/PLUGIN@sha256:DIGEST` or `SOURCE/PLUGIN:TAG@sha256:DIGEST`.
pub(crate) fn parse_pull_request(
    text: &str,
    name: Option<String>,
) -> Result<PluginPullRequest, WorkbenchError> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let (plugin, tag) = match rest.split_once(':') {
        Some((plugin, tag)) => (plugin, Some(tag)),
        None => (rest, None),
    };
    let is_empty = |part: Option<&str>| part.is_some_and(str::is_empty);
    match parse_plugin(plugin) {
        Some((source, plugin))
            if (tag.is_some() || digest.is_some()) && !is_empty(tag) && !is_empty(digest) =>
        {
            let [tag, digest] = [tag, digest].map(|part| part.map(str::to_owned));
            Ok(PluginPullRequest { source, plugin, tag, digest, name })
        }
        _ => Err(WorkbenchError::Usage(format!(
            "{text:?} is neither a location (oci://HOST/REPOSITORY:TAG, oci-layout:FOLDER:TAG) nor a plugin of a source of the appliance \
             (SOURCE/PLUGIN:TAG, SOURCE/PLUGIN@sha256:DIGEST)"
        ))),
    }
}

/// Parses `SOURCE/PLUGIN`.
fn parse_plugin(text: &str) -> Option<(String, String)> {
    let (source, plugin) = text.split_once('/')?;
    let is_whole = !source.is_empty() && !plugin.is_empty() && !plugin.contains('/');
    is_whole.then(|| (source.to_owned(), plugin.to_owned()))
}

/// The tags of `SOURCE/PLUGIN`.
pub(crate) fn list_tags(hooks: &HooksApi, plugin: &str) -> Result<PluginTagsView, WorkbenchError> {
    let (source, plugin) = parse_plugin(plugin).ok_or_else(|| {
        WorkbenchError::Usage(format!(
            "{plugin:?} is not a plugin of a source of the appliance; write SOURCE/PLUGIN"
        ))
    })?;
    hooks.plugin_tags(&source, &plugin)
}

/// Writes a bill of materials to a file that does not exist, or returns it as text.
pub(crate) fn write_sbom(octets: &[u8], out: Option<&Path>) -> Result<String, WorkbenchError> {
    match out {
        Some(path) if path.exists() => Err(WorkbenchError::Exists(path.to_owned())),
        Some(path) => {
            std::fs::write(path, octets).map_err(WorkbenchError::file(path))?;
            Ok(format!("written to {}", path.display()))
        }
        None => Ok(String::from_utf8_lossy(octets).into_owned()),
    }
}

/// The source from which a version was pulled, for people.
pub(crate) fn origin_text(origin: &PluginOrigin) -> String {
    let tag = origin.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
    value_text(&format!("{}/{}{tag}", origin.source, origin.plugin))
}

/// The artifact of a version, for people.
pub(crate) fn artifact_text(origin: &PluginOrigin) -> String {
    value_text(&format!("{}@{}", origin.location, origin.digest))
}

/// The sources, for people.
pub(crate) fn sources_text(sources: &[PluginSourceView]) -> String {
    let row = |source: &PluginSourceView| vec![value_text(&source.name), value_text(&source.url)];
    table(&["SOURCE", "URL"], &sources.iter().map(row).collect::<Vec<_>>())
}

/// The tags, for people.
pub(crate) fn tags_text(listed: &PluginTagsView) -> String {
    let mut text: String = listed.tags.iter().map(|tag| format!("{}\n", value_text(tag))).collect();
    if listed.tags.is_empty() {
        text.push_str("no tags\n");
    }
    if !listed.complete {
        text.push_str("There are more tags.\n");
    }
    text
}

/// The outdated plugins, for people.
pub(crate) fn outdated_text(outdated: &[OutdatedPluginView]) -> String {
    if outdated.is_empty() {
        return "Each pulled tag still points to a stored version.".to_owned();
    }
    let row = |one: &OutdatedPluginView| {
        let now = one.digest.as_ref().or(one.problem.as_ref());
        vec![
            value_text(&format!("{}/{}:{}", one.source, one.plugin, one.tag)),
            value_text(&one.stored.join(", ")),
            now.map_or_else(|| "-".to_owned(), value_text),
        ]
    };
    table(&["TAG", "STORED", "LEADS TO"], &outdated.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_of_a_source_has_a_tag_or_a_digest() {
        let parse = |text: &str| {
            let found = parse_pull_request(text, None).ok()?;
            Some([
                found.source,
                found.plugin,
                found.tag.unwrap_or_default(),
                found.digest.unwrap_or_default(),
            ])
        };
        let parts = |parts: [&str; 4]| Some(parts.map(str::to_owned));
        assert_eq!(parse("carrier/least-cost:1.4"), parts(["carrier", "least-cost", "1.4", ""]));
        assert_eq!(parse("carrier/least-cost@sha256:0d"), parts(["carrier", "least-cost", "", "sha256:0d"]));
        assert_eq!(parse("carrier/x:1@sha256:0d"), parts(["carrier", "x", "1", "sha256:0d"]));
        for wrong in
            ["carrier", "carrier/x", "/x:1", "carrier/:1", "carrier/x:", "x:1.4", "carrier/x@", "a/b/c:1"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn outdated_plugins_show_where_the_tag_leads_or_why_it_does_not() {
        let one = |digest: Option<&str>, problem: Option<&str>| OutdatedPluginView {
            source: "carrier".to_owned(),
            plugin: "router".to_owned(),
            tag: "stable".to_owned(),
            stored: vec!["router@0123456789ab".to_owned()],
            digest: digest.map(str::to_owned),
            problem: problem.map(str::to_owned),
        };
        assert_eq!(
            outdated_text(&[one(Some("sha256:0d"), None), one(None, Some("refused"))]),
            "TAG                    STORED               LEADS TO\n\
             carrier/router:stable  router@0123456789ab  sha256:0d\n\
             carrier/router:stable  router@0123456789ab  refused\n"
        );
        assert!(outdated_text(&[]).starts_with("Each pulled tag"));
    }
}
