use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::clock::Host;
use crate::host_call_log::{HostCallKind, decode_u64};

impl InstanceState {
    /// The time at which the call started; in a replay, the recorded time.
    pub(super) fn call_time(&mut self) -> u64 {
        if let Some(recorded) = self.call_log.recall(HostCallKind::Clock, &[]).as_deref().and_then(decode_u64)
        {
            return recorded;
        }
        self.call_log.append(HostCallKind::Clock, &[], &self.now.0.to_le_bytes());
        self.now.0
    }
}

impl Host for InstanceState {
    fn now(&mut self) -> u64 {
        self.count_call(HostInterface::Clock);
        self.call_time()
    }
}
