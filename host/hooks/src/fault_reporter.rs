//! Reports of chains that fail too often. A dedicated thread rolls them back, so that the traffic thread that saw the
//! last fault does not wait.

use crate::fault_examples::FaultExamples;
use model::Hook;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Sends rollback requests to the rollback thread and stores examples of faults.
#[derive(Clone)]
pub(crate) struct FaultReporter {
    rollback_queue: Sender<Hook>,
    pub(crate) examples: Arc<FaultExamples>,
}

impl FaultReporter {
    pub(crate) fn new() -> (Self, Receiver<Hook>) {
        let (rollback_queue, receiver) = channel();
        (Self { rollback_queue, examples: Arc::default() }, receiver)
    }

    /// Requests the rollback of a chain or candidate of this hook that had too many faults.
    pub(crate) fn request_rollback(&self, hook: Hook) {
        // The send fails only while the host shuts down.
        let _ = self.rollback_queue.send(hook);
    }
}
