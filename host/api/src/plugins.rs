//! Stored plugin versions.

use crate::PluginOrigin;
use crate::name_schemas::HookSchema;
use model::Hook;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A stored plugin version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PluginVersion)]
pub struct PluginVersionView {
    /// The plugin.
    pub plugin: String,
    /// The version: the first twelve hexadecimal digits of the component's SHA-256.
    pub version: String,
    /// The component's SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Size of the component, in octets.
    pub size: u64,
    /// The hook that the component implements.
    #[schema(value_type = HookSchema, inline)]
    pub hook: Hook,
    /// The version of the contract that the component was built for.
    pub wit: String,
    /// The interfaces that the component imports.
    pub imports: Vec<String>,
    /// The name of the trusted key that signed the component; null if it is not signed.
    #[schema(required)]
    pub signed_by: Option<String>,
    /// Whether it contains the JSON Schema of its policy document.
    #[serde(default)]
    pub policy_schema: bool,
    /// Whether its debug information is stored. If so, call stacks of faults show source lines.
    #[serde(default)]
    pub debug_info: bool,
    /// Whether its bill of materials (SBOM) is stored.
    #[serde(default)]
    pub sbom: bool,
    /// The source from which it was pulled; omitted if it was uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub origin: Option<PluginOrigin>,
}
