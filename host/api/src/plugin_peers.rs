//! Peers whose protocol a plugin implements.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A peer whose protocol a plugin implements, in `GET /v1/plugin-peers`. Counts are since the start of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = PluginPeer)]
pub struct PluginPeerView {
    /// Its name.
    pub peer: String,
    /// The plugin that serves it; null if no binding names it.
    #[schema(required)]
    pub plugin: Option<String>,
    /// Its version.
    #[schema(required)]
    pub version: Option<String>,
    /// Maximum number of messages that are submitted at a time.
    pub window: u64,
    /// Messages that are being submitted.
    pub in_flight: u64,
    /// Submit attempts that the peer has accepted.
    pub accepted: u64,
    /// Submit attempts that it has refused.
    pub refused: u64,
    /// Submit attempts whose outcome is uncertain.
    pub uncertain: u64,
    /// Messages that went back to the queue, because no plugin could be called.
    pub not_sent: u64,
    /// Total duration of all submit attempts, in milliseconds.
    pub busy_ms: u64,
    /// Its callbacks.
    pub callbacks: PeerCallbacksView,
    /// The plugin's note on the last message that was not accepted.
    #[schema(required)]
    pub last_failure: Option<String>,
    /// Time of this failure, in milliseconds since the epoch.
    #[schema(required)]
    pub last_failure_at: Option<u64>,
}

/// Callbacks of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerCallbacks)]
pub struct PeerCallbacksView {
    /// Callbacks that the plugin has accepted, with a status below 400.
    pub accepted: u64,
    /// Callbacks that it has refused: without the right secret or signature, for instance.
    pub refused: u64,
    /// Callbacks that it could not read, or whose contents could not be stored.
    pub failed: u64,
    /// Callbacks beyond the limits of the peer.
    pub limited: u64,
    /// Receipts in them.
    pub receipts: u64,
    /// Messages in them.
    pub messages: u64,
}
