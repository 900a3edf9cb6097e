//! Reports of chains that fail too often. A dedicated thread rolls them back, so that the traffic thread that saw the
//! last fault does not wait.

use crate::call_observer::{CallObserver, CallStart};
use crate::fault_examples::FaultExamples;
use model::Hook;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Sends rollback requests to the rollback thread and stores examples of faults.
#[derive(Clone)]
pub(crate) struct FaultReporter {
    rollback_queue: Sender<Hook>,
    pub(crate) examples: Arc<FaultExamples>,
    /// Observes the calls themselves, if traces are on.
    pub(crate) calls: Option<Arc<dyn CallObserver>>,
}

impl FaultReporter {
    pub(crate) fn new(calls: Option<Arc<dyn CallObserver>>) -> (Self, Receiver<Hook>) {
        let (rollback_queue, receiver) = channel();
        (Self { rollback_queue, examples: Arc::default(), calls }, receiver)
    }

    /// A reporter without a call observer, for a candidate in shadow.
    pub(crate) fn unobserved(&self) -> Self {
        Self { calls: None, ..self.clone() }
    }

    /// The start of a call, if calls are observed.
    pub(crate) fn begin_call(&self) -> Option<CallStart> {
        self.calls.as_ref().map(|_| CallStart::now())
    }

    /// Requests the rollback of a chain or candidate of this hook that had too many faults.
    pub(crate) fn request_rollback(&self, hook: Hook) {
        // The send fails only while the host shuts down.
        let _ = self.rollback_queue.send(hook);
    }
}
