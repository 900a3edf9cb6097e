//! SMPP 3.4 and 5.0 without I/O: bytes in, events out.
//!
//! The crate is fully deterministic and holds no socket, no clock and no task. [`Session`] is one connection seen from
//! our side, in either role; its owner feeds it bytes and the time, takes [`Event`]s from it, and writes what it finds in
//! [`Session::output`]. Below it stand the codec ([`Request`], [`Response`], [`Tlvs`], [`Status`]) and the field formats
//! that SMPP borrows from elsewhere: times, receipts, the GSM alphabet, user data headers.
//!
//! Decoding is lenient and confined: a PDU is cut out by its length first, and what is wrong inside it can neither reach
//! the next PDU nor hide the sequence number that the error answer needs. Encoding is strict.
//!
//! Sources are cited as "34 §x" (SMPP 3.4 Issue 1.2) and "50" (SMPP 5.0).
#![forbid(unsafe_code)]

pub mod concat;
pub mod message_id;
mod pdu;
pub mod receipt;
mod session;
mod status;
pub mod text;
pub mod time;
mod tlv;
mod wire;

pub use pdu::{
    AlertNotification, Bind, BindMode, BroadcastSm, CancelBroadcastSm, CancelSm, CommandId, DataSm,
    Destination, Frame, Header, MAX_SHORT_MESSAGE, Outbind, QueryBroadcastSm, QuerySm, QuerySmResp,
    ReplaceSm, Request, Response, Sm, SubmitMulti, SubmitMultiResp, Unsuccess, decode_request,
    decode_response, encode_request, encode_response,
};
pub use session::{
    ClientOptions, CloseReason, Event, Note, Options, RequestError, Session, SessionState, Timer, Version,
    WhenFull,
};
pub use status::Status;
pub use tlv::{Tlvs, tag};
pub use wire::{BodyError, HEADER_LENGTH};
