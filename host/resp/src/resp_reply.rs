use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use model::{NumberState, PoolNumber, PoolOutcome, PoolRefusal};

/// A reply to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RespReply {
    /// A simple string, such as `OK`.
    Status(Cow<'static, str>),
    /// An error: a code in capitals, then a description.
    Error(Cow<'static, str>),
    /// An integer.
    Integer(i64),
    /// A bulk string.
    Text(Bytes),
    /// A verbatim string; a bulk string in RESP2.
    Verbatim(Bytes),
    /// Null.
    Null,
    /// An array.
    Array(Vec<RespReply>),
    /// A map in this order; a flat array in RESP2.
    Map(Vec<(RespReply, RespReply)>),
    /// The outcome of a `RespRequest::Operation`.
    Outcome(PoolOutcome),
    /// The outcomes of a `RespRequest::Operations`.
    Outcomes(Vec<PoolOutcome>),
    /// An array of numbers.
    Numbers(Vec<PoolNumber>),
    /// The state of a number.
    State(NumberState),
    /// A map from numbers to states.
    States(Vec<(PoolNumber, NumberState)>),
}

/// The format of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyFormat {
    /// Legacy: a change returns the text `1` or `0`, and a state is JSON.
    LegacyText,
    /// Legacy, with integers instead of texts.
    LegacyInteger,
    /// Legacy format of `call`: the number or nil.
    LegacyCall,
    /// Format of the pool commands: errors have a reason.
    Plain,
    /// As `Plain`, with the lease ticket after the number.
    WithTicket,
}

impl RespReply {
    /// The reply `OK`.
    #[must_use]
    pub fn ok() -> Self {
        Self::Status(Cow::Borrowed("OK"))
    }

    /// A bulk string with a copy of the text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// An error reply.
    #[must_use]
    pub fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// Encodes the reply directly instead of building the parser's frames: nothing is copied, and maps keep their
    /// order.
    pub(crate) fn write(&self, resp3: bool, format: ReplyFormat, out: &mut BytesMut) {
        match self {
            Self::Status(word) => write_line(b'+', word, out),
            Self::Error(text) => write_line(b'-', text, out),
            Self::Integer(number) => write_integer(*number, out),
            Self::Text(octets) => write_bulk(octets, out),
            Self::Verbatim(octets) if resp3 => {
                write_header(b'=', octets.len() + 4, out);
                out.put_slice(b"txt:");
                out.put_slice(octets);
                out.put_slice(b"\r\n");
            }
            Self::Verbatim(octets) => write_bulk(octets, out),
            Self::Null => out.put_slice(if resp3 { b"_\r\n" } else { b"$-1\r\n" }),
            Self::Array(items) => {
                write_header(b'*', items.len(), out);
                for item in items {
                    item.write(resp3, format, out);
                }
            }
            Self::Map(pairs) => {
                write_map_header(pairs.len(), resp3, out);
                for (key, value) in pairs {
                    key.write(resp3, format, out);
                    value.write(resp3, format, out);
                }
            }
            Self::Outcome(outcome) => write_outcome(*outcome, resp3, format, out),
            Self::Outcomes(outcomes) => write_outcomes(outcomes, out),
            Self::Numbers(numbers) => {
                write_header(b'*', numbers.len(), out);
                numbers.iter().for_each(|number| write_number(*number, out));
            }
            Self::States(states) => {
                write_map_header(states.len(), resp3, out);
                for (number, state) in states {
                    write_number(*number, out);
                    write_state(*state, format, out);
                }
            }
            Self::State(state) => write_state(*state, format, out),
        }
    }
}

fn write_outcome(outcome: PoolOutcome, resp3: bool, format: ReplyFormat, out: &mut BytesMut) {
    use PoolRefusal::{AllBusy, AllDown, AllInQuarantine, Empty, Full, TooLong};
    match (outcome, format) {
        (PoolOutcome::Done(_), ReplyFormat::LegacyText) => write_bulk(b"1", out),
        (PoolOutcome::Done(_), _) => out.put_slice(b":1\r\n"),
        (PoolOutcome::Acquired { number, ticket }, ReplyFormat::WithTicket) => {
            out.put_slice(b"*2\r\n");
            write_number(number, out);
            write_integer(i64::try_from(ticket.0).unwrap_or(i64::MAX), out);
        }
        (PoolOutcome::Acquired { number, .. }, _) => write_number(number, out),
        // The legacy script had no such refusals, and its clients would misread them.
        (PoolOutcome::Refused(reason @ (Full | TooLong)), _) => {
            write_line(b'-', &format!("FAIL {reason}"), out);
        }
        (PoolOutcome::Refused(_), ReplyFormat::LegacyCall) => RespReply::Null.write(resp3, format, out),
        (PoolOutcome::Refused(_), ReplyFormat::LegacyText) => write_bulk(b"0", out),
        (PoolOutcome::Refused(_), ReplyFormat::LegacyInteger) => out.put_slice(b":0\r\n"),
        (PoolOutcome::Refused(reason @ (Empty | AllDown | AllBusy { .. } | AllInQuarantine { .. })), _) => {
            write_line(b'-', &format!("NONUMBER {reason}"), out);
        }
        (PoolOutcome::Refused(reason), _) => write_line(b'-', &format!("FAIL {reason}"), out),
    }
}

/// The count if all succeeded; an error otherwise, since clients may ignore the count.
fn write_outcomes(outcomes: &[PoolOutcome], out: &mut BytesMut) {
    let refusal = outcomes.iter().find_map(|outcome| match outcome {
        PoolOutcome::Refused(reason) => Some(reason),
        _ => None,
    });
    let done = outcomes.iter().filter(|outcome| !matches!(outcome, PoolOutcome::Refused(_))).count();
    match refusal {
        None => write_header(b':', done, out),
        Some(reason) => {
            write_line(b'-', &format!("FAIL {done} of {} succeeded; {reason}", outcomes.len()), out);
        }
    }
}

/// A legacy state is JSON with two numbers: `callstate` is 1 for busy, `regstate` is 1 for up.
fn write_state(state: NumberState, format: ReplyFormat, out: &mut BytesMut) {
    let octets: &[u8] = match state {
        _ if format != ReplyFormat::LegacyText => state.as_str().as_bytes(),
        NumberState::IdleUp => br#"{"callstate":0,"regstate":1}"#,
        NumberState::IdleDown => br#"{"callstate":0,"regstate":0}"#,
        NumberState::BusyUp => br#"{"callstate":1,"regstate":1}"#,
        NumberState::BusyDown => br#"{"callstate":1,"regstate":0}"#,
    };
    write_bulk(octets, out);
}

fn write_number(number: PoolNumber, out: &mut BytesMut) {
    write_bulk(number.as_text(&mut [0; PoolNumber::MAX_LEN]), out);
}

fn write_map_header(pairs: usize, resp3: bool, out: &mut BytesMut) {
    if resp3 { write_header(b'%', pairs, out) } else { write_header(b'*', pairs * 2, out) }
}

/// As in Redis, line breaks are replaced by spaces.
fn write_line(kind: u8, text: &str, out: &mut BytesMut) {
    out.put_u8(kind);
    out.extend(text.bytes().map(|octet| if octet == b'\r' || octet == b'\n' { b' ' } else { octet }));
    out.put_slice(b"\r\n");
}

fn write_integer(number: i64, out: &mut BytesMut) {
    match usize::try_from(number) {
        Ok(number) => write_header(b':', number, out),
        Err(_) => write_line(b':', &number.to_string(), out),
    }
}

fn write_bulk(octets: &[u8], out: &mut BytesMut) {
    write_header(b'$', octets.len(), out);
    out.put_slice(octets);
    out.put_slice(b"\r\n");
}

/// Writes type and count without the formatting machinery, since every value has one.
fn write_header(kind: u8, count: usize, out: &mut BytesMut) {
    let mut digits = [0; 24];
    let mut at = digits.len();
    let mut remaining = count;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (remaining % 10) as u8;
        at -= 1;
        remaining /= 10;
        if remaining == 0 {
            break;
        }
    }
    out.put_u8(kind);
    out.put_slice(digits.get(at..).unwrap_or_default());
    out.put_slice(b"\r\n");
}
