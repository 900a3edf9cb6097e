use super::State;
use crate::bindings::host::switchyard::hooks::hlr::{Failure, Host, Subscriber};
use capabilities::HlrFailure;

impl Host for State {
    fn look_up(&mut self, msisdn: String) -> Result<Subscriber, Failure> {
        if !self.label.grants.hlr {
            if self.label.may_say() {
                tracing::warn!(
                    plugin = &*self.label.plugin,
                    "asks the HLR, and its binding does not grant it (grants.hlr)"
                );
            }
            return Err(Failure::Unreachable);
        }
        match self.powers.hlr.look_up(&msisdn) {
            Ok(found) => Ok(Subscriber { imsi: found.imsi, serving: found.serving }),
            Err(HlrFailure::Unknown) => Err(Failure::Unknown),
            Err(HlrFailure::Unreachable) => Err(Failure::Unreachable),
        }
    }
}
