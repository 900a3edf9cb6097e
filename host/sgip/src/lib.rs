//! SGIP 1.2 and 1.3 without I/O: bytes in, events out.
//!
//! SGIP runs over two TCP directions: whoever has commands connects, binds, sends commands and reads answers, all on that
//! connection; commands never travel towards the one who connected. [`Session`] is one such connection, seen from either
//! end. It holds no socket and no clock.
//!
//! Below it stand the codec ([`Pdu`], [`Header`], [`Sequence`], [`ResultCode`]), the text formats ([`text`]), the fields
//! that SMPP has no place for ([`Fields`]), and the ids under which reports come ([`peer_message_id`]).
//!
//! * **Decoding is confined and lenient**: no length is believed before its octets are there; text fields may be full,
//!   hold anything, and carry rubbish behind their first NUL; `Reserve` octets are kept.
//! * **Encoding is strict**: exact lengths, at most [`MAX_PDU`] octets.
//! * **A broken command closes the connection, without an answer**; a well-formed one that this end does not handle is
//!   answered with an error and the connection stays (SGIP 1.2 §3.7.2.4.2).
//!
//! Sources are cited as "SGIP 1.2 §x" (China Unicom, October 2001) and "SGIP 1.3".
#![forbid(unsafe_code)]

mod code;
mod fields;
mod identity;
mod pdu;
mod sequence;
mod session;
pub mod text;
mod wire;

pub use code::{Dialect, ResultCode};
pub use fields::{Fields, PRIVATE_TAGS, without_private};
pub use identity::{home_number, peer_message_id};
pub use pdu::{
    Bind, CheckUser, CheckUserAnswer, Command, Deliver, LoginType, Pdu, Report, RouteField, RouteRow,
    RouteValue, Submit, Trace, TraceAnswer, TraceHop, UserReport,
};
pub use sequence::{ParseSequenceError, Sequence};
pub use session::{CloseReason, Event, Options, RequestError, Role, Session};
pub use wire::{DecodeError, HEADER_LENGTH, Header, MAX_PDU};
