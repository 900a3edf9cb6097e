//! Splits long texts into segments (3GPP TS 23.040 §9.2.3.24.1).

use crate::alphabet::ESCAPE;
use crate::coding::{Alphabet, is_compressed};
use crate::header::ConcatReference;
use crate::{Error, Result, UserData};

/// Packs a text into one short message if it fits, and into numbered segments otherwise. `elements` are encoded header
/// elements, repeated in each segment. An escape sequence and a surrogate pair are never split.
///
/// # Errors
/// [`Error::TooManySegments`] for more than 255 segments, [`Error::LongCompressed`] if compressed text exceeds one
/// short message, [`Error::NotASeptet`], and [`Error::LongUserData`] if the elements leave no space for text.
pub fn split(
    data_coding: u8,
    elements: &[u8],
    text: &[u8],
    reference: ConcatReference,
) -> Result<Vec<UserData>> {
    let alphabet = Alphabet::of(data_coding);
    if let Some(at) = text.iter().position(|octet| alphabet == Alphabet::Gsm7 && *octet > 0x7F) {
        return Err(Error::NotASeptet { at, octet: text[at] });
    }
    let capacity = segment_capacity(alphabet, elements.len());
    if text.len() <= capacity {
        return packed(alphabet, elements, text).map(|segment| vec![segment]);
    }
    if is_compressed(data_coding) {
        return Err(Error::LongCompressed(text.len()));
    }
    let capacity = segment_capacity(alphabet, elements.len() + reference.element(0, 0).len());
    if capacity < MIN_SEGMENT_CAPACITY {
        return Err(Error::LongUserData { length: text.len(), limit: capacity, unit: alphabet.unit() });
    }
    let pieces = split_units(alphabet, text, capacity);
    let total = u8::try_from(pieces.len()).map_err(|_| Error::TooManySegments(pieces.len()))?;
    let part = |(number, piece)| {
        let elements = [&reference.element(total, number)[..], elements].concat();
        packed(alphabet, &elements, piece)
    };
    (1..=total).zip(pieces).map(part).collect()
}

/// Minimum space for text in a segment, in units: a surrogate pair has four octets.
const MIN_SEGMENT_CAPACITY: usize = 4;

/// Units of text that fit in a segment with this many octets of elements.
fn segment_capacity(alphabet: Alphabet, elements: usize) -> usize {
    let header = if elements == 0 { 0 } else { elements + 1 };
    alphabet.limit().saturating_sub(alphabet.header_units(header))
}

fn packed(alphabet: Alphabet, elements: &[u8], text: &[u8]) -> Result<UserData> {
    if elements.is_empty() {
        return UserData::pack(alphabet, false, text);
    }
    let too_long = Error::LongUserData { length: elements.len(), limit: crate::MAX_OCTETS, unit: "octets" };
    let length = u8::try_from(elements.len()).map_err(|_| too_long)?;
    UserData::pack(alphabet, true, &[&[length], elements, text].concat())
}

/// Splits a text into pieces of at most `capacity` units; `capacity` must be at least [`MIN_SEGMENT_CAPACITY`].
fn split_units(alphabet: Alphabet, text: &[u8], capacity: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(text.len() / capacity + 1);
    let mut rest = text;
    while rest.len() > capacity {
        let end = match alphabet {
            Alphabet::Gsm7 => {
                // In a run of escapes, every second one is the escaped septet.
                let escapes = rest.iter().take(capacity).rev().take_while(|octet| **octet == ESCAPE).count();
                capacity - escapes % 2
            }
            Alphabet::Ucs2 => {
                let even = capacity & !1;
                let high = rest.get(even - 2).is_some_and(|octet| octet & 0xFC == 0xD8);
                even - if high { 2 } else { 0 }
            }
            Alphabet::Octets => capacity,
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: ConcatReference = ConcatReference::Short(7);
    const WIDE: ConcatReference = ConcatReference::Wide(0x0102);

    #[test]
    fn segment_capacities_of_the_specification() {
        let capacities = |alphabet| [0, 5, 6].map(|elements| segment_capacity(alphabet, elements));
        assert_eq!(capacities(Alphabet::Gsm7), [160, 153, 152]);
        assert_eq!(capacities(Alphabet::Octets), [140, 134, 133]);
        assert_eq!(capacities(Alphabet::Ucs2).map(|octets| octets / 2), [70, 67, 66]);
        assert_eq!(segment_capacity(Alphabet::Gsm7, 3), 155);
    }

    #[test]
    fn segments_are_numbered_and_join_to_the_text() {
        let units: [(u8, &[u8]); 4] =
            [(0, b"ab\x1B\x65c"), (4, b"\x00\xFF\x1B"), (8, b"\xD8\x3D\xDE\x00\x00\x41"), (0, b"\x1B\x1B")];
        for (data_coding, unit) in units {
            let alphabet = Alphabet::of(data_coding);
            for count in [0, 1, 60, 150, 400] {
                for (reference, elements) in [(SHORT, &[][..]), (WIDE, &[0x24, 1, 1])] {
                    let text = unit.repeat(count);
                    let segments = split(data_coding, elements, &text, reference).unwrap();
                    let joined: Vec<u8> = segments.iter().flat_map(|part| part.text(alphabet)).collect();
                    assert_eq!(joined, text);
                    for (part, number) in segments.iter().zip(1_u8..) {
                        assert!(part.octets.len() <= 140);
                        let Some(header) = part.header(alphabet) else {
                            assert_eq!((segments.len(), elements), (1, &[][..]));
                            continue;
                        };
                        assert_eq!(header.without_concatenation(), elements);
                        let Some(found) = header.concatenation() else {
                            assert_eq!(segments.len(), 1);
                            continue;
                        };
                        assert_eq!((usize::from(found.total), found.number), (segments.len(), number));
                        assert_eq!(found.wide, reference == WIDE);
                    }
                }
            }
        }
    }

    #[test]
    fn characters_are_not_split() {
        for lead in 0..8 {
            let escapes = [vec![0x41; lead], b"\x1B\x65".repeat(300)].concat();
            for part in split(0, &[], &escapes, SHORT).unwrap() {
                let text = part.text(Alphabet::Gsm7);
                let odd = text.iter().filter(|septet| **septet == 0x1B).count() * 2
                    + text.iter().filter(|septet| **septet == 0x41).count();
                assert_eq!(odd, text.len(), "an escape or its septet stands alone");
            }
            let pairs = [[0, 0x41].repeat(lead), b"\xD8\x3D\xDE\x00".repeat(200)].concat();
            for part in split(8, &[], &pairs, SHORT).unwrap() {
                let units: Vec<u16> = part
                    .text(Alphabet::Ucs2)
                    .chunks(2)
                    .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                    .collect();
                assert!(String::from_utf16(&units).is_ok());
            }
        }
    }

    #[test]
    fn unsendable_texts_are_errors() {
        assert_eq!(split(0, &[], &[0x41; 255 * 153], SHORT).map(|segments| segments.len()), Ok(255));
        assert_eq!(split(0, &[], &[0x41; 255 * 153 + 1], SHORT), Err(Error::TooManySegments(256)));
        assert_eq!(split(0x20, &[], &[0x41; 141], SHORT), Err(Error::LongCompressed(141)));
        assert_eq!(split(0x20, &[], &[0xF1; 140], SHORT).map(|segments| segments.len()), Ok(1));
        assert_eq!(split(0, &[], &[0x41, 0x80], SHORT), Err(Error::NotASeptet { at: 1, octet: 0x80 }));
        for elements in [133, 134, 139, 140, 300] {
            assert!(matches!(split(4, &vec![0; elements], &[0; 10], SHORT), Err(Error::LongUserData { .. })));
        }
    }
}
