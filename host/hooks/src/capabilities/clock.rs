use super::State;
use crate::bindings::switchyard::hooks::clock::Host;

impl Host for State {
    fn now(&mut self) -> u64 {
        self.now.0
    }
}
