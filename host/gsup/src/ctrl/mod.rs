//! The CTRL interface of an HLR: looks up subscribers by number or IMSI.
//!
//! Each direction sends lines of text in IPA frames: `GET 7 subscriber.by-msisdn-15551234567.imsi`, answered by
//! `GET_REPLY 7 …` or `ERROR 7 …`.

mod ctrl_client;
mod ctrl_subscriber;

pub use ctrl_client::{CtrlClient, Event, LookupAnswer, LookupDetail};
pub use ctrl_subscriber::CtrlSubscriber;

use crate::GsupImsi;
use crate::ipa::{self, EXTENSION_CTRL, STREAM_OSMOCOM};
use bytes::BytesMut;
use std::fmt;

/// The text is not a valid MSISDN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an MSISDN consists of 1 to 15 decimal digits")]
pub struct MsisdnError;

/// An MSISDN as the HLR stores it: digits without a plus sign.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Msisdn(Box<str>);

impl Msisdn {
    /// Validates the digits, so that no other text can enter a command; a leading plus sign is removed.
    ///
    /// # Errors
    /// If the text is not 1 to 15 digits.
    pub fn new(text: &str) -> Result<Self, MsisdnError> {
        let digits = text.strip_prefix('+').unwrap_or(text);
        if (1..=15).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            Ok(Self(digits.into()))
        } else {
            Err(MsisdnError)
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The subject of a lookup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LookupSubject {
    /// By MSISDN.
    Number(Msisdn),
    /// By IMSI.
    Imsi(GsupImsi),
}

impl From<Msisdn> for LookupSubject {
    fn from(number: Msisdn) -> Self {
        Self::Number(number)
    }
}

impl From<GsupImsi> for LookupSubject {
    fn from(imsi: GsupImsi) -> Self {
        Self::Imsi(imsi)
    }
}

impl fmt::Display for LookupSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "by-msisdn-{}", number.as_str()),
            Self::Imsi(imsi) => write!(formatter, "by-imsi-{}", imsi.as_str()),
        }
    }
}

/// A CTRL variable of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    /// The IMSI alone (OsmoHLR 1.8.0 and later).
    Imsi,
    /// All data.
    Info,
}

impl fmt::Display for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Imsi => "imsi",
            Self::Info => "info",
        })
    }
}

/// Encodes a query as a complete frame.
pub fn put_query(output: &mut BytesMut, id: u32, subject: &LookupSubject, variable: Variable) {
    let line = format!("GET {id} subscriber.{subject}.{variable}");
    ipa::put(output, STREAM_OSMOCOM, &[EXTENSION_CTRL], line.as_bytes());
}

/// A line from the HLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtrlReply<'a> {
    /// A value.
    Value {
        /// Id of the query.
        id: u32,
        /// The queried variable.
        variable: &'a str,
        /// The value; may have several lines.
        value: &'a str,
    },
    /// An error.
    Error {
        /// Id of the query; `None` if the HLR could not parse it.
        id: Option<u32>,
        /// The error text.
        text: &'a str,
    },
    /// An unsolicited notification.
    Trap {
        /// The variable.
        variable: &'a str,
        /// The value.
        value: &'a str,
    },
}

impl<'a> CtrlReply<'a> {
    /// Parses the payload of a frame; `None` if it is invalid.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(payload).ok()?.trim_end_matches(['\0', '\n', '\r', ' ']);
        let (verb, rest) = text.split_once(' ')?;
        let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let number = id.parse().ok();
        let (variable, value) = rest.split_once([' ', '\n']).unwrap_or((rest, ""));
        match verb {
            "GET_REPLY" => Some(Self::Value { id: number?, variable, value }),
            "ERROR" => Some(Self::Error { id: number, text: rest }),
            "TRAP" => Some(Self::Trap { variable, value }),
            _ => None,
        }
    }
}
