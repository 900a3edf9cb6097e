//! The subscriber of a message's leg.

use model::{AddressBytes, Imsi, Message};

/// The number to resolve for a leg.
pub(crate) fn number_on_leg(message: &Message, leg: u8) -> AddressBytes {
    without_plus(&message.addresses_on(leg).1.value)
}

/// The number without leading plus signs. All are removed, so that the result is stable and an answer matches its
/// query.
pub(crate) fn without_plus(number: &[u8]) -> AddressBytes {
    number.iter().copied().skip_while(|octet| *octet == b'+').collect()
}

/// Whether a leg needs the subscriber before the message may take it.
pub(crate) fn needs_subscriber(message: &Message, leg: u8) -> bool {
    message.routed.verdict.leg(leg).is_some_and(|leg| leg.resolve && leg.imsi.is_none())
}

/// The subscriber of a leg, if known.
pub(crate) fn imsi_on_leg(message: &Message, leg: u8) -> Option<&Imsi> {
    message.routed.verdict.leg(leg)?.imsi.as_ref()
}
