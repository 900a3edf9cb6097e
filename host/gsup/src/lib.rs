//! GSUP, the protocol between the parts of an Osmocom core network, without I/O: bytes in, events out.
//!
//! What a short message service centre needs of it: the framing ([`ipa`]), the identity exchange and the keep-alive
//! ([`ccm`]), the messages ([`Message`]), why a delivery failed ([`classify`]), and three ends of connections:
//!
//! * [`client::Client`]: a client of an HLR that routes short messages by name (OsmoHLR 1.8 and later),
//! * [`proxy::Proxy`]: the place between an MSC and its HLR, for every older HLR: it takes the short messages out, passes
//!   everything else on as it is, and learns from it who is where,
//! * [`ctrl::Client`]: questions to an HLR's control interface: who stands behind a number.
//!
//! No socket and no clock is in here: the time comes in as milliseconds from any fixed point.
//!
//! * **Decoding is confined**: no length is believed before its octets are there. What is not understood is kept in its
//!   place: decoding and encoding again gives the same octets.
//! * **Encoding is strict**: information elements in the order in which libosmocore writes them.
#![forbid(unsafe_code)]

mod address;
mod cause;
pub mod ccm;
pub mod client;
pub mod ctrl;
mod digits;
mod error;
mod failure;
mod imsi;
pub mod ipa;
mod kind;
mod message;
mod name;
pub mod proxy;

pub use address::{Number, RpAddress};
pub use cause::{GmmCause, RpCause};
pub use error::{DecodeError, EncodeError};
pub use failure::{Failure, Reporter, classify};
pub use imsi::{Imsi, ImsiError};
pub use kind::MessageType;
pub use message::{AlertReason, CnDomain, Element, Message, MessageClass, Tag, peek};
pub use name::{Name, NameError};
