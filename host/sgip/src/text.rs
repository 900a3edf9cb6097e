//! Codings, splitting and user data headers (SGIP 1.2 §4.3 table 4-17, GSM 03.40 §9.2.3.24).

use bytes::Bytes;
use encoding_rs::{GB18030, UTF_16BE};

/// Octets of a short message in any coding but ASCII.
pub const MAX_OCTETS: usize = 140;
/// Octets of a single short message in ASCII.
pub const MAX_ASCII: usize = 160;

/// How content is coded: the octet `MessageCoding`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coding(pub u8);

impl Coding {
    /// ASCII, an octet a character.
    pub const ASCII: Self = Self(0);
    /// For the card; octets.
    pub const CARD: Self = Self(3);
    /// Octets.
    pub const BINARY: Self = Self(4);
    /// UTF-16, high octet first, without a mark.
    pub const UCS2: Self = Self(8);
    /// GBK; read as GB18030, its superset.
    pub const GBK: Self = Self(15);

    /// Octets of content that one message takes without a header.
    #[must_use]
    pub fn limit(self) -> usize {
        if self == Self::ASCII { MAX_ASCII } else { MAX_OCTETS }
    }
}

/// Encodes in the given coding; `None` where it cannot say the text.
#[must_use]
pub fn encode_as(text: &str, coding: Coding) -> Option<Bytes> {
    match coding {
        Coding::ASCII => text.is_ascii().then(|| Bytes::copy_from_slice(text.as_bytes())),
        Coding::UCS2 => Some(utf16(text)),
        Coding::GBK => {
            let (octets, _, unmappable) = encoding_rs::GBK.encode(text);
            // One octet 0x80 for the euro is a habit of one vendor's tables; others take it for damage.
            (!unmappable && !text.contains('€')).then(|| Bytes::copy_from_slice(&octets))
        }
        _ => None,
    }
}

/// Encodes as ASCII where that is enough, and as UCS2 otherwise.
#[must_use]
pub fn encode(text: &str) -> (Coding, Bytes) {
    match encode_as(text, Coding::ASCII) {
        Some(octets) => (Coding::ASCII, octets),
        None => (Coding::UCS2, utf16(text)),
    }
}

/// UTF-16, high octet first.
#[must_use]
pub fn utf16(text: &str) -> Bytes {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>().into()
}

/// For display only: what cannot be read appears as replacement characters. Octets of binary codings appear as Latin-1.
#[must_use]
pub fn decode(coding: u8, octets: &[u8]) -> String {
    match coding {
        8 => UTF_16BE.decode_without_bom_handling(octets).0.into_owned(),
        15 => GB18030.decode_without_bom_handling(octets).0.into_owned(),
        _ => octets.iter().copied().map(char::from).collect(),
    }
}

/// GBK as UTF-16, for networks that have no GBK.
#[must_use]
pub fn gbk_to_utf16(octets: &[u8]) -> Bytes {
    utf16(&decode(Coding::GBK.0, octets))
}

/// The references of concatenated messages, as they stand in their headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reference {
    /// `05 00 03 RR TT NN`.
    Short(u8),
    /// `06 08 04 RRRR TT NN`.
    Long(u16),
}

impl Reference {
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

/// Splits content into parts with a header each; one part without, where it fits. Never cuts a character: neither a
/// surrogate pair nor the two or four octets of a GB18030 character. `None` where it would take more than 255 parts.
#[must_use]
pub fn split(coding: Coding, octets: &Bytes, reference: Reference) -> Option<Vec<Bytes>> {
    if octets.len() <= coding.limit() {
        return Some(vec![octets.clone()]);
    }
    let room = MAX_OCTETS - reference.header(0, 0).len();
    let mut pieces = Vec::new();
    let mut rest = &octets[..];
    while !rest.is_empty() {
        let cut = whole(coding, rest, room);
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

/// The most octets, up to `room`, that end with a whole character; at least one.
fn whole(coding: Coding, octets: &[u8], room: usize) -> usize {
    if octets.len() <= room {
        return octets.len();
    }
    let cut = match coding {
        Coding::UCS2 => {
            let even = room & !1;
            let high =
                even.checked_sub(2).and_then(|at| octets.get(at)).is_some_and(|octet| octet & 0xFC == 0xD8);
            if high { even - 2 } else { even }
        }
        Coding::GBK => {
            let mut at = 0;
            loop {
                let next = at + character(&octets[at..]);
                if next > room {
                    break at;
                }
                at = next;
            }
        }
        _ => room,
    };
    cut.max(1)
}

/// Octets of the first GB18030 character; what is none counts as one octet.
fn character(octets: &[u8]) -> usize {
    match octets {
        [0x81..=0xFE, 0x30..=0x39, 0x81..=0xFE, 0x30..=0x39, ..] => 4,
        [0x81..=0xFE, 0x40..=0xFE, ..] => 2,
        _ => 1,
    }
}

/// Whether `TP_udhi` says that there is a header: right-aligned as specified, or as in SMPP's esm_class.
#[must_use]
pub fn has_header(tp_udhi: u8) -> bool {
    tp_udhi & 0x41 != 0
}

/// The user data header and what follows it. A header that is longer than the content is none.
#[must_use]
pub fn header(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(*content.first()?);
    content.split_at_checked(length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_choose_their_coding() {
        assert_eq!(encode("hello"), (Coding::ASCII, Bytes::from_static(b"hello")));
        assert_eq!(encode("你好"), (Coding::UCS2, Bytes::from_static(&[0x4f, 0x60, 0x59, 0x7d])));
        assert_eq!(encode_as("你好", Coding::GBK).as_deref(), Some(&[0xc4, 0xe3, 0xba, 0xc3][..]));
        assert_eq!(encode_as("😀", Coding::GBK), None);
        assert_eq!(encode_as("é", Coding::ASCII), None);
        assert_eq!(decode(15, &[0xb2, 0xe2, 0xca, 0xd4]), "测试");
        assert_eq!(gbk_to_utf16(&[0xc4, 0xe3, 0xba, 0xc3]), utf16("你好"));
    }

    #[test]
    fn check_16_any_octets_can_be_shown() {
        for coding in [0, 3, 4, 8, 15, 0x18, 255] {
            for octets in [&[][..], &[0x4f], &[0xd8, 0x3d, 0xde], &[0xc4], &[0x81, 0x30, 0x81], &[255; 7]] {
                let shown = decode(coding, octets);
                assert!(shown.chars().count() <= octets.len().max(1));
            }
        }
    }

    #[test]
    fn no_character_is_cut() {
        for text in ["😀".repeat(200), format!("a{}", "😀".repeat(100)), "測試a".repeat(90), "é".repeat(500)]
        {
            for coding in [Coding::UCS2, Coding::GBK] {
                let octets = match coding {
                    Coding::GBK => Bytes::copy_from_slice(&GB18030.encode(&text).0),
                    _ => utf16(&text),
                };
                for reference in [Reference::Short(7), Reference::Long(300)] {
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
    fn what_fits_is_not_split_and_what_never_fits_is_refused() {
        let single = Bytes::from(vec![b'a'; 160]);
        assert_eq!(split(Coding::ASCII, &single, Reference::Short(1)), Some(vec![single.clone()]));
        assert_eq!(split(Coding::BINARY, &single, Reference::Short(1)).map(|parts| parts.len()), Some(2));
        let most = Bytes::from(vec![0; 255 * 134]);
        assert_eq!(split(Coding::BINARY, &most, Reference::Short(1)).map(|parts| parts.len()), Some(255));
        let more = Bytes::from(vec![0; 255 * 134 + 1]);
        assert_eq!(split(Coding::BINARY, &more, Reference::Short(1)), None);
    }

    #[test]
    fn check_15_headers_are_found_in_either_way_of_saying_so() {
        assert!(has_header(1) && has_header(0x40) && !has_header(0) && !has_header(2));
        assert_eq!(header(&[5, 0, 3, 1, 2, 1, b'x']), Some((&[5, 0, 3, 1, 2, 1][..], &b"x"[..])));
        assert_eq!(header(&[9, 0, 3]), None, "a header that is longer than the text is none");
        assert_eq!(header(&[]), None);
    }
}
