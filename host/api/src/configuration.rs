//! The configuration: its versions, and the results of changes.

use crate::problem::FieldProblem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};

/// The place where the configuration is managed: the API or the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ManagedBy {
    /// By this API.
    Api,
    /// By the configuration file. The API is read-only.
    File,
}

/// A version that reverts unless it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = UnconfirmedVersion)]
pub struct UnconfirmedVersionView {
    /// The version.
    pub version: u64,
    /// Time of the automatic revert, in milliseconds since the epoch. A restart reverts at once.
    pub reverts_at: u64,
}

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CurrentConfiguration {
    /// The version; also the `ETag`.
    pub version: u64,
    /// Time at which it came into force, in milliseconds since the epoch.
    pub at: u64,
    /// The author of the change.
    pub by: String,
    /// Reason for the change.
    pub why: String,
    /// The place where the configuration is managed: the API or the file.
    pub mode: ManagedBy,
    /// The unconfirmed version; null if there is none.
    #[schema(required)]
    pub pending: Option<UnconfirmedVersionView>,
    /// JSON pointers of settings that apply only after a restart.
    pub restart: Vec<String>,
    /// The document, with the structure of the TOML file and `"(unchanged)"` in place of secrets. GET /v1/configuration/schema
    /// returns its schema.
    #[schema(value_type = Object)]
    pub document: Value,
}

/// The kind of a change in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ConfigurationChangeKind)]
pub enum ConfigChangeKindView {
    /// The value was added.
    Added,
    /// The value was changed.
    Changed,
    /// The value was removed.
    Removed,
}

/// The schema of an arbitrary JSON value.
fn any_value_schema() -> Schema {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).build().into()
}

/// One change in the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ConfigurationChange)]
pub struct ConfigChangeView {
    /// JSON pointer. Elements of named lists are addressed by name: `/peer/upstream/rate`.
    pub pointer: String,
    /// The kind of change.
    pub what: ConfigChangeKindView,
    /// The effect on traffic.
    pub effect: String,
    /// The value before; omitted if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = any_value_schema)]
    pub before: Option<Value>,
    /// The value after; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = any_value_schema)]
    pub after: Option<Value>,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigurationChangeResult {
    /// The version in force. It is the previous version if nothing changed.
    pub version: u64,
    /// The changes.
    pub changes: Vec<ConfigChangeView>,
    /// JSON pointers of settings that apply only after a restart.
    pub restart: Vec<String>,
    /// Time of the automatic revert, in milliseconds since the epoch; null if the change needs no confirmation.
    #[schema(required)]
    pub reverts_at: Option<u64>,
}

/// The result of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigurationCheck {
    /// Whether the change could be applied.
    pub valid: bool,
    /// All problems. Their pointers address list elements by index: `/peer/0/rate`.
    pub problems: Vec<FieldProblem>,
    /// The changes that would be made.
    pub changes: Vec<ConfigChangeView>,
    /// JSON pointers of settings that would apply only after a restart.
    pub restart: Vec<String>,
}

/// A version without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationVersionSummary)]
pub struct ConfigVersionSummaryView {
    /// The version number.
    pub version: u64,
    /// Time at which it came into force, in milliseconds since the epoch.
    pub at: u64,
    /// The author of the change.
    pub by: String,
    /// Reason for the change.
    pub why: String,
    /// Number of changes from the previous version.
    pub changes: usize,
}

/// A version with its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationVersion)]
pub struct ConfigVersionView {
    /// The version without its document.
    #[serde(flatten)]
    pub summary: ConfigVersionSummaryView,
    /// The document, with `"(unchanged)"` in place of secrets.
    #[schema(value_type = Object)]
    pub document: Value,
}

/// One difference between two versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationDifference)]
pub struct ConfigDifferenceView {
    /// JSON pointer. Elements of named lists are addressed by name.
    pub pointer: String,
    /// The value in the first version; null if there is none.
    #[schema(required, schema_with = any_value_schema)]
    pub before: Option<Value>,
    /// The value in the second version; null if there is none.
    #[schema(required, schema_with = any_value_schema)]
    pub after: Option<Value>,
}

/// A page of versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionsPage)]
pub struct ConfigVersionPageView {
    /// The versions, newest first.
    pub versions: Vec<ConfigVersionSummaryView>,
    /// The `before` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<u64>,
}

/// The differences between two versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationDiff {
    /// The first version.
    pub from: u64,
    /// The second version.
    pub to: u64,
    /// All differences.
    pub changes: Vec<ConfigDifferenceView>,
}

/// A rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schema(as = RollbackRequest)]
pub struct ConfigRollbackRequest {
    /// The version whose document to restore, as a new version.
    pub to: u64,
    /// Reason for the change, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub why: Option<String>,
    /// As for a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([1-9][0-9]{0,5}s|[1-9][0-9]{0,3}m|[1-9][0-9]?h|([1-9]|[12][0-9]|30)d)$")]
    pub confirm_within: Option<String>,
}

/// A confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ConfirmRequest)]
pub struct ConfigConfirmRequest {
    /// The version to confirm.
    pub version: u64,
}
