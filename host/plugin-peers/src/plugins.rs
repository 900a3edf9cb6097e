use hooks::{CallbackAnswer, CallbackRequest, Hooks, PeerSubmission, Submitted};
use model::{CallRecord, Timestamp};
use std::sync::Arc;

/// The plugins of the hook `peer`. All calls may block.
pub trait PeerPlugins: Send + Sync + 'static {
    /// Whether a plugin serves this peer.
    fn serves(&self, peer: &Arc<str>) -> bool;

    /// Submits a message. With `record`, returns a record of the call for replays, if it can be recorded.
    fn submit(&self, submission: &PeerSubmission, record: bool) -> (Submitted, Option<CallRecord>);

    /// Reads a callback.
    ///
    /// # Errors
    /// The description of the failure, for the log.
    fn callback(&self, request: &CallbackRequest) -> Result<CallbackAnswer, String>;
}

impl PeerPlugins for Hooks {
    fn serves(&self, peer: &Arc<str>) -> bool {
        self.serves_peer(peer)
    }

    fn submit(&self, submission: &PeerSubmission, record: bool) -> (Submitted, Option<CallRecord>) {
        if record {
            self.submit_recorded(submission, Timestamp::now())
        } else {
            (Self::submit(self, submission, Timestamp::now()), None)
        }
    }

    fn callback(&self, request: &CallbackRequest) -> Result<CallbackAnswer, String> {
        Self::callback(self, request, Timestamp::now())
    }
}
