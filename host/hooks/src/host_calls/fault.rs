use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::fault::Host;
use crate::text_limits::{MAX_REPORT_OCTETS, truncate};

impl Host for InstanceState {
    fn report(&mut self, what: String) {
        self.count_call(HostInterface::Fault);
        self.report = Some(truncate(what, MAX_REPORT_OCTETS));
    }
}
