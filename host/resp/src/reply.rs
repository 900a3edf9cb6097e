use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What became of a `Request::Pool`.
    Pool(Outcome),
}

/// What became of an event of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is so, also if it was so before.
    Done,
    /// A `call` has this number.
    Number(String),
    /// The state table says "fail" or "error"; why.
    Failed(String),
    /// A `call` without a number found none.
    NoNumber {
        /// Why: the pool is empty, all are busy, all are down.
        why: String,
        /// Milliseconds until the next lease ends, if one does.
        next_ms: Option<u64>,
    },
}

/// How an [`Outcome`] is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As the older script returned it.
    Script,
    /// As our own commands do: with the reason.
    Plain,
}

impl Reply {
    pub(crate) fn ok() -> Self {
        Self::Status(Cow::Borrowed("OK"))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// Writes itself out. By hand and not as the parser's tree of frames: no copy of the answer is made, and maps keep their
    /// order.
    pub(crate) fn write(&self, three: bool, manner: Manner, out: &mut BytesMut) {
        match self {
            Self::Status(word) => line(b'+', word, out),
            Self::Error(text) => line(b'-', text, out),
            Self::Integer(number) => line(b':', &number.to_string(), out),
            Self::Text(octets) => bulk(octets, out),
            Self::Prose(octets) if three => {
                line(b'=', &(octets.len() + 4).to_string(), out);
                out.put_slice(b"txt:");
                out.put_slice(octets);
                out.put_slice(b"\r\n");
            }
            Self::Prose(octets) => bulk(octets, out),
            Self::Null => out.put_slice(if three { b"_\r\n" } else { b"$-1\r\n" }),
            Self::Array(items) => {
                line(b'*', &items.len().to_string(), out);
                for item in items {
                    item.write(three, manner, out);
                }
            }
            Self::Map(pairs) => {
                if three {
                    line(b'%', &pairs.len().to_string(), out);
                } else {
                    line(b'*', &(pairs.len() * 2).to_string(), out);
                }
                for (key, value) in pairs {
                    key.write(three, manner, out);
                    value.write(three, manner, out);
                }
            }
            Self::Pool(outcome) => outcome.write(three, manner, out),
        }
    }
}

impl Outcome {
    fn write(&self, three: bool, manner: Manner, out: &mut BytesMut) {
        match (self, manner) {
            (Self::Number(number), _) => bulk(number.as_bytes(), out),
            (Self::Done, _) => Reply::Integer(1).write(three, manner, out),
            // A failed `call` never comes here as `Failed` in this manner: the session has made it `NoNumber`.
            (Self::Failed(_), Manner::Script) => Reply::Integer(0).write(three, manner, out),
            (Self::NoNumber { .. }, Manner::Script) => Reply::Null.write(three, manner, out),
            (Self::Failed(why), Manner::Plain) => line(b'-', &format!("FAIL {why}"), out),
            (Self::NoNumber { why, next_ms: None }, Manner::Plain) => {
                line(b'-', &format!("NONUMBER {why}"), out);
            }
            (Self::NoNumber { why, next_ms: Some(next) }, Manner::Plain) => {
                line(b'-', &format!("NONUMBER {why}; the next lease ends in {next} ms"), out);
            }
        }
    }
}

/// A line may hold no line end; Redis writes spaces instead.
fn line(kind: u8, text: &str, out: &mut BytesMut) {
    out.put_u8(kind);
    out.extend(text.bytes().map(|octet| if octet == b'\r' || octet == b'\n' { b' ' } else { octet }));
    out.put_slice(b"\r\n");
}

fn bulk(octets: &[u8], out: &mut BytesMut) {
    line(b'$', &octets.len().to_string(), out);
    out.put_slice(octets);
    out.put_slice(b"\r\n");
}
