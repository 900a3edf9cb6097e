//! SGIP 1.2 and 1.3 without I/O: bytes in, events out.
//!
//! SGIP uses one TCP connection for each direction. The side that has commands to send connects, binds, sends its
//! commands and reads the answers; the other side sends only answers. [`Session`] is one such connection, seen from
//! either end. It holds no socket and no clock.
//!
//! Below it are the codec ([`Pdu`], [`Header`], [`Sequence`], [`ResultCode`]), the text formats ([`text`]), the
//! fields that SMPP does not have ([`SgipFields`]), and the message ids of Reports ([`peer_message_id`]).
//!
//! * **Decoding is confined and lenient**: no length is trusted before its octets have arrived; text fields may be
//!   full, hold anything, and have garbage after their first NUL; `Reserve` octets are preserved.
//! * **Encoding is strict**: exact lengths, at most [`MAX_PDU`] octets.
//! * **A malformed command closes the connection, without an answer**; a well-formed one that this side does not
//!   handle is answered with an error, and the connection stays (SGIP 1.2 §3.7.2.4.2).
//!
//! Sources are cited as "SGIP 1.2 §x" (China Unicom, October 2001) and "SGIP 1.3".
#![forbid(unsafe_code)]

mod pdu;
mod peer_message_id;
mod result_code;
mod sequence;
mod session;
mod sgip_fields;
pub mod text;
mod wire;

pub use pdu::{
    Bind, CheckUser, CheckUserAnswer, Deliver, LoginType, Pdu, Report, RouteField, RouteRow, RouteValue,
    SgipCommand, Submit, Trace, TraceAnswer, TraceHop, UserReport,
};
pub use peer_message_id::{home_number, peer_message_id};
pub use result_code::{Dialect, ResultCode};
pub use sequence::{ParseSequenceError, Sequence};
pub use session::{Event, Session, SgipCloseReason, SgipOptions, SgipRequestError, SgipRole};
pub use sgip_fields::SgipFields;
pub use wire::{DecodeError, HEADER_LENGTH, Header, MAX_PDU};
