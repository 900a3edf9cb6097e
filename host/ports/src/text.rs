//! Texts of messages: encoding, and decoding for display.

use bytes::Bytes;
use model::Text;
use sgip::text::{self as sgip_text, Coding as Sgip};
use smpp::segmentation;

/// Maximum number of segments of a text that a screen puts in the place of another.
const MAX_SEGMENTS: usize = 255;

/// The coding of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TextCoding {
    /// The shortest coding that every handset can show.
    #[default]
    Auto,
    /// ASCII, data coding 1.
    Ascii,
    /// The GSM default alphabet, data coding 0.
    Gsm,
    /// UTF-16, data coding 8.
    Ucs2,
    /// GBK, data coding 15.
    Gbk,
    /// Octets, data coding 4; no text can be encoded in it.
    Binary,
}

impl TextCoding {
    /// All names, for error messages.
    pub const NAMES: &'static str = "auto, ascii, gsm, ucs2, gbk or binary";

    /// Returns the coding of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "ascii" => Self::Ascii,
            "gsm" => Self::Gsm,
            "ucs2" => Self::Ucs2,
            "gbk" => Self::Gbk,
            "binary" => Self::Binary,
            _ => return None,
        })
    }
}

/// Whether ASCII and the GSM default alphabet have the character at the same position, so that no peer can misread
/// it.
fn is_common(c: char) -> bool {
    matches!(c, '\n' | '\r' | ' '..='#' | '%'..='?' | 'A'..='Z' | 'a'..='z')
}

/// Encodes a text. Returns the octets and their data coding.
///
/// # Errors
/// The characters that the coding lacks, as a predicate: "has characters that …".
pub fn encode(text: &str, coding: TextCoding) -> Result<(Bytes, u8), String> {
    let ascii = || sgip_text::encode_as(text, Sgip::ASCII);
    let gsm = || smpp::text::encode_gsm(text).map(Bytes::from);
    match coding {
        TextCoding::Auto if text.chars().all(is_common) => Ok((Bytes::copy_from_slice(text.as_bytes()), 0)),
        // ASCII has a data coding of its own, so a peer cannot take it for anything else.
        TextCoding::Auto => Ok(ascii()
            .map(|octets| (octets, 1))
            .or_else(|| gsm().map(|octets| (octets, 0)))
            .unwrap_or_else(|| (sgip_text::utf16(text), 8))),
        TextCoding::Ascii => {
            ascii().map(|octets| (octets, 1)).ok_or_else(|| "has characters that ASCII cannot say".to_owned())
        }
        TextCoding::Gsm => gsm()
            .map(|octets| (octets, 0))
            .ok_or_else(|| "has characters that the GSM alphabet cannot say".to_owned()),
        TextCoding::Ucs2 => Ok((sgip_text::utf16(text), 8)),
        TextCoding::Gbk => sgip_text::encode_as(text, Sgip::GBK)
            .map(|octets| (octets, 15))
            .ok_or_else(|| "has characters that GBK cannot say; use coding ucs2 or auto".to_owned()),
        TextCoding::Binary => Err("is text, and coding binary is for octets".to_owned()),
    }
}

/// The text with other characters and the same header.
///
/// # Errors
/// The characters do not fit, as a predicate: "needs …".
pub fn replace(text: &Text, characters: &str) -> Result<Text, String> {
    let (encoded, data_coding) = encode(characters, TextCoding::Auto)?;
    let header = sgip_text::header(&text.octets).filter(|_| text.udhi).map(|(header, _)| header);
    let Some(header) = header else {
        let segments = segment_count(&encoded, data_coding, false);
        if segments > MAX_SEGMENTS {
            return Err(format!("needs {segments} segments; at most {MAX_SEGMENTS} are allowed"));
        }
        return Ok(Text { payload: encoded.len() > 140, octets: encoded, data_coding, udhi: false });
    };
    // Characters of the GSM alphabet and of ASCII have one octet here and seven bits on the air.
    let room = 140_usize.saturating_sub(header.len());
    let room = if data_coding < 2 { room * 8 / 7 } else { room };
    if encoded.len() > room {
        return Err(format!("has {} octets; beside the header, {room} fit into a segment", encoded.len()));
    }
    let octets = Bytes::from([header, &encoded[..]].concat());
    Ok(Text { payload: text.payload, octets, data_coding, udhi: true })
}

/// The number of short messages that these octets are sent in.
#[must_use]
pub fn segment_count(octets: &Bytes, data_coding: u8, udhi: bool) -> usize {
    if udhi {
        return 1;
    }
    let single = segmentation::octets_in_single(data_coding).min(if data_coding < 2 { 160 } else { 140 });
    if octets.len() <= single {
        1
    } else {
        segmentation::split_text(data_coding, octets, segmentation::octets_per_segment(data_coding)).len()
    }
}

/// Decodes a text for display. Returns the text and the name of its coding.
#[must_use]
pub fn display(text: &Text) -> (String, &'static str) {
    let header = sgip_text::header(&text.octets).filter(|_| text.udhi);
    let body = header.map_or(&text.octets[..], |(_, body)| body);
    match text.data_coding {
        8 => (sgip_text::decode(8, body), "ucs2"),
        15 => (sgip_text::decode(15, body), "gbk"),
        1 => (smpp::text::decode(1, body), "ascii"),
        2 | 4 => (String::new(), "binary"),
        other => {
            let name = match smpp::text::alphabet(other) {
                smpp::text::SmppAlphabet::Gsm => "gsm",
                smpp::text::SmppAlphabet::Ucs2 => "ucs2",
                smpp::text::SmppAlphabet::Octets => "binary",
            };
            (smpp::text::decode(other, body), name)
        }
    }
}

/// The characters of a text without its header; `None` for 8-bit data.
#[must_use]
pub fn characters(text: &Text) -> Option<String> {
    let (characters, coding) = display(text);
    (coding != "binary").then_some(characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_fitting_coding_is_chosen() {
        assert_eq!(encode("Hello", TextCoding::Auto), Ok((Bytes::from_static(b"Hello"), 0)));
        assert_eq!(encode("a@b", TextCoding::Auto), Ok((Bytes::from_static(b"a@b"), 1)));
        assert_eq!(encode("a@b", TextCoding::Gsm), Ok((Bytes::from_static(&[b'a', 0, b'b']), 0)));
        // A character of the default alphabet is one octet, one of its extension table two (3GPP TS 23.038 §6.2.1).
        let (octets, data_coding) = encode("Señora, è 5 €, £ 4", TextCoding::Auto).unwrap();
        assert_eq!((octets.len(), data_coding, segment_count(&octets, data_coding, false)), (19, 0, 1));
        let euros = |count| {
            encode(&"€".repeat(count), TextCoding::Auto)
                .map(|(octets, coding)| segment_count(&octets, coding, false))
        };
        assert_eq!((euros(80), euros(81)), (Ok(1), Ok(2)));
        assert_eq!(encode("ž", TextCoding::Auto).map(|(_, data_coding)| data_coding), Ok(8));
        assert_eq!(encode("你", TextCoding::Auto), Ok((Bytes::from_static(&[0x4f, 0x60]), 8)));
        assert_eq!(encode("你", TextCoding::Gbk), Ok((Bytes::from_static(&[0xc4, 0xe3]), 15)));
        assert!(encode("你", TextCoding::Ascii).is_err() && encode("😀", TextCoding::Gbk).is_err());
        assert!(encode("x", TextCoding::Binary).is_err());
        for name in ["auto", "ascii", "gsm", "ucs2", "gbk", "binary"] {
            assert!(TextCoding::of(name).is_some() && TextCoding::NAMES.contains(name));
        }
        assert_eq!(TextCoding::of("utf-7"), None);
    }

    #[test]
    fn segments_are_counted_as_they_are_sent() {
        assert_eq!(segment_count(&Bytes::from(vec![b'x'; 1_530]), 0, false), 10);
        assert_eq!(segment_count(&Bytes::from(vec![b'x'; 1_531]), 0, false), 11);
        // An escape and the character after it stay together: 153 octets, of which the last is an escape.
        let escaped = [vec![b'x'; 152], vec![0x1B, 0x65], vec![b'x'; 152]].concat();
        assert_eq!((escaped.len(), segment_count(&Bytes::from(escaped), 0, false)), (306, 3));
        assert_eq!(segment_count(&Bytes::from(vec![0; 160]), 0, false), 1);
        assert_eq!(segment_count(&Bytes::from(vec![0; 161]), 0, false), 2);
        assert_eq!(segment_count(&Bytes::from(vec![0; 140]), 8, false), 1);
        assert_eq!(segment_count(&Bytes::from(vec![0; 142]), 8, false), 2);
        assert_eq!(segment_count(&Bytes::from(vec![0; 269]), 8, false), 3);
        assert_eq!(segment_count(&Bytes::from(vec![0; 140]), 8, true), 1);
    }
}
