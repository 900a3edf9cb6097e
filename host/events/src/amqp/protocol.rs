//! Frames of AMQP 0.9.1, as far as a publisher needs them: <https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf>.
//!
//! | octets | contents |
//! |---|---|
//! | 0 | type: 1 method, 2 content header, 3 content body, 8 heartbeat |
//! | 1–2 | channel; 0 for the connection |
//! | 3–6 | length of the payload |
//! | 7– | payload |
//! | last | 0xCE |
//!
//! A method begins with its class id and its method id, 2 octets each. Numbers are big-endian.

/// The octets that a client sends before its first frame.
pub(crate) const PROTOCOL_HEADER: &[u8] = b"AMQP\0\0\x09\x01";

/// Maximum payload that we negotiate. A frame with a longer one ends the connection.
pub(crate) const MAX_OCTETS: usize = 128 * 1024;

/// Octets of a frame around its payload: type, channel, length and end.
pub(crate) const FRAME_OVERHEAD: usize = 8;

/// The channel on which events are published.
pub(crate) const CHANNEL: u16 = 1;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const FRAME_END: u8 = 0xCE;

const CONNECTION_START: (u16, u16) = (10, 10);
const CONNECTION_START_OK: (u16, u16) = (10, 11);
const CONNECTION_TUNE: (u16, u16) = (10, 30);
const CONNECTION_TUNE_OK: (u16, u16) = (10, 31);
const CONNECTION_OPEN: (u16, u16) = (10, 40);
const CONNECTION_OPEN_OK: (u16, u16) = (10, 41);
const CONNECTION_CLOSE: (u16, u16) = (10, 50);
const CHANNEL_OPEN: (u16, u16) = (20, 10);
const CHANNEL_OPEN_OK: (u16, u16) = (20, 11);
const CHANNEL_CLOSE: (u16, u16) = (20, 40);
const BASIC_PUBLISH: (u16, u16) = (60, 40);
const BASIC_RETURN: (u16, u16) = (60, 50);
const BASIC_ACK: (u16, u16) = (60, 80);
const BASIC_NACK: (u16, u16) = (60, 120);
const CONFIRM_SELECT: (u16, u16) = (85, 10);
const CONFIRM_SELECT_OK: (u16, u16) = (85, 11);

/// Properties of a content: content-type, delivery-mode, message-id.
const PROPERTY_FLAGS: u16 = 1 << 15 | 1 << 12 | 1 << 7;
/// The broker keeps the message over a restart, if its queue is durable.
const PERSISTENT: u8 = 2;

/// A frame that a server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AmqpServerFrame {
    /// `connection.start`: the SASL mechanisms that the server supports.
    Start {
        /// The mechanisms, separated by blanks.
        mechanisms: String,
    },
    /// `connection.tune`: the limits that the server proposes.
    Tune {
        /// Maximum length of a frame in octets; 0 for any length.
        frame_max: u32,
    },
    /// `connection.open-ok`.
    Opened,
    /// `channel.open-ok`.
    ChannelOpened,
    /// `confirm.select-ok`: messages are confirmed from now on.
    ConfirmsSelected,
    /// `connection.close` or `channel.close`, with the reason.
    Closed {
        /// The reply code, for example 404.
        code: u16,
        /// The reply text.
        text: String,
    },
    /// `basic.return`: no queue takes the message. Its content and its confirmation follow.
    Returned,
    /// `basic.ack` or `basic.nack`.
    Confirmed {
        /// The delivery tag: the number of the message on its channel, from 1.
        tag: u64,
        /// Whether it confirms all earlier messages, too.
        is_multiple: bool,
        /// Whether the broker accepted the message: true for `ack`, false for `nack`.
        is_accepted: bool,
    },
    /// Anything else: heartbeats, the content of returned messages, other methods.
    Other,
}

/// The octets are not AMQP 0.9.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak AMQP 0.9.1: {0}")]
pub struct AmqpProtocolError(&'static str);

/// Decodes the first frame of `input`. Returns the frame and its length in octets; `None` if it is not complete.
///
/// # Errors
/// The octets are not AMQP 0.9.1, or the payload exceeds 128 KiB.
pub fn decode_amqp_frame(input: &[u8]) -> Result<Option<(AmqpServerFrame, usize)>, AmqpProtocolError> {
    if input.starts_with(b"AMQP") {
        return Err(AmqpProtocolError("it takes another version only"));
    }
    let Some(kind) = input.first() else { return Ok(None) };
    if !matches!(*kind, METHOD | HEADER | BODY | HEARTBEAT) {
        return Err(AmqpProtocolError("an unknown type of frame"));
    }
    let mut header = Fields(input.get(1..).unwrap_or_default());
    let (Some(_channel), Some(length)) = (header.u16(), header.u32()) else { return Ok(None) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_OCTETS {
        return Err(AmqpProtocolError("a frame is too long"));
    }
    let (Some(payload), Some(end)) = (header.0.get(..length), header.0.get(length)) else {
        return Ok(None);
    };
    if *end != FRAME_END {
        return Err(AmqpProtocolError("a frame has no end"));
    }
    let frame = match *kind {
        METHOD => method(payload).ok_or(AmqpProtocolError("a method with wrong fields"))?,
        _ => AmqpServerFrame::Other,
    };
    Ok(Some((frame, length + FRAME_OVERHEAD)))
}

fn method(payload: &[u8]) -> Option<AmqpServerFrame> {
    let mut fields = Fields(payload);
    let frame = match (fields.u16()?, fields.u16()?) {
        CONNECTION_START => {
            fields.take(2)?;
            let properties = fields.u32()?;
            fields.take(properties.try_into().ok()?)?;
            AmqpServerFrame::Start { mechanisms: fields.long_text()? }
        }
        CONNECTION_TUNE => {
            fields.take(2)?;
            AmqpServerFrame::Tune { frame_max: fields.u32()? }
        }
        CONNECTION_OPEN_OK => AmqpServerFrame::Opened,
        CHANNEL_OPEN_OK => AmqpServerFrame::ChannelOpened,
        CONFIRM_SELECT_OK => AmqpServerFrame::ConfirmsSelected,
        CONNECTION_CLOSE | CHANNEL_CLOSE => {
            AmqpServerFrame::Closed { code: fields.u16()?, text: fields.short_text()? }
        }
        BASIC_RETURN => AmqpServerFrame::Returned,
        found @ (BASIC_ACK | BASIC_NACK) => AmqpServerFrame::Confirmed {
            tag: fields.u64()?,
            is_multiple: fields.u8()? & 1 == 1,
            is_accepted: found == BASIC_ACK,
        },
        _ => AmqpServerFrame::Other,
    };
    Some(frame)
}

/// The part of a payload that is not decoded yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, octets: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(octets)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn short_text(&mut self) -> Option<String> {
        let length = self.u8()?;
        self.take(length.into()).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    fn long_text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(length.try_into().ok()?).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Appends a frame with the payload that `write` appends.
fn frame(out: &mut Vec<u8>, kind: u8, channel: u16, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    out.push(FRAME_END);
}

fn method_frame(
    out: &mut Vec<u8>,
    channel: u16,
    (class, number): (u16, u16),
    write: impl FnOnce(&mut Vec<u8>),
) {
    frame(out, METHOD, channel, |out| {
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        write(out);
    });
}

/// Appends a short string: at most 255 octets; a longer text is cut off.
fn short_text(out: &mut Vec<u8>, text: &str) {
    let octets = text.as_bytes();
    let octets = octets.get(..usize::from(u8::MAX)).unwrap_or(octets);
    out.push(u8::try_from(octets.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(octets);
}

fn long_text(out: &mut Vec<u8>, octets: &[u8]) {
    out.extend_from_slice(&u32::try_from(octets.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(octets);
}

/// `connection.start-ok` with user and password. It announces that we understand `basic.nack` and the close reason of a
/// refused login.
pub(crate) fn encode_start_ok(out: &mut Vec<u8>, (user, password): (&str, &str), product: &str) {
    let mut capabilities = Vec::new();
    for name in ["publisher_confirms", "basic.nack", "authentication_failure_close"] {
        short_text(&mut capabilities, name);
        capabilities.extend_from_slice(&[b't', 1]);
    }
    let mut properties = Vec::new();
    short_text(&mut properties, "product");
    properties.push(b'S');
    long_text(&mut properties, product.as_bytes());
    short_text(&mut properties, "capabilities");
    properties.push(b'F');
    long_text(&mut properties, &capabilities);
    method_frame(out, 0, CONNECTION_START_OK, |out| {
        long_text(out, &properties);
        short_text(out, "PLAIN");
        long_text(out, format!("\0{user}\0{password}").as_bytes());
        short_text(out, "en_US");
    });
}

/// `connection.tune-ok` without heartbeats, and `connection.open`.
pub(crate) fn encode_open(out: &mut Vec<u8>, frame_max: usize, virtual_host: &str) {
    method_frame(out, 0, CONNECTION_TUNE_OK, |out| {
        out.extend_from_slice(&CHANNEL.to_be_bytes());
        out.extend_from_slice(&u32::try_from(frame_max).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(&0_u16.to_be_bytes());
    });
    method_frame(out, 0, CONNECTION_OPEN, |out| {
        short_text(out, virtual_host);
        out.extend_from_slice(&[0, 0]);
    });
}

/// `channel.open`.
pub(crate) fn encode_channel_open(out: &mut Vec<u8>) {
    method_frame(out, CHANNEL, CHANNEL_OPEN, |out| out.push(0));
}

/// `confirm.select`.
pub(crate) fn encode_confirm_select(out: &mut Vec<u8>) {
    method_frame(out, CHANNEL, CONFIRM_SELECT, |out| out.push(0));
}

/// `basic.publish` of a persistent message with this id. The flag `mandatory` makes the broker return it if no queue takes
/// it.
pub(crate) fn encode_publish(
    out: &mut Vec<u8>,
    (exchange, routing_key): (&str, &str),
    id: &str,
    payload: &[u8],
    frame_max: usize,
) {
    const MANDATORY: u8 = 1;
    method_frame(out, CHANNEL, BASIC_PUBLISH, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(out, exchange);
        short_text(out, routing_key);
        out.push(MANDATORY);
    });
    frame(out, HEADER, CHANNEL, |out| {
        out.extend_from_slice(&BASIC_PUBLISH.0.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        out.extend_from_slice(&PROPERTY_FLAGS.to_be_bytes());
        short_text(out, "application/cloudevents+json; charset=utf-8");
        out.push(PERSISTENT);
        short_text(out, id);
    });
    for part in payload.chunks(frame_max.saturating_sub(FRAME_OVERHEAD).max(1)) {
        frame(out, BODY, CHANNEL, |out| out.extend_from_slice(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server_method(method: (u16, u16), fields: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        method_frame(&mut out, 1, method, |out| out.extend_from_slice(fields));
        out
    }

    fn one(input: &[u8]) -> AmqpServerFrame {
        let (found, used) = decode_amqp_frame(input).unwrap().unwrap();
        assert_eq!(used, input.len());
        for cut in 0..input.len() {
            assert_eq!(decode_amqp_frame(&input[..cut]), Ok(None), "{cut}");
        }
        found
    }

    #[test]
    fn methods_of_a_server() {
        let start = b"\0\x09\0\0\0\x03abc\0\0\0\x0ePLAIN AMQPLAIN\0\0\0\x05en_US";
        let start = one(&server_method(CONNECTION_START, start));
        assert_eq!(start, AmqpServerFrame::Start { mechanisms: "PLAIN AMQPLAIN".to_owned() });
        let tune = one(&server_method(CONNECTION_TUNE, &[7, 255, 0, 2, 0, 0, 0, 60]));
        assert_eq!(tune, AmqpServerFrame::Tune { frame_max: 131_072 });
        let closed = one(&server_method(CHANNEL_CLOSE, b"\x01\x94\x09NOT_FOUND\0\0\0\0"));
        assert_eq!(closed, AmqpServerFrame::Closed { code: 404, text: "NOT_FOUND".to_owned() });
        let returned = one(&server_method(BASIC_RETURN, b"\x01\x38\x08NO_ROUTE\x01x\x01k"));
        assert_eq!(returned, AmqpServerFrame::Returned);
        for (method, is_accepted) in [(BASIC_ACK, true), (BASIC_NACK, false)] {
            let confirmed = one(&server_method(method, &[0, 0, 0, 0, 0, 0, 0, 7, 1]));
            assert_eq!(confirmed, AmqpServerFrame::Confirmed { tag: 7, is_multiple: true, is_accepted });
        }
        assert_eq!(one(b"\x08\0\0\0\0\0\0\xce"), AmqpServerFrame::Other);
    }

    #[test]
    fn protocol_violations_are_refused() {
        for input in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"AMQP\0\0\x09\x01",
            b"\x01\0\0\0\xff\xff\xff",
            b"\x08\0\0\0\0\0\0\0",
            b"\x01\0\0\0\0\0\x01\0\xce",
            &server_method(BASIC_ACK, &[0; 8]),
            &server_method(CONNECTION_START, &[0, 9, 0, 0, 0, 9]),
        ] {
            assert!(decode_amqp_frame(input).is_err(), "{input:02x?}");
        }
    }

    #[test]
    fn a_published_event_has_its_id_and_its_octets() {
        let mut out = Vec::new();
        encode_publish(&mut out, ("events", "switchyard.ended"), "1-ended", &[b'x'; 25], 18);
        let mut frames = Vec::new();
        let mut rest = out.as_slice();
        while let Some((_, used)) = decode_amqp_frame(rest).unwrap() {
            frames.push(&rest[..used]);
            rest = &rest[used..];
        }
        let kinds: Vec<u8> = frames.iter().map(|frame| frame[0]).collect();
        assert_eq!(kinds, [METHOD, HEADER, BODY, BODY, BODY]);
        assert!(frames[0].ends_with(b"\x06events\x10switchyard.ended\x01\xce"));
        assert!(frames[1].ends_with(b"charset=utf-8\x02\x071-ended\xce"));
        let body: Vec<u8> = frames[2..].iter().flat_map(|frame| frame[7..frame.len() - 1].to_vec()).collect();
        assert_eq!(body, [b'x'; 25]);
    }

    proptest! {
        #[test]
        fn no_octets_make_the_decoder_panic(
            input in proptest::collection::vec(any::<u8>(), 0..80),
            method in prop::sample::select(vec![CONNECTION_START, CONNECTION_CLOSE, BASIC_RETURN, BASIC_NACK]),
        ) {
            let _ = decode_amqp_frame(&input);
            let _ = decode_amqp_frame(&server_method(method, &input));
        }
    }
}
