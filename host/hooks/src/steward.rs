//! Takes back what fails too often, on a thread of its own: the one that saw the last fault has traffic to carry.

use crate::examples::Examples;
use model::Hook;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The way to the steward, and what is remembered of faults on the way.
#[derive(Clone)]
pub(crate) struct Alarm {
    steward: Sender<Hook>,
    pub(crate) examples: Arc<Examples>,
}

impl Alarm {
    pub(crate) fn new() -> (Self, Receiver<Hook>) {
        let (steward, receiver) = channel();
        (Self { steward, examples: Arc::default() }, receiver)
    }

    /// Something of this hook has had too many faults.
    pub(crate) fn raise(&self, hook: Hook) {
        // The steward ends with the house.
        let _ = self.steward.send(hook);
    }
}
