use serde::Serialize;
use utoipa::ToSchema;

/// What `GET /v1/messages` looks for; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedMessages {
    /// Source or destination, with or without a plus in front.
    pub number: Option<String>,
    /// The id that stands for all destinations of its submission (SMPP submit_multi).
    pub submission: Option<String>,
    /// The IMSI of the subscriber that it comes from or goes to.
    pub imsi: Option<String>,
    /// Who submitted it.
    pub account: Option<String>,
    /// Whose queue, link or receipt it waits for, or who took it.
    pub peer: Option<String>,
    /// What it does, or how it ended.
    pub state: Option<String>,
    /// Accepted at this time or later: milliseconds since the epoch, or RFC 3339.
    pub from: Option<String>,
    /// Accepted before this time.
    pub until: Option<String>,
    /// How many, 1 to 1000.
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// How long, in milliseconds, the archive is searched before a page ends with what was found, 10 to 5000.
    pub patience_ms: u64,
}

/// `GET /v1/messages`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct MessagePage {
    /// Messages, the newest first. There may be fewer than asked for, even none, though there are more: where a filter
    /// finds little in much, a page ends after so many looks, or when the patience does.
    pub messages: Vec<MessageRow>,
    /// Where to go on: to be given as `cursor`. Nothing where there are no more.
    #[schema(required)]
    pub next: Option<String>,
    /// Why messages may be missing, where some may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MessageRow {
    /// Its id.
    pub id: String,
    /// When it was accepted, in milliseconds since the epoch.
    pub at: u64,
    /// What it does, or how it ended.
    pub state: String,
    /// Whether it has ended.
    pub finished: bool,
    /// Who submitted it.
    pub account: String,
    /// Whose queue, link or receipt it waits for, or who took it; empty where nobody did.
    pub peer: String,
    /// Its sender, masked for those who may not read texts.
    pub source: String,
    /// Its addressee, masked likewise.
    pub destination: String,
    /// Octets of text.
    pub length: usize,
}
