//! The map of the traffic of the last minute: accounts, hooks and peers. The busiest accounts and peers, and those with
//! trouble, have their own nodes.

use crate::attention::AttentionSeverity;
use crate::name_schemas::DirectionSchema;
use crate::traffic::{HookTrafficView, TrafficCounts, TrafficFlowView};
use model::Direction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/traffic/map`: the traffic of the last minute in a size that does not depend on the number of accounts and peers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrafficMap)]
pub struct TrafficMapView {
    /// The time that the counts of accounts, peers and flows cover, in milliseconds.
    pub window_ms: u64,
    /// Messages accepted from accounts and peers.
    pub accepted: u64,
    /// Submit attempts of messages from accounts to peers.
    pub submitted: u64,
    /// The accounts: those with trouble first, then the busiest. The last node may represent all others.
    pub accounts: Vec<TrafficNodeView>,
    /// The peers, likewise.
    pub peers: Vec<TrafficNodeView>,
    /// The traffic between two nodes in one direction.
    pub lines: Vec<TrafficLineView>,
    /// Flows: those with trouble first, then the busiest; at most the `flows` of the request.
    pub flows: Vec<TrafficFlowView>,
    /// Number of all flows.
    pub flow_count: u64,
    /// The time that the counts of hooks cover, in milliseconds; 0 shortly after the start.
    pub hooks_window_ms: u64,
    /// The hooks with live plugins.
    pub hooks: Vec<HookTrafficView>,
}

/// An account or a peer on the map, or all others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrafficNode)]
pub struct TrafficNodeView {
    /// The account or peer; null for the node of all others.
    #[schema(required)]
    pub name: Option<String>,
    /// Number of accounts or peers that the node represents.
    pub members: u64,
    /// Of these, the number with trouble.
    pub troubled: u64,
    /// Of these, the number without messages in the last minute and without waiting messages.
    pub quiet: u64,
    /// Messages accepted from an account; submit attempts to a peer.
    pub messages: u64,
    /// Messages that wait in the queue.
    pub waiting: u64,
    /// The worst trouble: a finding, or the share of refused or unanswered attempts; null if there is none.
    #[schema(required, inline)]
    pub severity: Option<AttentionSeverity>,
    /// Whether it is in the configuration; for the node of all others, whether all of them are.
    pub configured: bool,
    /// Links that can carry messages.
    pub links: u64,
    /// The reason why the queue is blocked; null if no message waits.
    #[schema(required)]
    pub blocked_by: Option<String>,
}

/// The traffic between an account's node and a peer's node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrafficLine)]
pub struct TrafficLineView {
    /// Index of the account's node.
    pub account: usize,
    /// Index of the peer's node.
    pub peer: usize,
    /// `mt`: from the account; `mo`: to the account.
    #[schema(value_type = DirectionSchema, inline)]
    pub direction: Direction,
    /// The counts.
    #[serde(flatten)]
    pub counts: TrafficCounts,
    /// The worst trouble of one of its flows; null if there is none.
    #[schema(required, inline)]
    pub severity: Option<AttentionSeverity>,
}
