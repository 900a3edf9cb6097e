//! Takes back what fails too often, on a thread of its own: the one that saw the last fault has traffic to carry.

use model::Hook;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The way to the steward.
#[derive(Clone)]
pub(crate) struct Alarm(Sender<Hook>);

impl Alarm {
    pub(crate) fn new() -> (Self, Receiver<Hook>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// Something of this hook has had too many faults.
    pub(crate) fn raise(&self, hook: Hook) {
        // The steward ends with the house.
        let _ = self.0.send(hook);
    }
}
