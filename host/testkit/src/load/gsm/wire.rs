//! The subset of IPA and GSUP that the simulated nodes need, written independently of the appliance's codec.

/// Stream identifiers.
pub(crate) const CCM: u8 = 0xfe;
pub(crate) const OSMOCOM: u8 = 0xee;
/// Protocol extensions of the Osmocom stream.
pub(crate) const GSUP: u8 = 5;
pub(crate) const CTRL: u8 = 0;

/// Messages of the connection management protocol.
pub(crate) const PING: u8 = 0;
pub(crate) const PONG: u8 = 1;
pub(crate) const ID_GET: u8 = 4;
pub(crate) const ID_RESPONSE: u8 = 5;
pub(crate) const ID_ACK: u8 = 6;

/// Message types.
pub(crate) const UPDATE_LOCATION: u8 = 0x04;
pub(crate) const SEND_AUTH_INFO: u8 = 0x08;
pub(crate) const PURGE: u8 = 0x0c;
pub(crate) const INSERT_DATA: u8 = 0x10;
pub(crate) const MO_FORWARD: u8 = 0x24;
pub(crate) const MT_FORWARD: u8 = 0x28;
pub(crate) const READY: u8 = 0x2c;
pub(crate) const ROUTING_ERROR: u8 = 0x4e;
/// Added to a request's type for its error and its result.
pub(crate) const ERROR: u8 = 1;
pub(crate) const RESULT: u8 = 2;

/// Information elements.
pub(crate) const IMSI: u8 = 0x01;
pub(crate) const CAUSE: u8 = 0x02;
pub(crate) const AUTH_TUPLE: u8 = 0x03;
pub(crate) const MSISDN: u8 = 0x08;
pub(crate) const CLASS: u8 = 0x0a;
pub(crate) const CN_DOMAIN: u8 = 0x28;
pub(crate) const RP_MR: u8 = 0x40;
pub(crate) const RP_DA: u8 = 0x41;
pub(crate) const RP_OA: u8 = 0x42;
pub(crate) const RP_UI: u8 = 0x43;
pub(crate) const RP_CAUSE: u8 = 0x44;
pub(crate) const RP_MMS: u8 = 0x45;
pub(crate) const ALERT_REASON: u8 = 0x46;
pub(crate) const SOURCE: u8 = 0x60;
pub(crate) const DESTINATION: u8 = 0x61;

/// Takes the first frame off the front: its stream and payload. `None` if it is incomplete.
pub(crate) fn next<'a>(octets: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let [high, low, stream, rest @ ..] = *octets else { return None };
    let (payload, rest) = rest.split_at_checked(usize::from(*high) << 8 | usize::from(*low))?;
    *octets = rest;
    Some((*stream, payload))
}

/// Appends a frame: a header, and the contents that `fill` appends.
pub(crate) fn frame(out: &mut Vec<u8>, stream: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0, 0, stream]);
    fill(out);
    let length = out.len() - begin - 3;
    out[begin] = (length >> 8) as u8;
    out[begin + 1] = length as u8;
}

/// Appends a one-octet connection management message.
pub(crate) fn word(out: &mut Vec<u8>, word: u8) {
    frame(out, CCM, |out| out.push(word));
}

/// Appends an identity request.
pub(crate) fn id_request(out: &mut Vec<u8>) {
    frame(out, CCM, |out| {
        out.push(ID_GET);
        for tag in [8, 7, 2, 3, 4, 5, 1, 0] {
            out.extend_from_slice(&[1, tag]);
        }
    });
}

/// Appends an identity response.
pub(crate) fn id_response(out: &mut Vec<u8>, name: &str) {
    frame(out, CCM, |out| {
        out.push(ID_RESPONSE);
        for (tag, value) in [(8, "0/0/0"), (5, "stand-in"), (1, name), (0, name)] {
            out.extend_from_slice(&[0, value.len() as u8 + 2, tag]);
            out.extend_from_slice(value.as_bytes());
            out.push(0);
        }
    });
}

/// The value of a tag in an identity response; `None` also for a malformed response.
pub(crate) fn identity(mut items: &[u8], wanted: u8) -> Option<&[u8]> {
    while let [high, low, rest @ ..] = items {
        let (item, rest) = rest.split_at_checked(usize::from(*high) << 8 | usize::from(*low))?;
        let (tag, value) = item.split_first()?;
        if *tag == wanted {
            return Some(value);
        }
        items = rest;
    }
    None
}

/// A 15-digit number as swapped BCD.
pub(crate) fn imsi_octets(imsi: u64) -> [u8; 8] {
    let mut octets = [0xf0; 8];
    let mut left = imsi;
    for index in (0..15).rev() {
        let digit = (left % 10) as u8;
        left /= 10;
        octets[index / 2] = match index {
            14 => 0xf0 | digit,
            index if index % 2 == 0 => octets[index / 2] & 0xf0 | digit,
            index => octets[index / 2] & 0x0f | digit << 4,
        };
    }
    octets
}

/// Decodes a 15-digit number from swapped BCD.
pub(crate) fn imsi_number(octets: &[u8]) -> Option<u64> {
    let octets: &[u8; 8] = octets.try_into().ok()?;
    let mut number = 0;
    for (index, octet) in octets.iter().enumerate() {
        for (half, digit) in [octet & 0xf, octet >> 4].into_iter().enumerate() {
            match (index, half, digit) {
                (7, 1, 0xf) => {}
                (_, _, 0..=9) => number = number * 10 + u64::from(digit),
                _ => return None,
            }
        }
    }
    Some(number)
}

/// Any digits as swapped BCD.
pub(crate) fn digits(text: &str) -> Vec<u8> {
    let half = |digit: u8| digit.wrapping_sub(b'0') & 0xf;
    text.as_bytes()
        .chunks(2)
        .map(|pair| half(pair[0]) | pair.get(1).map_or(0xf0, |second| half(*second) << 4))
        .collect()
}

/// A GSUP message within a frame.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u8,
    pub(crate) imsi: u64,
    /// Information elements, IMSI included.
    elements: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses a frame on the Osmocom stream; `None` if it is not a GSUP message that the simulated nodes understand.
    pub(crate) fn read(payload: &'a [u8]) -> Option<Self> {
        let [GSUP, kind, elements @ ..] = payload else { return None };
        let [IMSI, 8, rest @ ..] = elements else { return None };
        Some(Self { kind: *kind, imsi: imsi_number(rest.get(..8)?)?, elements })
    }

    pub(crate) fn get(&self, wanted: u8) -> Option<&'a [u8]> {
        let mut rest = self.elements;
        while let [tag, length, after @ ..] = rest {
            let (value, after) = after.split_at_checked(usize::from(*length))?;
            if *tag == wanted {
                return Some(value);
            }
            rest = after;
        }
        None
    }

    pub(crate) fn octet(&self, wanted: u8) -> Option<u8> {
        self.get(wanted)?.first().copied()
    }

    /// A name element, without its NUL.
    pub(crate) fn name(&self, wanted: u8) -> Option<&'a str> {
        std::str::from_utf8(self.get(wanted)?.strip_suffix(b"\0")?).ok()
    }
}

/// Appends a message with these elements, in this order.
pub(crate) fn message(out: &mut Vec<u8>, kind: u8, imsi: u64, elements: &[(u8, &[u8])]) {
    frame(out, OSMOCOM, |out| {
        out.extend_from_slice(&[GSUP, kind, IMSI, 8]);
        out.extend_from_slice(&imsi_octets(imsi));
        for (tag, value) in elements {
            out.extend_from_slice(&[*tag, value.len() as u8]);
            out.extend_from_slice(value);
        }
    });
}

/// Appends a received message with one more element.
pub(crate) fn forwarded(out: &mut Vec<u8>, payload: &[u8], tag: u8, value: &[u8]) {
    frame(out, OSMOCOM, |out| {
        out.extend_from_slice(payload);
        out.extend_from_slice(&[tag, value.len() as u8]);
        out.extend_from_slice(value);
    });
}

/// A name as an information element has it.
pub(crate) fn name(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imsi_round_trip() {
        let octets = [0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0xf1];
        assert_eq!(imsi_octets(1_010_000_000_001), octets);
        assert_eq!(imsi_number(&octets), Some(1_010_000_000_001));
        assert_eq!(imsi_octets(123_456_789_012_345), [0x21, 0x43, 0x65, 0x87, 0x09, 0x21, 0x43, 0xf5]);
        assert_eq!(imsi_number(&[0x21, 0x43, 0x65, 0x87, 0x09, 0x21, 0x43, 0xf5]), Some(123_456_789_012_345));
        assert_eq!(digits("15551234567"), [0x51, 0x55, 0x21, 0x43, 0x65, 0xf7]);
    }

    #[test]
    fn message_round_trip() {
        let mut out = Vec::new();
        message(&mut out, MT_FORWARD, 1_010_000_000_001, &[(RP_MR, &[0xff]), (SOURCE, &name("SMSC-1"))]);
        word(&mut out, PING);
        let mut rest = &out[..];
        let (stream, payload) = next(&mut rest).expect("a frame");
        let read = Message::read(payload).expect("a message");
        assert_eq!((stream, read.kind, read.imsi), (OSMOCOM, MT_FORWARD, 1_010_000_000_001));
        assert_eq!(
            (read.octet(RP_MR), read.name(SOURCE), read.get(CAUSE)),
            (Some(0xff), Some("SMSC-1"), None)
        );
        assert_eq!(next(&mut rest), Some((CCM, &[PING][..])));
        assert!(rest.is_empty() && next(&mut &out[..5]).is_none());
    }

    #[test]
    fn identity_response_round_trip() {
        let mut out = Vec::new();
        id_response(&mut out, "MSC-1");
        let (_, payload) = next(&mut &out[..]).expect("a frame");
        assert_eq!(identity(&payload[1..], 0), Some(&b"MSC-1\0"[..]));
        assert_eq!(identity(&payload[1..], 8), Some(&b"0/0/0\0"[..]));
        assert_eq!(identity(&payload[1..], 7), None);
    }
}
