//! SGIP links: gateways, to which we are an SP, and SPs, to which we are the gateway.
//!
//! The side that sends commands connects (SGIP 1.2 §3.1), so each peer has two sets of connections. We dial gateways
//! to send Submits, and SPs to send Delivers and Reports. At our listener, gateways log in to send Delivers and Reports,
//! and SPs to send Submits. The login determines whether a peer is a gateway or an SP.

pub(crate) mod bind_authenticator;
mod dlr;
mod incoming;
mod mapping;
mod options;
mod outgoing;
mod sgip_link;

pub use options::{GatewayOptions, SgipListenerOptions, SgipNodeOptions, SgipQuirks, SpOptions};
pub(crate) use sgip_link::{SgipLink, dial_gateway, dial_sp};

use ports::link::PduKind;
use sgip::{Dialect, Pdu};

/// The kind of a command in the link's counters.
fn kind(pdu: &Pdu) -> PduKind {
    match pdu {
        Pdu::Submit(_) => PduKind::Submit,
        Pdu::Deliver(_) => PduKind::Deliver,
        Pdu::Report(_) => PduKind::Report,
        Pdu::UserReport(_) => PduKind::UserReport,
        _ => PduKind::Other,
    }
}

/// The number of a dialect in the API, in the form of SMPP's versions: 1.2 is 0x12.
fn version(dialect: Dialect) -> u8 {
    match dialect {
        Dialect::V12 => 0x12,
        Dialect::V13 => 0x13,
    }
}
