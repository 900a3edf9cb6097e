use super::InstanceState;
use crate::bindings::host::switchyard::hooks::log::Level;
use crate::host_call_log::{HostCallKind, decode_u64};
use crate::wasi::WasiHost;

/// Guests in other languages use the same clock, log and call record as all others.
impl WasiHost for InstanceState {
    fn now_ms(&mut self) -> u64 {
        self.call_time()
    }

    fn random(&mut self) -> Option<u64> {
        if !self.context.grants.random {
            return None;
        }
        if self.call_log.is_replay() {
            return self.call_log.recall(HostCallKind::Random, &[]).as_deref().and_then(decode_u64);
        }
        match getrandom::u64() {
            Ok(number) => {
                self.call_log.append(HostCallKind::Random, &[], &number.to_le_bytes());
                Some(number)
            }
            Err(error) => {
                tracing::warn!(plugin = &*self.context.plugin, %error, "no random numbers from the system");
                None
            }
        }
    }

    fn random_sequence(&mut self) -> &mut model::Random {
        &mut self.random_sequence
    }

    fn print_line(&mut self, line: &str) {
        self.log(Level::Info, line);
    }
}
