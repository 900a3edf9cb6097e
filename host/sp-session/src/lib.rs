//! The common parts of CMPP and SMGP, without I/O: an SP (service provider) connects to a gateway and logs in, and both
//! exchange requests over this one connection.
//!
//! [`Session`] is such a connection, seen from either end. It has no socket and no clock. The crates `cmpp` and `smgp`
//! implement [`SpProtocol`]: the encoding of their PDUs, the role of each PDU in a session, and the conversion to and
//! from [`Submission`], [`Delivery`] and [`SpStatusReport`], which both protocols share.
//!
//! * **Decoding is confined and lenient**: no length is trusted before its octets have arrived; a text field ends at
//!   its first NUL, and spaces before it are not part of it.
//! * **Encoding is strict**: a text that is longer than its field is an error, and is never cut.
//! * **A PDU that cannot be cut out of the stream closes the connection, without an answer**; one whose counts are
//!   wrong is answered with a status, and the connection stays.
//!
//! Sources: CMPP 3.0.0 (China Mobile QB-GF-028-2003) and SMGP 3.0.3 (China Telecom, August 2008), cited as
//! "CMPP 3.0 §x" and "SMGP 3.0.3 §x".
#![forbid(unsafe_code)]

mod authenticator;
mod delivery_state;
mod message;
mod protocol;
mod session;
mod sp_fields;
mod wire;

pub use authenticator::{ClientAuthenticator, china_time, server_authenticator, wall_clock};
pub use delivery_state::{is_final, state_of, word_of};
pub use message::{Content, Delivery, SegmentNumber, SpStatusReport, Submission};
pub use protocol::{Meaning, OfferedLogin, OwnLogin, PduRole, SpProtocol, Statuses};
pub use session::{Event, Session, SessionOptions, SpCloseReason, SpRequestError};
pub use sp_fields::{SpFields, TAGS};
pub use wire::{DecodeError, FieldError, HEADER_LENGTH, Header, PduReader, PduWriter};
