use super::MessageStateView;
use super::name_schemas::UncertainStateSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The kind of a queue action on waiting messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = QueueActionKind)]
pub enum QueueActionKindView {
    /// Hold the messages until the action is ended.
    Suspend,
    /// Accept no new messages for the peer; deliver the waiting ones.
    Drain,
    /// Move the messages to the peer `to`.
    Reroute,
    /// Cancel the messages that exist when the action is created, after the time for undoing it.
    Cancel,
    /// As `cancel`, and also remove DLRs to submitters.
    Purge,
}

impl QueueActionKindView {
    /// The kind's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Drain => "drain",
            Self::Reroute => "reroute",
            Self::Cancel => "cancel",
            Self::Purge => "purge",
        }
    }
}

/// The state of a queue action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = QueueActionState)]
pub enum QueueActionStateView {
    /// In force until it is ended.
    Active,
    /// The messages are held; until `undo-until` the action can be undone.
    UndoWindow,
    /// The messages are being cancelled, in batches.
    Running,
    /// Completed.
    Done,
    /// Ended, or undone in time.
    Undone,
}

impl QueueActionStateView {
    /// The state's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::UndoWindow => "undo-window",
            Self::Running => "running",
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }

    /// Whether an action in this state still applies to messages.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Active | Self::UndoWindow | Self::Running)
    }
}

/// The messages of a queue action. All conditions must hold; at least one is required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = QueueActionScope)]
pub struct QueueActionScopeView {
    /// Messages to this peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "upstream")]
    pub peer: Option<String>,
    /// Messages that this account has submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "acme")]
    pub account: Option<String>,
    /// Messages whose destination has this prefix, with or without a leading plus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "4179", min_length = 1, max_length = 20)]
    pub prefix: Option<String>,
    /// Messages accepted at least this long ago, such as `30s`, `5m`, `1h` or `2d`. Rounded up to whole seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1h", pattern = "^[0-9]{1,9}(ms|s|m|min|h|d)$")]
    pub older_than: Option<String>,
}

/// `POST /v1/queue-actions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QueueActionRequest {
    /// The kind of action.
    pub action: QueueActionKindView,
    /// The messages that it applies to.
    pub scope: QueueActionScopeView,
    /// The destination peer; for `reroute` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// Reason for the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 256)]
    pub why: Option<String>,
    /// How long `cancel` and `purge` can be undone, at most a day; default: one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1m", pattern = "^[0-9]{1,9}(ms|s|m|min|h|d)$")]
    pub undo_within: Option<String>,
}

/// A queue action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = QueueAction)]
pub struct QueueActionView {
    /// The action's number.
    pub id: u32,
    /// The kind of action.
    pub action: QueueActionKindView,
    /// The messages that it applies to.
    pub scope: QueueActionScopeView,
    /// The destination peer, for `reroute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// The creator.
    pub by: String,
    /// Reason for the action; may be empty.
    pub why: String,
    /// Time of creation, in milliseconds since the epoch.
    pub at: u64,
    /// The state.
    pub state: QueueActionStateView,
    /// End of the time in which it can be undone, milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub undo_until: Option<u64>,
    /// Messages that it has moved or ended.
    pub affected: u64,
    /// Messages that it holds now. A message counts once its turn in the queue has come.
    pub held: u64,
}

/// The messages that a queue action would apply to now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct QueueActionPreview {
    /// Number of matching messages.
    pub messages: u64,
    /// Number of matching messages by state: `queued`, `deferred`, `suspended` and so on.
    pub by_state: BTreeMap<String, u64>,
    /// Some of the matching messages, oldest first. Numbers are masked unless the caller may read message texts.
    pub sample: Vec<QueueActionSample>,
    /// Whether all waiting messages were examined. With a prefix, a preview reads a limited number of contents, oldest first;
    /// the counts are then minimums.
    pub complete: bool,
}

/// A message in a [`QueueActionPreview`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueActionSample {
    /// The message id.
    pub id: String,
    /// The sender, masked unless the caller may read message texts.
    pub from: String,
    /// The recipient, masked likewise.
    pub to: String,
    /// The current state.
    #[schema(inline)]
    pub state: MessageStateView,
}

/// `GET /v1/uncertain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UncertainPage)]
pub struct UncertainPageView {
    /// Uncertain messages, oldest first: submitted to a peer that never answered.
    pub messages: Vec<UncertainView>,
    /// The `after` of the next page; null on the last page.
    #[schema(required)]
    pub next: Option<String>,
}

/// An uncertain message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Uncertain)]
pub struct UncertainView {
    /// The message id.
    pub id: String,
    /// The peer that may have received it.
    pub peer: String,
    /// The account that submitted the message.
    pub account: String,
    /// The sender, masked unless the caller may read message texts.
    pub source: String,
    /// The recipient, masked likewise.
    pub destination: String,
    /// Time of acceptance, milliseconds since the epoch.
    pub at: u64,
    /// Time of the last submit attempt, if it is known.
    #[schema(required)]
    pub since: Option<u64>,
    /// Time at which the message ends as unknown, unless a DLR or an admin settles it before.
    #[schema(required)]
    pub until: Option<u64>,
    /// Always `uncertain`, as in lists of all messages.
    #[schema(value_type = UncertainStateSchema, inline)]
    pub state: MessageStateView,
    /// Submit attempts so far.
    pub attempts: u16,
    /// Length of the text, in octets.
    pub length: usize,
}

/// How to settle an uncertain message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UncertainRemedy {
    /// Submit it again; it may arrive twice.
    SendAgain,
    /// End it as unknown; it may have arrived.
    GiveUp,
}

/// `POST /v1/uncertain/settle`: either `peer` or `ids`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleUncertainRequest {
    /// How to settle the messages.
    pub remedy: UncertainRemedy,
    /// All current uncertain messages of this peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The messages with these ids; at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub ids: Option<Vec<String>>,
}

/// The result of a [`SettleUncertainRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettleUncertainResult {
    /// Number of settled messages.
    pub settled: u64,
    /// Number of messages that were not uncertain.
    pub skipped: u64,
}
