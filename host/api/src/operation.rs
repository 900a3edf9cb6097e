//! Operation of the daemon: health, drain mode, log level.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The health of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
}

/// Options of drain mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DrainOptions {
    /// Also refuse new binds and logins. Existing sessions stay: their submissions get the protocol's temporary error, and
    /// waiting messages for them are delivered.
    #[serde(default)]
    pub refuse_binds: bool,
}

/// `GET /v1/drain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = DrainState)]
pub struct DrainStateView {
    /// Whether submissions are refused.
    pub draining: bool,
    /// Whether binds are refused too.
    pub refuse_binds: bool,
    /// Start of drain mode, milliseconds since the epoch; null if it is off.
    #[schema(required)]
    pub since: Option<u64>,
    /// The caller that started drain mode; null if it is off.
    #[schema(required)]
    pub by: Option<String>,
    /// Unfinished messages.
    pub remaining: RemainingMessagesView,
}

/// Counts of unfinished messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = RemainingMessages)]
pub struct RemainingMessagesView {
    /// All unfinished messages, including those in flight and those awaiting a DLR.
    pub waiting: u64,
    /// Messages submitted on a link and not yet answered.
    pub in_flight: u64,
}

/// The log level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LogLevel)]
pub struct LogLevelView {
    /// As in the request that set it.
    #[schema(example = "info,links=debug")]
    pub level: String,
}

/// A change of the log level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogLevelRequest {
    /// `off`, `error`, `warn`, `info`, `debug` or `trace`. For single log targets append `target=level`, separated by commas:
    /// `info,links=debug`.
    #[schema(example = "info,links=debug")]
    pub level: String,
}
