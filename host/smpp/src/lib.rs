//! SMPP 3.4 and 5.0 without I/O: bytes in, events out.
//!
//! The crate is fully deterministic and holds no socket, no clock and no task. [`Session`] is one connection seen from
//! our side, in either role; its owner feeds it bytes and the time, takes [`Event`]s from it, and writes what it finds in
//! [`Session::output`]. What has to happen by the clock is one [`Timer`] each; [`Session::deadline`] says when the next
//! is due. So a test plays a day of a link in a millisecond, and a fault is a list of inputs.
//!
//! Below the session stand the codec ([`Frame`], [`Request`], [`Response`], [`Tlvs`], [`Status`]) and the field formats
//! that SMPP borrows from elsewhere: [`time`]s, [`receipt`]s, the GSM alphabet ([`text`]), user data headers ([`mod@concat`]),
//! message ids in the forms of the field ([`message_id`]).
//!
//! # What it promises
//!
//! * **Decoding is confined.** A PDU is cut out by its length first; what is wrong inside it can neither reach the next
//!   PDU nor hide the sequence number that the error answer needs. Every decodable header of a request gets an answer.
//! * **Decoding is lenient, encoding strict.** What real peers get wrong without doubt about its meaning is read; what
//!   we write is by the letter, and nothing is cut to fit: see [`Request::fits`].
//! * **Memory is bounded.** No length field is believed before its octets are there. A session holds one incomplete PDU,
//!   as many requests as its two windows and its backlog allow, and what the peer has not yet read; the owner watches the
//!   last of these.
//! * **Nothing is answered twice or forgotten.** Every request of ours ends in exactly one [`Event::Answer`], or in
//!   [`Event::Unanswered`] (after which a late answer is still told), or among the tokens of [`Session::close`].
//!
//! # Two sessions and no network
//!
//! ```
//! use smpp::{Bind, BindMode, ClientOptions, Event, Options, Request, Response, Session, Sm, Status, Version};
//! use std::time::Instant;
//!
//! fn carry(now: Instant, from: &mut Session, to: &mut Session) {
//!     let octets = from.output().split();
//!     to.receive(now, &octets);
//! }
//!
//! let now = Instant::now();
//! let bind = Bind {
//!     mode: BindMode::Transceiver,
//!     system_id: "esme".into(),
//!     password: "secret".into(),
//!     system_type: "".into(),
//!     interface_version: 0x34,
//!     addr_ton: 0,
//!     addr_npi: 0,
//!     address_range: "".into(),
//! };
//! let mut smsc = Session::server(now, Options::default());
//! let mut esme = Session::client(now, ClientOptions { options: Options::default(), bind, await_outbind: None });
//!
//! carry(now, &mut esme, &mut smsc);
//! let Some(Event::Bind(bind)) = smsc.poll_event() else { panic!() };
//! assert_eq!(bind.system_id, "esme");
//! smsc.accept_bind(now, Version(bind.interface_version));
//! carry(now, &mut smsc, &mut esme);
//! assert!(matches!(esme.poll_event(), Some(Event::Bound { .. })));
//!
//! let sm = Sm { short_message: "Hello".into(), ..Sm::default() };
//! esme.request(now, 42, &Request::SubmitSm(sm))?;
//! carry(now, &mut esme, &mut smsc);
//! let Some(Event::Request { sequence, request }) = smsc.poll_event() else { panic!() };
//! smsc.respond(request.command(), sequence, Status::ROK, &Response::id("1000000042"));
//! carry(now, &mut smsc, &mut esme);
//! let Some(Event::Answer { token, response, .. }) = esme.poll_event() else { panic!() };
//! assert_eq!((token, response.message_id()), (42, &b"1000000042"[..]));
//! # Ok::<(), smpp::RequestError>(())
//! ```
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
