//! Codings, splitting and UDHs (SGIP 1.2 §4.3 table 4-17, GSM 03.40 §9.2.3.24).

use bytes::Bytes;
use encoding_rs::{GB18030, UTF_16BE};

/// Octets of a short message in any coding but ASCII.
pub const MAX_OCTETS: usize = 140;
/// Octets of a single short message in ASCII.
pub const MAX_ASCII: usize = 160;

/// The coding of content: the octet `MessageCoding`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coding(pub u8);

impl Coding {
    /// ASCII, one octet per character.
    pub const ASCII: Self = Self(0);
    /// Octets for the SIM card.
    pub const CARD: Self = Self(3);
    /// Octets.
    pub const BINARY: Self = Self(4);
    /// UTF-16, big-endian, without a byte order mark.
    pub const UCS2: Self = Self(8);
    /// GBK; read as GB18030, its superset.
    pub const GBK: Self = Self(15);

    /// Octets of content in one message without a UDH.
    #[must_use]
    pub fn limit(self) -> usize {
        if self == Self::ASCII { MAX_ASCII } else { MAX_OCTETS }
    }
}

/// Encodes a text in the given coding; `None` if the coding lacks a character.
#[must_use]
pub fn encode_as(text: &str, coding: Coding) -> Option<Bytes> {
    match coding {
        Coding::ASCII => text.is_ascii().then(|| Bytes::copy_from_slice(text.as_bytes())),
        Coding::UCS2 => Some(utf16(text)),
        Coding::GBK => {
            let (octets, _, unmappable) = encoding_rs::GBK.encode(text);
            // The encoder writes a euro sign as 0x80, which only one vendor's tables contain; others treat it as an error.
            (!unmappable && !text.contains('€')).then(|| Bytes::copy_from_slice(&octets))
        }
        _ => None,
    }
}

/// Encodes a text as ASCII if possible, otherwise as UCS2.
#[must_use]
pub fn encode(text: &str) -> (Coding, Bytes) {
    match encode_as(text, Coding::ASCII) {
        Some(octets) => (Coding::ASCII, octets),
        None => (Coding::UCS2, utf16(text)),
    }
}

/// Encodes a text as UTF-16, big-endian.
#[must_use]
pub fn utf16(text: &str) -> Bytes {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>().into()
}

/// Decodes content for display. Unreadable octets become replacement characters; binary codings appear as Latin-1.
#[must_use]
pub fn decode(coding: u8, octets: &[u8]) -> String {
    match coding {
        8 => UTF_16BE.decode_without_bom_handling(octets).0.into_owned(),
        15 => GB18030.decode_without_bom_handling(octets).0.into_owned(),
        _ => octets.iter().copied().map(char::from).collect(),
    }
}

/// Converts GBK to UTF-16, for networks without GBK.
#[must_use]
pub fn gbk_to_utf16(octets: &[u8]) -> Bytes {
    utf16(&decode(Coding::GBK.0, octets))
}

/// The reference of a concatenated message, in the form of its UDH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentReference {
    /// `05 00 03 RR TT NN`.
    Short(u8),
    /// `06 08 04 RRRR TT NN`.
    Long(u16),
}

impl SegmentReference {
    fn header(self, total: u8, number: u8) -> Vec<u8> {
        match self {
            Self::Short(reference) => vec![5, 0, 3, reference, total, number],
            Self::Long(reference) => {
                let [high, low] = reference.to_be_bytes();
                vec![6, 8, 4, high, low, total, number]
            }
        }
    }
}

/// Maximum lengths of texts in ASCII, in octets. Texts in other codings have at most [`MAX_OCTETS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsciiLimits {
    /// Octets of a single message.
    pub single: usize,
    /// Octets of a segment, including its UDH.
    pub segment: usize,
}

impl Default for AsciiLimits {
    fn default() -> Self {
        Self { single: MAX_ASCII, segment: MAX_OCTETS }
    }
}

/// Splits content into segments with a UDH; one segment without, if it fits. It never splits a character: neither a
/// surrogate pair nor the two or four octets of a GB18030 character. `None` if there would be more than 255 segments.
#[must_use]
pub fn split(coding: Coding, octets: &Bytes, reference: SegmentReference) -> Option<Vec<Bytes>> {
    split_within(coding, octets, reference, AsciiLimits::default())
}

/// As [`split`], with the peer's own limits for ASCII.
#[must_use]
pub fn split_within(
    coding: Coding,
    octets: &Bytes,
    reference: SegmentReference,
    ascii: AsciiLimits,
) -> Option<Vec<Bytes>> {
    let (single, segment) =
        if coding == Coding::ASCII { (ascii.single, ascii.segment) } else { (MAX_OCTETS, MAX_OCTETS) };
    if octets.len() <= single {
        return Some(vec![octets.clone()]);
    }
    let max_octets = segment - reference.header(0, 0).len().min(segment);
    let mut pieces = Vec::new();
    let mut rest = &octets[..];
    while !rest.is_empty() {
        let cut = char_boundary(coding, rest, max_octets);
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        rest = after;
    }
    let total = u8::try_from(pieces.len()).ok()?;
    let parts = pieces.iter().zip(1_u8..=total).map(|(piece, number)| {
        let mut part = reference.header(total, number);
        part.extend_from_slice(piece);
        part.into()
    });
    Some(parts.collect())
}

/// The largest length up to `max_octets` that splits no character; at least 1.
fn char_boundary(coding: Coding, octets: &[u8], max_octets: usize) -> usize {
    if octets.len() <= max_octets {
        return octets.len();
    }
    let cut = match coding {
        Coding::UCS2 => {
            let even = max_octets & !1;
            let high =
                even.checked_sub(2).and_then(|at| octets.get(at)).is_some_and(|octet| octet & 0xFC == 0xD8);
            if high { even - 2 } else { even }
        }
        Coding::GBK => {
            let mut at = 0;
            loop {
                let next = at + char_length(&octets[at..]);
                if next > max_octets {
                    break at;
                }
                at = next;
            }
        }
        _ => max_octets,
    };
    cut.max(1)
}

/// Octets of the first GB18030 character; an invalid one counts as one octet.
fn char_length(octets: &[u8]) -> usize {
    match octets {
        [0x81..=0xFE, 0x30..=0x39, 0x81..=0xFE, 0x30..=0x39, ..] => 4,
        [0x81..=0xFE, 0x40..=0xFE, ..] => 2,
        _ => 1,
    }
}

/// Whether `TP_udhi` announces a UDH: 1 as specified, or 0x40 as in SMPP's esm_class.
#[must_use]
pub fn has_header(tp_udhi: u8) -> bool {
    tp_udhi & 0x41 != 0
}

/// Splits content into its UDH and the rest; `None` if the UDH would be longer than the content.
#[must_use]
pub fn header(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(*content.first()?);
    content.split_at_checked(length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_coding_of_a_text_is_chosen() {
        assert_eq!(encode("hello"), (Coding::ASCII, Bytes::from_static(b"hello")));
        assert_eq!(encode("你好"), (Coding::UCS2, Bytes::from_static(&[0x4f, 0x60, 0x59, 0x7d])));
        assert_eq!(encode_as("你好", Coding::GBK).as_deref(), Some(&[0xc4, 0xe3, 0xba, 0xc3][..]));
        assert_eq!(encode_as("😀", Coding::GBK), None);
        assert_eq!(encode_as("é", Coding::ASCII), None);
        assert_eq!(decode(15, &[0xb2, 0xe2, 0xca, 0xd4]), "测试");
        assert_eq!(gbk_to_utf16(&[0xc4, 0xe3, 0xba, 0xc3]), utf16("你好"));
    }

    #[test]
    fn check_16_any_octets_can_be_displayed() {
        for coding in [0, 3, 4, 8, 15, 0x18, 255] {
            for octets in [&[][..], &[0x4f], &[0xd8, 0x3d, 0xde], &[0xc4], &[0x81, 0x30, 0x81], &[255; 7]] {
                let shown = decode(coding, octets);
                assert!(shown.chars().count() <= octets.len().max(1));
            }
        }
    }

    #[test]
    fn no_character_is_split() {
        for text in ["😀".repeat(200), format!("a{}", "😀".repeat(100)), "測試a".repeat(90), "é".repeat(500)]
        {
            for coding in [Coding::UCS2, Coding::GBK] {
                let octets = match coding {
                    Coding::GBK => Bytes::copy_from_slice(&GB18030.encode(&text).0),
                    _ => utf16(&text),
                };
                for reference in [SegmentReference::Short(7), SegmentReference::Long(300)] {
                    let parts = split(coding, &octets, reference).unwrap();
                    assert!(parts.len() > 1);
                    let mut whole = String::new();
                    for (index, part) in parts.iter().enumerate() {
                        assert!(part.len() <= MAX_OCTETS);
                        let (head, body) = header(part).unwrap();
                        assert_eq!(usize::from(head[head.len() - 1]), index + 1);
                        assert_eq!(usize::from(head[head.len() - 2]), parts.len());
                        whole.push_str(&decode(coding.0, body));
                    }
                    assert_eq!(whole, text);
                }
            }
        }
    }

    #[test]
    fn short_content_is_not_split_and_too_long_content_is_refused() {
        let single = Bytes::from(vec![b'a'; 160]);
        assert_eq!(split(Coding::ASCII, &single, SegmentReference::Short(1)), Some(vec![single.clone()]));
        assert_eq!(
            split(Coding::BINARY, &single, SegmentReference::Short(1)).map(|parts| parts.len()),
            Some(2)
        );
        let most = Bytes::from(vec![0; 255 * 134]);
        assert_eq!(
            split(Coding::BINARY, &most, SegmentReference::Short(1)).map(|parts| parts.len()),
            Some(255)
        );
        let more = Bytes::from(vec![0; 255 * 134 + 1]);
        assert_eq!(split(Coding::BINARY, &more, SegmentReference::Short(1)), None);
    }

    #[test]
    fn check_15_headers_are_found_with_either_udhi_value() {
        assert!(has_header(1) && has_header(0x40) && !has_header(0) && !has_header(2));
        assert_eq!(header(&[5, 0, 3, 1, 2, 1, b'x']), Some((&[5, 0, 3, 1, 2, 1][..], &b"x"[..])));
        assert_eq!(header(&[9, 0, 3]), None, "a header that is longer than the text is none");
        assert_eq!(header(&[]), None);
    }
}
