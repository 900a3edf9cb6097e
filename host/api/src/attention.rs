//! Views of attention findings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionSeverity {
    /// Messages are or will soon be delayed or refused.
    Error,
    /// An admin should investigate.
    Warning,
}

/// The kind of a finding's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionSubjectKind {
    /// The appliance as a whole.
    Appliance,
    /// A peer or gateway that the appliance dials.
    Peer,
    /// An account.
    Account,
    /// The queue of a peer or account.
    Queue,
    /// A hook with its plugins.
    Hook,
    /// A GSM core network.
    CoreNetwork,
    /// The cluster.
    Cluster,
    /// The archive.
    Archive,
    /// An event sink.
    EventSink,
    /// The configuration.
    Configuration,
}

/// The subject of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttentionSubject {
    /// The kind.
    pub kind: AttentionSubjectKind,
    /// The name; null for kinds with a single subject.
    #[schema(required)]
    pub name: Option<String>,
}

/// A finding in `GET /v1/attention`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Attention)]
pub struct AttentionView {
    /// The severity.
    pub severity: AttentionSeverity,
    /// The finding's code, for programs: `peer-down`, `disk-low` and so on. Codes of core networks are `gsm-` and the kind of
    /// the fault in `GET /v1/gsm`.
    #[schema(example = "peer-down")]
    pub code: String,
    /// The subject.
    pub subject: AttentionSubject,
    /// Start of the condition, milliseconds since the epoch; null if it is unknown.
    #[schema(required)]
    pub since: Option<u64>,
    /// The finding, for people. Times in it are milliseconds since the epoch.
    #[schema(example = "no link to upstream is up: connection refused")]
    pub text: String,
    /// The remedy; null if no action is needed.
    #[schema(required)]
    pub remedy: Option<String>,
}
