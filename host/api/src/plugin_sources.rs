//! Sources of plugins: registries and folders from which the appliance pulls plugins.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The origin of a pulled plugin version.
// Stored with the version: a field that an earlier release did not write needs a default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct PluginOrigin {
    /// The name of the source in `[plugins] sources`.
    pub source: String,
    /// The plugin's name in the source.
    pub plugin: String,
    /// The tag that was resolved; omitted if the plugin was named by its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tag: Option<String>,
    /// The repository or the folder.
    pub location: String,
    /// The digest of the artifact's manifest: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

/// A source of plugins.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PluginSource)]
pub struct PluginSourceView {
    /// Its name.
    pub name: String,
    /// The registry with the path of its plugins, or the folder.
    pub url: String,
}

/// A request to pull a plugin from a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginPullRequest {
    /// The name of the source in `[plugins] sources`.
    pub source: String,
    /// The plugin: the last part of its repository's name, or the name of its folder.
    pub plugin: String,
    /// The tag. Either it or the digest is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tag: Option<String>,
    /// The digest of the artifact's manifest: `sha256:` and 64 hexadecimal digits. If both are given, the tag must resolve
    /// to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub digest: Option<String>,
    /// The name by which the appliance stores it; default: the name in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
}

/// The tags of a plugin in a source.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PluginTags)]
pub struct PluginTagsView {
    /// The tags, sorted; at most 1000.
    pub tags: Vec<String>,
    /// Whether the list is complete.
    pub complete: bool,
}

/// A tag that resolves to another version than the stored one, or that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = OutdatedPlugin)]
pub struct OutdatedPluginView {
    /// The name of the source.
    pub source: String,
    /// The plugin's name in the source.
    pub plugin: String,
    /// The tag.
    pub tag: String,
    /// The stored versions that were pulled by this tag, as PLUGIN@VERSION.
    pub stored: Vec<String>,
    /// The digest to which the tag resolves now; omitted if it cannot be resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub digest: Option<String>,
    /// The error if the tag cannot be resolved; otherwise omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub problem: Option<String>,
}
