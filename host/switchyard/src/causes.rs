//! Codes of refusals in words, by the protocol of the peer that gave them.

use crate::appliance::Switchyard;

impl Switchyard {
    /// A peer's code in words; a peer that is no longer configured is taken for one of SMPP.
    pub(crate) fn cause_words(&self, peer: &str, code: u32) -> String {
        if code == 0 {
            return "no cause given".to_owned();
        }
        if self.networks.iter().any(|network| network.name() == peer) {
            return gsm::refusal_words(code);
        }
        match u8::try_from(code) {
            Ok(code) if self.links.speaks_sgip(peer) => sgip::ResultCode(code).to_string(),
            _ => smpp::Status(code).to_string(),
        }
    }
}
