//! The client protocol of NATS: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

use std::io::Write as _;

/// Maximum length of a line or a payload. A server that sends a longer one is disconnected.
pub(crate) const MAX_OCTETS: usize = 1 << 20;

/// A message that a server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatsServerMessage {
    /// `INFO`: the properties of the server, as JSON.
    Info(Vec<u8>),
    /// `PING`: the client must answer `PONG`.
    Ping,
    /// `PONG`: the answer to a `PING`.
    Pong,
    /// `+OK`.
    Ok,
    /// `-ERR` with the server's text.
    Error(String),
    /// `MSG` or `HMSG`: a message for one of our subscriptions.
    Message {
        /// The subject.
        subject: String,
        /// The status line and the header fields; empty for `MSG`.
        headers: Vec<u8>,
        /// The payload.
        payload: Vec<u8>,
    },
}

/// The octets are not NATS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak the protocol of NATS: {0}")]
pub struct NatsProtocolError(&'static str);

/// Decodes the first message of `input`. Returns the message and its length in octets; `None` if it is not complete.
///
/// # Errors
/// The octets are not NATS, or a line or payload exceeds 1 MiB.
pub fn decode_nats_message(input: &[u8]) -> Result<Option<(NatsServerMessage, usize)>, NatsProtocolError> {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else {
        let too_long = NatsProtocolError("a line is too long");
        return if input.len() > MAX_OCTETS { Err(too_long) } else { Ok(None) };
    };
    let (line, used) = (input.get(..end).unwrap_or_default(), end + 2);
    let (name, rest) = match line.iter().position(|octet| matches!(octet, b' ' | b'\t')) {
        Some(at) => line.split_at(at),
        None => (line, &[][..]),
    };
    let rest = rest.trim_ascii();
    let message = match name.to_ascii_uppercase().as_slice() {
        b"INFO" => NatsServerMessage::Info(rest.to_vec()),
        b"PING" => NatsServerMessage::Ping,
        b"PONG" => NatsServerMessage::Pong,
        b"+OK" => NatsServerMessage::Ok,
        b"-ERR" => NatsServerMessage::Error(String::from_utf8_lossy(rest).trim_matches('\'').to_owned()),
        b"MSG" => return message(rest, input.get(used..).unwrap_or_default(), used, false),
        b"HMSG" => return message(rest, input.get(used..).unwrap_or_default(), used, true),
        _ => return Err(NatsProtocolError("an unknown message")),
    };
    Ok(Some((message, used)))
}

/// Decodes `SUBJECT SID [REPLY] [HEADER-OCTETS] OCTETS` and the payload.
fn message(
    fields: &[u8],
    rest: &[u8],
    used: usize,
    has_headers: bool,
) -> Result<Option<(NatsServerMessage, usize)>, NatsProtocolError> {
    const WRONG: NatsProtocolError = NatsProtocolError("a message with wrong fields");
    let fields = std::str::from_utf8(fields).map_err(|_| WRONG)?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let subject = *fields.first().ok_or(WRONG)?;
    let numbers = if has_headers { 2 } else { 1 };
    if !(2 + numbers..=3 + numbers).contains(&fields.len()) {
        return Err(WRONG);
    }
    let number = |from_end: usize| -> Result<usize, NatsProtocolError> {
        let text = fields.get(fields.len() - from_end).ok_or(WRONG)?;
        text.parse().ok().filter(|octets| *octets <= MAX_OCTETS).ok_or(WRONG)
    };
    let total = number(1)?;
    let header = if has_headers { number(2)? } else { 0 };
    if header > total {
        return Err(WRONG);
    }
    let Some(content) = rest.get(..total + 2) else { return Ok(None) };
    let (Some(content), true) = (content.get(..total), content.ends_with(b"\r\n")) else { return Err(WRONG) };
    let (headers, payload) = content.split_at(header);
    let message = NatsServerMessage::Message {
        subject: subject.to_owned(),
        headers: headers.to_vec(),
        payload: payload.to_vec(),
    };
    Ok(Some((message, used + total + 2)))
}

/// Appends a message with the id by which JetStream recognises repetitions.
pub(crate) fn encode_publish(out: &mut Vec<u8>, (subject, reply): (&str, &str), id: &str, payload: &[u8]) {
    let headers = format!(
        "NATS/1.0\r\nNats-Msg-Id: {id}\r\nContent-Type: application/cloudevents+json; charset=utf-8\r\n\r\n"
    );
    let total = headers.len() + payload.len();
    // Writing into memory does not fail.
    let _ = write!(out, "HPUB {subject} {reply} {} {total}\r\n{headers}", headers.len());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(input: &[u8]) -> NatsServerMessage {
        let (message, used) = decode_nats_message(input).unwrap().unwrap();
        assert_eq!(used, input.len());
        for cut in 0..input.len() {
            assert_eq!(decode_nats_message(&input[..cut]), Ok(None), "{cut}");
        }
        message
    }

    #[test]
    fn messages_of_a_server() {
        assert_eq!(
            one(b"INFO {\"headers\":true}\r\n"),
            NatsServerMessage::Info(b"{\"headers\":true}".to_vec())
        );
        assert_eq!(
            [one(b"PING\r\n"), one(b"pong\r\n"), one(b"+OK\r\n")],
            [NatsServerMessage::Ping, NatsServerMessage::Pong, NatsServerMessage::Ok]
        );
        let error = "Authorization Violation".to_owned();
        assert_eq!(one(b"-ERR 'Authorization Violation'\r\n"), NatsServerMessage::Error(error));
        let message = |headers: &[u8], payload: &[u8]| NatsServerMessage::Message {
            subject: "_INBOX.7.1".to_owned(),
            headers: headers.to_vec(),
            payload: payload.to_vec(),
        };
        assert_eq!(one(b"MSG _INBOX.7.1 1 3\r\n{}\n\r\n"), message(b"", b"{}\n"));
        assert_eq!(one(b"MSG _INBOX.7.1 1 reply.to 0\r\n\r\n"), message(b"", b""));
        let answer = b"HMSG _INBOX.7.1 1 16 18\r\nNATS/1.0 503\r\n\r\nab\r\n";
        assert_eq!(one(answer), message(b"NATS/1.0 503\r\n\r\n", b"ab"));
    }

    #[test]
    fn protocol_violations_are_refused() {
        for input in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"MSG a\r\n",
            b"MSG a 1 x\r\n",
            b"MSG a 1 99999999999\r\n",
            b"MSG a 1 r s 1\r\na\r\n",
            b"HMSG a 1 5 4\r\nabcd\r\n",
            b"MSG a 1 2\r\nabcd",
        ] {
            assert!(decode_nats_message(input).is_err(), "{}", String::from_utf8_lossy(input));
        }
        assert!(decode_nats_message(&vec![b'a'; MAX_OCTETS + 1]).is_err());
    }

    #[test]
    fn an_event_has_its_id_in_a_header() {
        let mut out = Vec::new();
        encode_publish(&mut out, ("events.ended", "_INBOX.7.1"), "1-ended", b"{}");
        let text = String::from_utf8(out).unwrap();
        let (first, rest) = text.split_once("\r\n").unwrap();
        let headers = rest.find("\r\n\r\n").unwrap() + 4;
        assert_eq!(first, format!("HPUB events.ended _INBOX.7.1 {headers} {}", headers + 2));
        assert!(rest.contains("\r\nNats-Msg-Id: 1-ended\r\n") && rest.ends_with("\r\n\r\n{}\r\n"), "{rest}");
    }

    proptest! {
        #[test]
        fn no_octets_make_the_decoder_panic(input in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode_nats_message(&input);
            let _ = decode_nats_message(&[b"HMSG a 1 ", &input[..]].concat());
        }
    }
}
