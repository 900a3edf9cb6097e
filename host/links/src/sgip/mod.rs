//! SGIP sockets: gateways to which we are an SP, and SPs to which we are the gateway.
//!
//! Whoever has commands to send connects (SGIP 1.2 §3.1), so each far end has two sets of connections. We dial gateways to
//! Submit, and SPs to Deliver and Report; at our listener gateways log in to bring replies and reports, and SPs to
//! Submit. Logins tell them apart.

mod connection;
pub(crate) mod dial;
pub(crate) mod listen;
mod mapping;
mod options;
mod outgoing;
mod taking;

pub use options::{GatewayOptions, Habits, SgipListenerOptions, SpOptions};

use sgip::{Dialect, Pdu};

/// The name under which a command is counted.
fn kind(pdu: &Pdu) -> &'static str {
    match pdu {
        Pdu::Submit(_) => "submit",
        Pdu::Deliver(_) => "deliver",
        Pdu::Report(_) => "report",
        Pdu::UserReport(_) => "userrpt",
        _ => "other",
    }
}

/// A dialect as the admin sees it beside SMPP's versions: 1.2 is 0x12.
fn version(dialect: Dialect) -> u8 {
    match dialect {
        Dialect::V12 => 0x12,
        Dialect::V13 => 0x13,
    }
}
