//! What needs attention.

use serde::Serialize;
use utoipa::ToSchema;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Messages are delayed or refused, or soon will be.
    Error,
    /// An admin should look at it.
    Warning,
}

/// The kind of thing that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// The appliance as a whole.
    Appliance,
    /// A peer or gateway that the appliance dials.
    Peer,
    /// An account.
    Account,
    /// The queue of a peer or account.
    Queue,
    /// A hook and its plugins.
    Hook,
    /// A GSM core network.
    CoreNetwork,
    /// The archive.
    Archive,
    /// The configuration.
    Configuration,
}

/// What a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Subject {
    /// The kind.
    pub kind: SubjectKind,
    /// The name; null where there is only one of this kind.
    #[schema(required)]
    pub name: Option<String>,
}

/// One finding in `GET /v1/attention`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Attention {
    /// How bad it is.
    pub severity: Severity,
    /// What was found, for programs: `peer-down`, `disk-low` and so on. For core networks it is `gsm-` and the kind of the
    /// fault in `GET /v1/gsm`.
    #[schema(example = "peer-down")]
    pub code: String,
    /// What it is about.
    pub subject: Subject,
    /// Since when, milliseconds since the epoch; null where this is not known.
    #[schema(required)]
    pub since: Option<u64>,
    /// What was found, for people. Times in it are milliseconds since the epoch.
    #[schema(example = "no link to upstream is up: connection refused")]
    pub text: String,
    /// What to do; null where nothing is to be done.
    #[schema(required)]
    pub remedy: Option<String>,
}
