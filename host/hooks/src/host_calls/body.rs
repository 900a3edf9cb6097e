use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::body::Host;

impl Host for InstanceState {
    fn octets(&mut self) -> Vec<u8> {
        self.count_call(HostInterface::Body);
        self.message.text.octets.to_vec()
    }
}
