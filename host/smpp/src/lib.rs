//! SMPP 3.4 and 5.0 without I/O: bytes in, events out.
//!
//! The crate is deterministic and has no sockets, clocks or tasks. [`Session`] is one connection seen from our side, in
//! either role. Its owner passes bytes and the time to it, takes [`Event`]s from it, and writes [`Session::output`].
//! Each action that depends on time is one [`Timer`]; [`Session::deadline`] returns the time of the next one. So a test
//! runs a day of a link in a millisecond, and a fault is a list of inputs.
//!
//! Below the session are the codec ([`PduFrame`], [`Request`], [`Response`], [`Tlvs`], [`CommandStatus`]) and the
//! field formats: [`time`]s, delivery receipts ([`delivery_receipt`]), the GSM alphabet ([`text`]), concatenated
//! messages ([`mod@segmentation`]), message ids in their various forms ([`message_id`]).
//!
//! # Guarantees
//!
//! * **Decoding is confined.** A PDU is first cut out by its length. An error inside it can neither affect the next
//!   PDU nor hide the sequence number that the error response needs. Every decodable header of a request gets a
//!   response.
//! * **Decoding is lenient, encoding strict.** Common errors of peers are accepted where the meaning is not in doubt.
//!   Our own output follows the specification, and nothing is cut to fit: see [`Request::fits`].
//! * **Memory is bounded.** No length field is trusted before its octets have arrived. A session holds one incomplete
//!   PDU, as many requests as its two windows and its backlog allow, and the output that the peer has not read; the
//!   owner limits the output.
//! * **Nothing is answered twice or forgotten.** Every request of ours ends in exactly one [`Event::Answer`], or in
//!   [`Event::Unanswered`] (a late answer is still reported), or among the tokens of [`Session::close`].
//!
//! # Two sessions and no network
//!
//! ```
//! use smpp::{
//!     Bind, BindMode, CommandStatus, Event, InterfaceVersion, Request, Response, Session, Sm, SmppClientOptions,
//!     SmppOptions,
//! };
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
//! let mut smsc = Session::server(now, SmppOptions::default());
//! let options = SmppOptions::default();
//! let mut esme = Session::client(now, SmppClientOptions { options, bind, await_outbind: None });
//!
//! carry(now, &mut esme, &mut smsc);
//! let Some(Event::Bind(bind)) = smsc.poll_event() else { panic!() };
//! assert_eq!(bind.system_id, "esme");
//! smsc.accept_bind(now, InterfaceVersion(bind.interface_version));
//! carry(now, &mut smsc, &mut esme);
//! assert!(matches!(esme.poll_event(), Some(Event::Bound { .. })));
//!
//! let sm = Sm { short_message: "Hello".into(), ..Sm::default() };
//! esme.request(now, 42, &Request::SubmitSm(sm))?;
//! carry(now, &mut esme, &mut smsc);
//! let Some(Event::Request { sequence, request }) = smsc.poll_event() else { panic!() };
//! smsc.respond(request.command(), sequence, CommandStatus::ROK, &Response::id("1000000042"));
//! carry(now, &mut smsc, &mut esme);
//! let Some(Event::Answer { token, response, .. }) = esme.poll_event() else { panic!() };
//! assert_eq!((token, response.message_id()), (42, &b"1000000042"[..]));
//! # Ok::<(), smpp::RequestError>(())
//! ```
//!
//! Sources are cited as "34 §x" (SMPP 3.4 Issue 1.2) and "50" (SMPP 5.0).
#![forbid(unsafe_code)]

mod command_status;
pub mod delivery_receipt;
pub mod message_id;
mod pdu;
pub mod segmentation;
mod session;
pub mod text;
pub mod time;
mod tlv;
mod wire;

pub use command_status::CommandStatus;
pub use pdu::{
    AlertNotification, Bind, BindMode, BroadcastSm, CancelBroadcastSm, CancelSm, CommandId, DataSm,
    Destination, Header, MAX_SHORT_MESSAGE, Outbind, PduFrame, QueryBroadcastSm, QuerySm, QuerySmResp,
    ReplaceSm, Request, Response, Sm, SubmitMulti, SubmitMultiResp, Unsuccess, decode_request,
    decode_response, encode_request, encode_response,
};
pub use session::{
    CloseReason, Event, InterfaceVersion, ProtocolAnomaly, RequestError, Session, SessionState,
    SmppClientOptions, SmppOptions, Timer, WindowFullPolicy,
};
pub use tlv::{Tlvs, tag};
pub use wire::{BodyError, HEADER_LENGTH};
