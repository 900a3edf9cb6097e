use crate::name_schemas::IdText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/quarantine`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = QuarantinePage)]
pub struct QuarantinePageView {
    /// Messages in quarantine, oldest first.
    pub messages: Vec<QuarantinedView>,
    /// The `after` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<String>,
}

/// A message in quarantine. `GET /v1/messages/{id}` has its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Quarantined)]
pub struct QuarantinedView {
    /// The message id.
    pub id: String,
    /// The account or peer that submitted the message.
    pub origin: String,
    /// The sender, masked unless the caller may read message texts.
    pub source: String,
    /// The recipient, masked likewise.
    pub destination: String,
    /// Time of acceptance, milliseconds since the epoch.
    pub at: u64,
    /// Time at which the message expires, unless an admin releases or purges it before.
    pub until: u64,
    /// The screen that decided: its name and version, with a space between.
    pub by: String,
    /// The screen's note.
    #[schema(required)]
    pub note: Option<String>,
    /// Length of the text, in octets.
    pub length: usize,
}

/// `POST /v1/quarantine/release` and `POST /v1/quarantine/purge`: either `origin` or `ids`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuarantineSelection {
    /// All messages of this account or peer that are in quarantine now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The messages with these ids; at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<IdText>>, max_items = 1000)]
    pub ids: Option<Vec<String>>,
}

/// The result for a [`QuarantineSelection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineResult {
    /// Number of messages that were released or purged.
    pub done: u64,
    /// Number of messages that were not in quarantine.
    pub skipped: u64,
}
