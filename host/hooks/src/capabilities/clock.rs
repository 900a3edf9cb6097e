use super::State;
use crate::bindings::host::switchyard::hooks::clock::Host;
use crate::seen::{Asked, number};

impl State {
    /// When the call began, or when it began at the time of which a replay tells.
    pub(super) fn moment(&mut self) -> u64 {
        if let Some(then) = self.seen.recall(Asked::Clock, &[]).as_deref().and_then(number) {
            return then;
        }
        self.seen.note(Asked::Clock, &[], &self.now.0.to_le_bytes());
        self.now.0
    }
}

impl Host for State {
    fn now(&mut self) -> u64 {
        self.moment()
    }
}
