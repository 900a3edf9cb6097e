//! GSUP, the protocol between the nodes of an Osmocom core network, without I/O: octets in, events out.
//!
//! The crate has the parts that a service centre needs: framing ([`ipa`]), identity exchange and keep-alive ([`ccm`]),
//! messages ([`GsupMessage`]), classification of failures ([`classify`]), and three connection types:
//!
//! * [`client::GsupClient`]: a client of an HLR that routes short messages by name (OsmoHLR 1.8 and later),
//! * [`proxy::Proxy`]: a proxy between an MSC and its HLR, for older HLRs. It intercepts short messages, relays all
//!   other frames unchanged, and learns subscriber locations from them,
//! * [`ctrl::CtrlClient`]: a client of an HLR's CTRL interface, which resolves numbers.
//!
//! There is no socket and no clock: the time is passed in as milliseconds from any fixed point.
//!
//! * **Decoding is bounded**: no length is trusted before its octets were received. Unknown elements are kept in place,
//!   so that decoding and encoding gives the same octets.
//! * **Encoding is strict**: information elements are written in the order of libosmocore.
#![forbid(unsafe_code)]

mod bcd;
mod cause;
pub mod ccm;
pub mod client;
pub mod ctrl;
mod error;
mod failure;
mod gsup_imsi;
mod gsup_message;
pub mod ipa;
mod ipa_name;
mod message_type;
pub mod proxy;
mod rp_address;

pub use cause::{GmmCause, RpCause};
pub use error::{DecodeError, EncodeError};
pub use failure::{Failure, Reporter, classify};
pub use gsup_imsi::{GsupImsi, GsupImsiError};
pub use gsup_message::{AlertReason, CnDomain, GsupElement, GsupMessage, MessageClass, Tag, peek};
pub use ipa_name::{IpaName, IpaNameError};
pub use message_type::MessageType;
pub use rp_address::{IsdnNumber, RpAddress};
