//! Short messages on the air interface: TPDUs (3GPP TS 23.040), alphabets (23.038), and conversion from and to SMPP.
//! The crate does no I/O and reads no clock; only a [`Joiner`] has state.
//!
//! * [`FromMs`] is a TPDU from a handset, [`ToMs`] one from a service centre. Every type can be encoded and decoded, so
//!   that tests and simulators can use the crate as handset or service centre. A report in an RP-ERROR begins with a cause; since
//!   its octets do not show this, the caller sets `failed`.
//! * [`UserData`] is packed user data. [`UserData::unpack`] returns the form that SMPP uses: the user data header, then
//!   the text; in the default alphabet one septet per octet, with the high bit clear.
//! * [`smpp`] converts `data_coding` and octets to one or more short messages, and back.
//! * [`text`] decodes any message for display, and encodes a text in the shortest alphabet.
//!
//! # Guarantees
//!
//! * **Decoding is lenient, encoding is strict.** Known errors of real peers are accepted if the meaning is
//!   unambiguous. Values that do not fit are refused with an error; nothing is truncated.
//! * **Conversion is lossless.** A decoded TPDU encodes to octets that decode to the same value. A text converted to
//!   SMPP and back has the same octets.
//! * **Memory is bounded.** No memory is allocated for a length field before its octets were received.
//!
//! # From a handset to SMPP, and on to another handset
//!
//! ```
//! use tpdu::{ConcatReference, Deliver, FromMs, TimeStamp, TpAddress, smpp};
//!
//! let octets = [0x01, 0x2A, 0x04, 0x81, 0x21, 0x43, 0x00, 0x00, 0x02, 0xE8, 0x34];
//! let FromMs::Submit(submit) = FromMs::decode(&octets, false)? else { panic!() };
//! let carried = smpp::from_air(submit.data_coding, &submit.user_data);
//! assert_eq!((carried.data_coding, carried.udhi, &carried.octets[..]), (0, false, &b"hi"[..]));
//! assert_eq!(submit.destination.to_smpp(), (0, 1, b"1234".to_vec()));
//!
//! let air = smpp::to_air(carried.data_coding, carried.udhi, &carried.octets, ConcatReference::Short(7))?;
//! for user_data in air.segments {
//!     let deliver = Deliver {
//!         more_messages: false,
//!         loop_prevention: false,
//!         status_report_indication: false,
//!         reply_path: false,
//!         originator: TpAddress::international("15551234567"),
//!         protocol_id: 0,
//!         data_coding: air.data_coding,
//!         service_centre_time: TimeStamp::at(1_703_367_462_000, -32)?,
//!         user_data,
//!     };
//!     assert_eq!(Deliver::decode(&deliver.encode()?), Ok(deliver));
//! }
//! # Ok::<(), tpdu::Error>(())
//! ```
#![forbid(unsafe_code)]
mod address;
pub mod alphabet;
pub mod coding;
mod error;
pub mod header;
mod joiner;
mod pdu;
pub mod septets;
pub mod smpp;
mod split;
mod status;
pub mod text;
mod time;
mod user_data;
pub mod validity;
mod wire;

pub use address::{TON_ALPHANUMERIC, TON_INTERNATIONAL, TpAddress};
pub use alphabet::{Language, LanguageTables};
pub use coding::Alphabet;
pub use error::{Error, Result};
pub use header::{ConcatReference, Concatenation, Header};
pub use joiner::{IncompleteMessage, JoinOutcome, Joiner, JoinerLimits};
pub use pdu::{
    Command, CommandType, Deliver, DeliverReport, FromMs, MAX_TPDU, Parameters, StatusReport, Submit,
    SubmitReport, ToMs,
};
pub use split::split;
pub use status::{FailureCause, FailureClass, StatusClass, TpStatus};
pub use time::TimeStamp;
pub use user_data::{MAX_OCTETS, UserData};
pub use validity::Validity;
