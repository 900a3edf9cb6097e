use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::hlr::{Failure, Host, Subscriber};
use crate::host_call_log::HostCallKind;
use capabilities::HlrFailure;

impl Host for InstanceState {
    fn look_up(&mut self, msisdn: String) -> Result<Subscriber, Failure> {
        self.count_call(HostInterface::Hlr);
        if !self.context.grants.hlr {
            if self.context.may_log() {
                tracing::warn!(plugin = &*self.context.plugin, "HLR query without a grant (grants.hlr)");
            }
            return Err(Failure::Unreachable);
        }
        if self.is_host_time_over() {
            return Err(Failure::Unreachable);
        }
        if self.call_log.is_replay() {
            self.call_log.recall(HostCallKind::Hlr, &[msisdn.as_bytes()]);
            return Err(Failure::Unreachable);
        }
        let services = self.services.clone();
        match self.measure_wait(|| services.hlr.look_up(&msisdn)) {
            Ok(found) => Ok(Subscriber { imsi: found.imsi, serving: found.serving }),
            Err(HlrFailure::Unknown) => Err(Failure::Unknown),
            Err(HlrFailure::Unreachable) => Err(Failure::Unreachable),
        }
    }
}
