//! Short messages as the air carries them: TPDUs (3GPP TS 23.040), their alphabets (23.038), and the way between them
//! and what SMPP carries. Bytes in, values out: no socket, no clock, no state but a [`Joiner`]'s.
//!
//! * [`FromMs`] is what a telephone sends, [`ToMs`] what a service centre sends; each type reads and writes itself, so
//!   that tests and stand-ins have the other half, too. Whether a report stood in an RP-ERROR, and therefore begins with
//!   a cause, its octets do not say: `failed` does.
//! * [`UserData`] is a text as it lies on the wire, packed; [`UserData::unpack`] gives SMPP's form of it: a user data
//!   header's octets in front, then the text, of the default alphabet one septet an octet with the high bit clear.
//! * [`smpp`] goes from `data_coding` and octets to short messages, split where one is not enough, and back.
//! * [`text`] is for people: to read any message, and to write one in the cheapest alphabet.
//!
//! # What it promises
//!
//! * **Decoding is lenient, encoding strict.** What real peers get wrong without doubt about its meaning is read; what
//!   does not fit is refused with an error that says what, and nothing is cut to fit.
//! * **Nothing is lost.** What was decoded is encoded to octets that decode to the same; a text goes from the air to SMPP
//!   and back to the same octets.
//! * **Memory is bounded.** No length field is believed before its octets are there.
//!
//! # From a telephone to SMPP, and on to another telephone
//!
//! ```
//! use tpdu::{Address, Deliver, FromMs, Reference, TimeStamp, smpp};
//!
//! let octets = [0x01, 0x2A, 0x04, 0x81, 0x21, 0x43, 0x00, 0x00, 0x02, 0xE8, 0x34];
//! let FromMs::Submit(submit) = FromMs::decode(&octets, false)? else { panic!() };
//! let carried = smpp::from_air(submit.data_coding, &submit.user_data);
//! assert_eq!((carried.data_coding, carried.udhi, &carried.octets[..]), (0, false, &b"hi"[..]));
//! assert_eq!(submit.destination.to_smpp(), (0, 1, b"1234".to_vec()));
//!
//! let air = smpp::to_air(carried.data_coding, carried.udhi, &carried.octets, Reference::Short(7))?;
//! for user_data in air.parts {
//!     let deliver = Deliver {
//!         more_messages: false,
//!         loop_prevention: false,
//!         status_report_indication: false,
//!         reply_path: false,
//!         originator: Address::international("15551234567"),
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

pub use address::{Address, TON_ALPHANUMERIC, TON_INTERNATIONAL, TON_NATIONAL, TON_UNKNOWN};
pub use alphabet::{Language, Tables};
pub use coding::Alphabet;
pub use error::{Error, Result};
pub use header::{Header, PartOf, Reference};
pub use joiner::{Incomplete, Joined, Joiner, Limits};
pub use pdu::{
    Command, CommandType, Deliver, DeliverReport, FromMs, MAX_TPDU, Parameters, StatusReport, Submit,
    SubmitReport, ToMs,
};
pub use split::split;
pub use status::{FailureCause, FailureClass, Status, StatusClass};
pub use time::TimeStamp;
pub use user_data::{MAX_OCTETS, UserData};
pub use validity::Validity;
