//! CMPP and SMGP links: gateways, to which the appliance is an SP; and SPs, to which it is the gateway.
//!
//! The SP connects and logs in, and both sides send requests over this connection: the SP sends Submit; the gateway
//! sends Deliver, both for messages and for status reports. Both protocols use the same link code; [`LinkedProtocol`]
//! contains the differences.

mod gateway_link;
mod incoming;
mod login;
mod mapping;
mod message_ids;
mod options;
mod outgoing;
mod part_references;
mod probe;
mod signature;
mod sp_link;
pub(crate) mod state;

pub(crate) use gateway_link::dial_gateway;
pub use options::{SignaturePosition, SpAccountOptions, SpGatewayOptions, SpListenerOptions, SpNodeOptions};
pub(crate) use probe::probe;
pub(crate) use sp_link::SpLink;

use crate::shared::Shared;
use cmpp::Cmpp;
use ports::{LoginInterface, Protocol};
use smgp::Smgp;
use sp_session::SpProtocol;
use state::SpState;

/// A protocol between SPs and gateways, as used by links.
pub(crate) trait LinkedProtocol: SpProtocol {
    /// The protocol, for the log and for counters.
    const PROTOCOL: Protocol;
    /// The interface name of its logins.
    const INTERFACE: LoginInterface;

    /// The state that its links share.
    fn state(shared: &Shared) -> &SpState;
}

impl LinkedProtocol for Cmpp {
    const PROTOCOL: Protocol = Protocol::Cmpp;
    const INTERFACE: LoginInterface = LoginInterface::Cmpp;

    fn state(shared: &Shared) -> &SpState {
        &shared.cmpp
    }
}

impl LinkedProtocol for Smgp {
    const PROTOCOL: Protocol = Protocol::Smgp;
    const INTERFACE: LoginInterface = LoginInterface::Smgp;

    fn state(shared: &Shared) -> &SpState {
        &shared.smgp
    }
}
