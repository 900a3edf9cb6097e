//! The control interface of an HLR: who stands behind a number or an IMSI, and where.
//!
//! Text in IPA frames, a line each way: `GET 7 subscriber.by-msisdn-15551234567.imsi`, and then `GET_REPLY 7 …` or
//! `ERROR 7 …`.

mod client;
mod subscriber;

pub use client::{Answer, Ask, Client, Event};
pub use subscriber::Subscriber;

use crate::Imsi;
use crate::ipa::{self, EXTENSION_CTRL, STREAM_OSMOCOM};
use bytes::BytesMut;
use std::fmt;

/// This is no number that could be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a subscriber's number has 1 to 15 decimal digits and nothing else")]
pub struct NumberError;

/// Digits of a subscriber's number, as the HLR has them: without a plus sign.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Msisdn(Box<str>);

impl Msisdn {
    /// Checks digits, so that nothing else can get into a command; a leading plus sign does not count.
    ///
    /// # Errors
    /// When it is something other than 1 to 15 digits.
    pub fn new(text: &str) -> Result<Self, NumberError> {
        let digits = text.strip_prefix('+').unwrap_or(text);
        if (1..=15).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            Ok(Self(digits.into()))
        } else {
            Err(NumberError)
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whom a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Whoever has this number.
    Number(Msisdn),
    /// Whoever has this IMSI.
    Imsi(Imsi),
}

impl From<Msisdn> for Subject {
    fn from(number: Msisdn) -> Self {
        Self::Number(number)
    }
}

impl From<Imsi> for Subject {
    fn from(imsi: Imsi) -> Self {
        Self::Imsi(imsi)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "by-msisdn-{}", number.as_str()),
            Self::Imsi(imsi) => write!(formatter, "by-imsi-{}", imsi.as_str()),
        }
    }
}

/// What can be asked about a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    /// The IMSI alone (OsmoHLR 1.8.0 and later).
    Imsi,
    /// Everything.
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

/// Writes a question as a whole frame.
pub fn put_question(output: &mut BytesMut, id: u32, subject: &Subject, variable: Variable) {
    let line = format!("GET {id} subscriber.{subject}.{variable}");
    ipa::put(output, STREAM_OSMOCOM, &[EXTENSION_CTRL], line.as_bytes());
}

/// What an HLR says on its control interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// An answer.
    Value {
        /// To which question.
        id: u32,
        /// What was asked for.
        variable: &'a str,
        /// It; may have many lines.
        value: &'a str,
    },
    /// No answer, and why.
    Error {
        /// To which question; `None` where it could not read even that.
        id: Option<u32>,
        /// Its words.
        text: &'a str,
    },
    /// A word about something that nobody asked for.
    Trap {
        /// What it is about.
        variable: &'a str,
        /// It.
        value: &'a str,
    },
}

impl<'a> Reply<'a> {
    /// Reads the payload of a frame; `None` where it is none of these.
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
