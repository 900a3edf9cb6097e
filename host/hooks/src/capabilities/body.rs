use super::State;
use crate::bindings::host::switchyard::hooks::body::Host;

impl Host for State {
    fn octets(&mut self) -> Vec<u8> {
        self.body.to_vec()
    }
}
