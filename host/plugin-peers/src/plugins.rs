use hooks::{CallbackAnswer, CallbackRequest, Hooks, PeerSubmission, Submitted};
use model::Timestamp;
use std::sync::Arc;

/// The plugins of the hook `peer`. All calls may block.
pub trait PeerPlugins: Send + Sync + 'static {
    /// Whether a plugin serves this peer.
    fn serves(&self, peer: &Arc<str>) -> bool;

    /// Submits a message.
    fn submit(&self, submission: &PeerSubmission) -> Submitted;

    /// Reads a callback.
    ///
    /// # Errors
    /// Why the plugin failed, in words for the log.
    fn callback(&self, request: &CallbackRequest) -> Result<CallbackAnswer, String>;
}

impl PeerPlugins for Hooks {
    fn serves(&self, peer: &Arc<str>) -> bool {
        self.serves_peer(peer)
    }

    fn submit(&self, submission: &PeerSubmission) -> Submitted {
        Self::submit(self, submission, Timestamp::now())
    }

    fn callback(&self, request: &CallbackRequest) -> Result<CallbackAnswer, String> {
        Self::callback(self, request, Timestamp::now())
    }
}
