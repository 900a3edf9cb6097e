//! Texts and numbers of the Chinese networks. SGIP, CMPP and SMGP have the same codings and the same number format.

use bytes::Bytes;
use model::{Address, MessageId, Text, Timestamp};
use sgip::text::{self, AsciiLimits, Coding, SegmentReference};
use smpp::text::SmppAlphabet;

/// The content of a request: coding, octets, and whether they begin with a UDH.
struct Content {
    coding: Coding,
    octets: Bytes,
    header: bool,
}

/// Contents of a message's requests, in order.
pub(crate) struct Segments {
    pub(crate) coding: Coding,
    /// Contents; at least one.
    pub(crate) contents: Vec<Bytes>,
    /// Whether the contents begin with a UDH.
    pub(crate) header: bool,
}

fn content(body: &Text, gbk: bool) -> Content {
    let as_is = |coding| Content { coding, octets: body.octets.clone(), header: body.udhi };
    let (head, words) = match text::header(&body.octets).filter(|_| body.udhi) {
        Some((head, words)) => (head, words),
        None => (&[][..], &body.octets[..]),
    };
    match body.data_coding {
        8 if gbk && !body.udhi => {
            let words = text::decode(8, words);
            // A damaged text is passed on unchanged: its meaning is unknown.
            let same = text::utf16(&words) == body.octets;
            match text::encode_as(&words, Coding::GBK).filter(|_| same) {
                Some(octets) => Content { coding: Coding::GBK, octets, header: false },
                None => as_is(Coding::UCS2),
            }
        }
        8 => as_is(Coding::UCS2),
        15 => as_is(Coding::GBK),
        2 | 4 => as_is(Coding::BINARY),
        0xF6 => as_is(Coding::CARD),
        // ASCII, and the characters of the default alphabet that have the same octets in ASCII.
        0 | 1
            if words.iter().all(|octet| is_common(*octet) || (body.data_coding == 1 && octet.is_ascii())) =>
        {
            as_is(Coding::ASCII)
        }
        other => match smpp::text::alphabet(other) {
            // These networks have no Latin-1.
            SmppAlphabet::Octets if other != 3 => as_is(Coding(other)),
            _ => {
                let words = smpp::text::decode(other, words);
                let encoded = text::encode_as(&words, Coding::ASCII).map(|octets| (Coding::ASCII, octets));
                let encoded = encoded.or_else(|| {
                    text::encode_as(&words, Coding::GBK).filter(|_| gbk).map(|octets| (Coding::GBK, octets))
                });
                let (coding, octets) = encoded.unwrap_or_else(|| (Coding::UCS2, text::utf16(&words)));
                let octets = [head, &octets].concat().into();
                Content { coding, octets, header: body.udhi }
            }
        },
    }
}

/// The text in Unicode; `None` for binary data, and for a segment of a longer text.
pub(crate) fn words_of(text: &Text) -> Option<String> {
    if text.udhi {
        return None;
    }
    match text.data_coding {
        coding @ (8 | 15) => Some(text::decode(coding, &text.octets)),
        coding => match smpp::text::alphabet(coding) {
            SmppAlphabet::Octets if coding != 3 => None,
            _ => Some(smpp::text::decode(coding, &text.octets)),
        },
    }
}

/// Whether ASCII and the GSM default alphabet have the same character at this position.
fn is_common(octet: u8) -> bool {
    matches!(octet, b'\n' | b'\r' | b' '..=b'#' | b'%'..=b'?' | b'A'..=b'Z' | b'a'..=b'z')
}

/// The contents of the segments. A text that already has a UDH is one segment. `None` if the text is too long to be
/// split.
pub(crate) fn segments(body: &Text, gbk: bool, id: MessageId, ascii: AsciiLimits) -> Option<Segments> {
    let content = content(body, gbk);
    if content.header {
        return Some(Segments { coding: content.coding, contents: vec![content.octets], header: true });
    }
    let reference = SegmentReference::Short(u8::try_from(id.0 & 0xFF).unwrap_or(0));
    let contents = text::split_within(content.coding, &content.octets, reference, ascii)?;
    let header = contents.len() > 1;
    Some(Segments { coding: content.coding, contents, header })
}

/// A subscriber's number without prefix, or a mobile number with 86.
pub(crate) fn user_number(number: &[u8], add_86: bool) -> Bytes {
    let home = sgip::home_number(number);
    let is_mobile = home.len() == 11 && home.first() == Some(&b'1') && home.iter().all(u8::is_ascii_digit);
    if add_86 && is_mobile { [b"86", home].concat().into() } else { Bytes::copy_from_slice(home) }
}

/// Address of a user number.
pub(crate) fn address(number: &[u8], strip_86: bool) -> Address {
    let kept = if strip_86 { sgip::home_number(number) } else { number };
    let ton = u8::from(kept.len() > 11 && kept.starts_with(b"86"));
    Address::new(ton, 1, kept)
}

/// Time in Beijing, as `yymmddhhmmss032+`.
pub(crate) fn beijing_time(at: Timestamp) -> Bytes {
    format!("{}032+", sp_session::wall_clock(at)).into()
}
/// The text of a request from its coding, its UDH indicator and its octets.
pub(crate) fn text_of(coding: u8, header: bool, content: &Bytes) -> Text {
    Text {
        octets: content.clone(),
        data_coding: match coding {
            // ASCII (34 §5.2.19).
            0 => 1,
            // SIM-specific, class 2 (GSM 03.38).
            3 => 0xF6,
            other => other,
        },
        udhi: header && text::header(content).is_some(),
        payload: false,
    }
}
