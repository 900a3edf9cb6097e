use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What is to be done with messages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderKind {
    /// They are not handed over until the order is withdrawn.
    Suspend,
    /// Nothing new is taken for the peer; what waits goes out.
    Drain,
    /// They go to the peer `to`.
    Rebind,
    /// They end as cancelled once the time to undo it is over, those that were there when the order was given.
    Cancel,
    /// The same, and receipts of ours on their way to submitters go too.
    Purge,
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderState {
    /// It holds until it is withdrawn.
    Standing,
    /// Its messages are held back; until `undo-until` it can be undone.
    UndoWindow,
    /// Its messages are being ended, some in each batch.
    UnderWay,
    /// It is done with.
    Done,
    /// It was withdrawn, or undone in time.
    Undone,
}

/// Which messages: all conditions hold, and at least one must be given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OrderScope {
    /// Those that wait for this peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "upstream")]
    pub peer: Option<String>,
    /// Those that this account has submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "acme")]
    pub account: Option<String>,
    /// Those whose destination begins with these digits; a plus in front makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "4179", min_length = 1, max_length = 20)]
    pub prefix: Option<String>,
    /// Those accepted so long ago, such as `30s`, `5m`, `1h` or `2d`; a part of a second counts as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1h", pattern = "^[0-9]{1,9}(ms|s|m|min|h|d)$")]
    pub older_than: Option<String>,
}

/// `POST /v1/orders`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantedOrder {
    /// What is to be done.
    pub what: OrderKind,
    /// With which messages.
    #[serde(rename = "where")]
    pub scope: OrderScope,
    /// Where they go: for `rebind` and for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// Why, for those who come after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 256)]
    pub why: Option<String>,
    /// How long `cancel` and `purge` can be undone, at most a day; a minute where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1m", pattern = "^[0-9]{1,9}(ms|s|m|min|h|d)$")]
    pub undo_within: Option<String>,
}

/// An order about waiting messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Order {
    /// Its number.
    pub id: u32,
    /// What is to be done.
    pub what: OrderKind,
    /// With which messages.
    #[serde(rename = "where")]
    pub scope: OrderScope,
    /// Where they go, for `rebind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// Who gave it.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// Where it stands.
    pub state: OrderState,
    /// Until when it can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub undo_until: Option<u64>,
    /// Messages that it has moved or ended.
    pub touched: u64,
    /// Messages that it holds back now, as far as their turns have come.
    pub held: u64,
}

/// What an order would concern if it were given now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OrderPreview {
    /// Messages that wait and are concerned.
    pub messages: u64,
    /// The same by what they do: `queued`, `deferred`, `suspended`, ...
    pub by_state: BTreeMap<String, u64>,
    /// Some of them, the oldest first. Numbers are masked for those who may not read texts.
    pub sample: Vec<OrderSample>,
    /// Whether all that waits was looked at. With a prefix only so many contents are read for a preview, the oldest first;
    /// the counts are then at least those.
    pub complete: bool,
}

/// One message in an [`OrderPreview`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OrderSample {
    /// Its id.
    pub id: String,
    /// Its sender.
    pub from: String,
    /// Its addressee.
    pub to: String,
    /// What it does.
    pub state: String,
}

/// `GET /v1/uncertain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct UncertainPage {
    /// Messages that were written to a peer and never answered, the oldest first.
    pub messages: Vec<Uncertain>,
    /// Where to go on: to be given as `after`. Nothing where there are no more.
    #[schema(required)]
    pub next: Option<String>,
}

/// An uncertain message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Uncertain {
    /// Its id.
    pub id: String,
    /// The peer that may have it.
    pub peer: String,
    /// Who submitted it.
    pub account: String,
    /// Its sender, masked for those who may not read texts.
    pub source: String,
    /// Its addressee, masked likewise.
    pub destination: String,
    /// When it was accepted.
    pub at: u64,
    /// When it was last written to the peer, where that is known.
    #[schema(required)]
    pub since: Option<u64>,
    /// When it ends as unknown, unless a receipt or somebody settles it before.
    #[schema(required)]
    pub until: Option<u64>,
    /// `uncertain`: as in a list of all messages.
    pub state: &'static str,
    /// Attempts so far.
    pub attempts: u16,
    /// Octets of text.
    pub length: usize,
}

/// Either it is sent once more, and may arrive twice, or it is given up, and may have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// Sent once more.
    SendAgain,
    /// Ended as unknown.
    GiveUp,
}

/// `POST /v1/uncertain/settle`: either `peer` or `ids`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedSettlement {
    /// What is to become of them.
    pub remedy: Remedy,
    /// All of this peer's, as they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// These; at most a thousand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub ids: Option<Vec<String>>,
}

/// What became of a [`WantedSettlement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Settled {
    /// Messages that were settled.
    pub settled: u64,
    /// Messages that were not uncertain, or not any more.
    #[serde(rename = "passed-over")]
    pub passed_over: u64,
}
