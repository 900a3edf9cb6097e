//! From a text to what a message carries, and back to a text for people.

use bytes::Bytes;
use model::Text;
use sgip::text::{self as sgip_text, Coding as Sgip};
use smpp::concat;

/// How a text is to be coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coding {
    /// What is shortest and everybody reads.
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
    /// Octets, data coding 4; of no text.
    Binary,
}

impl Coding {
    /// All names, for people.
    pub const NAMES: &'static str = "auto, ascii, gsm, ucs2, gbk or binary";

    /// The coding of that name.
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

/// Characters that ASCII and the GSM default alphabet have at the same place, so that nobody can misread them.
fn is_common(c: char) -> bool {
    matches!(c, '\n' | '\r' | ' '..='#' | '%'..='?' | 'A'..='Z' | 'a'..='z')
}

/// The octets of a text and their data coding.
///
/// # Errors
/// Which characters the coding lacks, in words that follow the name of the text.
pub fn encode(words: &str, coding: Coding) -> Result<(Bytes, u8), String> {
    let ascii = || sgip_text::encode_as(words, Sgip::ASCII);
    let gsm = || smpp::text::encode_gsm(words).map(Bytes::from);
    match coding {
        Coding::Auto if words.chars().all(is_common) => Ok((Bytes::copy_from_slice(words.as_bytes()), 0)),
        // ASCII has a data coding of its own, so a peer cannot take it for anything else.
        Coding::Auto => Ok(ascii()
            .map(|octets| (octets, 1))
            .or_else(|| gsm().map(|octets| (octets, 0)))
            .unwrap_or_else(|| (sgip_text::utf16(words), 8))),
        Coding::Ascii => {
            ascii().map(|octets| (octets, 1)).ok_or_else(|| "has characters that ASCII cannot say".to_owned())
        }
        Coding::Gsm => gsm()
            .map(|octets| (octets, 0))
            .ok_or_else(|| "has characters that the GSM alphabet cannot say".to_owned()),
        Coding::Ucs2 => Ok((sgip_text::utf16(words), 8)),
        Coding::Gbk => sgip_text::encode_as(words, Sgip::GBK)
            .map(|octets| (octets, 15))
            .ok_or_else(|| "has characters that GBK cannot say; use coding ucs2 or auto".to_owned()),
        Coding::Binary => Err("is text, and coding binary is for octets".to_owned()),
    }
}

/// How many short messages these octets are sent in.
#[must_use]
pub fn parts(octets: &Bytes, data_coding: u8, udhi: bool) -> usize {
    if udhi {
        return 1;
    }
    let single = concat::room_in_single(data_coding).min(if data_coding < 2 { 160 } else { 140 });
    if octets.len() <= single {
        1
    } else {
        concat::cut(data_coding, octets, concat::room_in_part(data_coding)).len()
    }
}

/// A text for people, and the name of its coding.
#[must_use]
pub fn show(text: &Text) -> (String, &'static str) {
    let words =
        sgip_text::header(&text.octets).filter(|_| text.udhi).map_or(&text.octets[..], |(_, words)| words);
    match text.data_coding {
        8 => (sgip_text::decode(8, words), "ucs2"),
        15 => (sgip_text::decode(15, words), "gbk"),
        1 => (smpp::text::decode(1, words), "ascii"),
        2 | 4 => (String::new(), "binary"),
        other => {
            let name = match smpp::text::alphabet(other) {
                smpp::text::Alphabet::Gsm => "gsm",
                smpp::text::Alphabet::Ucs2 => "ucs2",
                smpp::text::Alphabet::Octets => "binary",
            };
            (smpp::text::decode(other, words), name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_the_coding_that_says_it() {
        assert_eq!(encode("Hello", Coding::Auto), Ok((Bytes::from_static(b"Hello"), 0)));
        assert_eq!(encode("a@b", Coding::Auto), Ok((Bytes::from_static(b"a@b"), 1)));
        assert_eq!(encode("a@b", Coding::Gsm), Ok((Bytes::from_static(&[b'a', 0, b'b']), 0)));
        // A character of the default alphabet is one octet, one of its extension table two (3GPP TS 23.038 §6.2.1).
        let (octets, data_coding) = encode("Señora, è 5 €, £ 4", Coding::Auto).unwrap();
        assert_eq!((octets.len(), data_coding, parts(&octets, data_coding, false)), (19, 0, 1));
        let euros = |count| {
            encode(&"€".repeat(count), Coding::Auto).map(|(octets, coding)| parts(&octets, coding, false))
        };
        assert_eq!((euros(80), euros(81)), (Ok(1), Ok(2)));
        assert_eq!(encode("ž", Coding::Auto).map(|(_, data_coding)| data_coding), Ok(8));
        assert_eq!(encode("你", Coding::Auto), Ok((Bytes::from_static(&[0x4f, 0x60]), 8)));
        assert_eq!(encode("你", Coding::Gbk), Ok((Bytes::from_static(&[0xc4, 0xe3]), 15)));
        assert!(encode("你", Coding::Ascii).is_err() && encode("😀", Coding::Gbk).is_err());
        assert!(encode("x", Coding::Binary).is_err());
        for name in ["auto", "ascii", "gsm", "ucs2", "gbk", "binary"] {
            assert!(Coding::of(name).is_some() && Coding::NAMES.contains(name));
        }
        assert_eq!(Coding::of("utf-7"), None);
    }

    #[test]
    fn parts_are_counted_as_they_are_sent() {
        assert_eq!(parts(&Bytes::from(vec![b'x'; 1_530]), 0, false), 10);
        assert_eq!(parts(&Bytes::from(vec![b'x'; 1_531]), 0, false), 11);
        // An escape and the character after it stay together: 153 octets, of which the last is an escape.
        let escaped = [vec![b'x'; 152], vec![0x1B, 0x65], vec![b'x'; 152]].concat();
        assert_eq!((escaped.len(), parts(&Bytes::from(escaped), 0, false)), (306, 3));
        assert_eq!(parts(&Bytes::from(vec![0; 160]), 0, false), 1);
        assert_eq!(parts(&Bytes::from(vec![0; 161]), 0, false), 2);
        assert_eq!(parts(&Bytes::from(vec![0; 140]), 8, false), 1);
        assert_eq!(parts(&Bytes::from(vec![0; 142]), 8, false), 2);
        assert_eq!(parts(&Bytes::from(vec![0; 269]), 8, false), 3);
        assert_eq!(parts(&Bytes::from(vec![0; 140]), 8, true), 1);
    }
}
