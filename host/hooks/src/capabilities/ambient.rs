use super::State;
use crate::bindings::host::switchyard::hooks::log::Level;
use crate::seen::{Asked, number};
use crate::wasi::Ambient;

/// Guests of other languages have the time, the log and the record that all have.
impl Ambient for State {
    fn now_ms(&mut self) -> u64 {
        self.moment()
    }

    fn random(&mut self) -> Option<u64> {
        if !self.label.grants.random {
            return None;
        }
        if self.seen.repeats() {
            return self.seen.recall(Asked::Random, &[]).as_deref().and_then(number);
        }
        match getrandom::u64() {
            Ok(drawn) => {
                self.seen.note(Asked::Random, &[], &drawn.to_le_bytes());
                Some(drawn)
            }
            Err(error) => {
                tracing::warn!(plugin = &*self.label.plugin, %error, "the system has no random number");
                None
            }
        }
    }

    fn sequence(&mut self) -> &mut u64 {
        &mut self.sequence
    }

    fn say(&mut self, line: &str) {
        self.log(Level::Info, line);
    }
}
