use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use model::{NumberState, PoolNumber, PoolOutcome, PoolRefusal};

/// An answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A short word, such as `OK`.
    Status(Cow<'static, str>),
    /// An error: a word in capitals, then a text for people.
    Error(Cow<'static, str>),
    /// A number.
    Integer(i64),
    /// Octets.
    Text(Bytes),
    /// A text for people.
    Prose(Bytes),
    /// Nothing.
    Null,
    /// A list.
    Array(Vec<Reply>),
    /// Pairs, in this order; to an older client a flat list.
    Map(Vec<(Reply, Reply)>),
    /// What became of a `Request::Operation`.
    Outcome(PoolOutcome),
    /// What became of each of a `Request::Operations`.
    Outcomes(Vec<PoolOutcome>),
    /// A list of numbers.
    Numbers(Vec<PoolNumber>),
    /// A number's state.
    State(NumberState),
    /// A map of numbers and their states.
    States(Vec<(PoolNumber, NumberState)>),
}

/// How an outcome is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As the older system did: what became of a change is the text `1` or `0`, and a state is JSON.
    Older,
    /// The same with an integer.
    Change,
    /// As the older script returned what became of a `call`.
    Call,
    /// As our own commands do: with the reason.
    Plain,
    /// The same, and a number that is given comes with its ticket.
    Ticket,
}

impl Reply {
    /// `OK`.
    #[must_use]
    pub fn ok() -> Self {
        Self::Status(Cow::Borrowed("OK"))
    }

    /// A copy of a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// An error.
    #[must_use]
    pub fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// Writes itself out. By hand and not as the parser's tree of frames: no copy of the answer is made, and maps keep their
    /// order.
    pub(crate) fn write(&self, three: bool, manner: Manner, out: &mut BytesMut) {
        match self {
            Self::Status(word) => line(b'+', word, out),
            Self::Error(text) => line(b'-', text, out),
            Self::Integer(number) => integer(*number, out),
            Self::Text(octets) => bulk(octets, out),
            Self::Prose(octets) if three => {
                head(b'=', octets.len() + 4, out);
                out.put_slice(b"txt:");
                out.put_slice(octets);
                out.put_slice(b"\r\n");
            }
            Self::Prose(octets) => bulk(octets, out),
            Self::Null => out.put_slice(if three { b"_\r\n" } else { b"$-1\r\n" }),
            Self::Array(items) => {
                head(b'*', items.len(), out);
                for item in items {
                    item.write(three, manner, out);
                }
            }
            Self::Map(pairs) => {
                map(pairs.len(), three, out);
                for (key, value) in pairs {
                    key.write(three, manner, out);
                    value.write(three, manner, out);
                }
            }
            Self::Outcome(outcome) => write_outcome(*outcome, three, manner, out),
            Self::Outcomes(outcomes) => write_outcomes(outcomes, out),
            Self::Numbers(numbers) => {
                head(b'*', numbers.len(), out);
                numbers.iter().for_each(|number| write_number(*number, out));
            }
            Self::States(states) => {
                map(states.len(), three, out);
                for (number, state) in states {
                    write_number(*number, out);
                    write_state(*state, manner, out);
                }
            }
            Self::State(state) => write_state(*state, manner, out),
        }
    }
}

fn write_outcome(outcome: PoolOutcome, three: bool, manner: Manner, out: &mut BytesMut) {
    use PoolRefusal::{AllBusy, AllDown, AllResting, Empty, Full, TooLong};
    match (outcome, manner) {
        (PoolOutcome::Done(_), Manner::Older) => bulk(b"1", out),
        (PoolOutcome::Done(_), _) => out.put_slice(b":1\r\n"),
        (PoolOutcome::Given { number, ticket }, Manner::Ticket) => {
            out.put_slice(b"*2\r\n");
            write_number(number, out);
            integer(i64::try_from(ticket.0).unwrap_or(i64::MAX), out);
        }
        (PoolOutcome::Given { number, .. }, _) => write_number(number, out),
        // What the older script could not meet, and its clients would take for something else.
        (PoolOutcome::Refused(why @ (Full | TooLong)), _) => line(b'-', &format!("FAIL {why}"), out),
        (PoolOutcome::Refused(_), Manner::Call) => Reply::Null.write(three, manner, out),
        (PoolOutcome::Refused(_), Manner::Older) => bulk(b"0", out),
        (PoolOutcome::Refused(_), Manner::Change) => out.put_slice(b":0\r\n"),
        (PoolOutcome::Refused(why @ (Empty | AllDown | AllBusy { .. } | AllResting { .. })), _) => {
            line(b'-', &format!("NONUMBER {why}"), out);
        }
        (PoolOutcome::Refused(why), _) => line(b'-', &format!("FAIL {why}"), out),
    }
}

/// How many were done; an error if one was not, since a count alone would not say so to those who do not look.
fn write_outcomes(outcomes: &[PoolOutcome], out: &mut BytesMut) {
    let refusal = outcomes.iter().find_map(|outcome| match outcome {
        PoolOutcome::Refused(why) => Some(why),
        _ => None,
    });
    let done = outcomes.iter().filter(|outcome| !matches!(outcome, PoolOutcome::Refused(_))).count();
    match refusal {
        None => head(b':', done, out),
        Some(why) => {
            line(b'-', &format!("FAIL {done} of {} are done; of the others, {why}", outcomes.len()), out);
        }
    }
}

/// In the older system's hash a state is JSON with two numbers: `callstate` is 1 for busy, `regstate` is 1 for up.
fn write_state(state: NumberState, manner: Manner, out: &mut BytesMut) {
    let octets: &[u8] = match state {
        _ if manner != Manner::Older => state.as_str().as_bytes(),
        NumberState::IdleUp => br#"{"callstate":0,"regstate":1}"#,
        NumberState::IdleDown => br#"{"callstate":0,"regstate":0}"#,
        NumberState::BusyUp => br#"{"callstate":1,"regstate":1}"#,
        NumberState::BusyDown => br#"{"callstate":1,"regstate":0}"#,
    };
    bulk(octets, out);
}

fn write_number(number: PoolNumber, out: &mut BytesMut) {
    bulk(number.as_text(&mut [0; PoolNumber::LONGEST]), out);
}

fn map(pairs: usize, three: bool, out: &mut BytesMut) {
    if three { head(b'%', pairs, out) } else { head(b'*', pairs * 2, out) }
}

/// A line may hold no line end; Redis writes spaces instead.
fn line(kind: u8, text: &str, out: &mut BytesMut) {
    out.put_u8(kind);
    out.extend(text.bytes().map(|octet| if octet == b'\r' || octet == b'\n' { b' ' } else { octet }));
    out.put_slice(b"\r\n");
}

fn integer(number: i64, out: &mut BytesMut) {
    match usize::try_from(number) {
        Ok(number) => head(b':', number, out),
        Err(_) => line(b':', &number.to_string(), out),
    }
}

fn bulk(octets: &[u8], out: &mut BytesMut) {
    head(b'$', octets.len(), out);
    out.put_slice(octets);
    out.put_slice(b"\r\n");
}

/// A kind and a count. Made without the formatting machinery: there is one in front of everything.
fn head(kind: u8, count: usize, out: &mut BytesMut) {
    let mut digits = [0; 24];
    let mut at = digits.len();
    let mut left = count;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        at -= 1;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.put_u8(kind);
    out.put_slice(digits.get(at..).unwrap_or_default());
    out.put_slice(b"\r\n");
}
