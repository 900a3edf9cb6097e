//! SGIP links: gateways, to which we are an SP, and SPs, to which we are the gateway.
//!
//! The side that sends commands connects (SGIP 1.2 §3.1), so each peer has two sets of connections. We dial gateways
//! to Submit, and SPs to Deliver and Report. At our listener gateways log in to Deliver and Report, and SPs to
//! Submit. The login tells which of the two a peer is.

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

/// The kind under which a command is counted.
fn kind(pdu: &Pdu) -> PduKind {
    match pdu {
        Pdu::Submit(_) => PduKind::Submit,
        Pdu::Deliver(_) => PduKind::Deliver,
        Pdu::Report(_) => PduKind::Report,
        Pdu::UserReport(_) => PduKind::UserReport,
        _ => PduKind::Other,
    }
}

/// The version that stands for a dialect in the API, beside SMPP's versions: 1.2 is 0x12.
fn version(dialect: Dialect) -> u8 {
    match dialect {
        Dialect::V12 => 0x12,
        Dialect::V13 => 0x13,
    }
}
