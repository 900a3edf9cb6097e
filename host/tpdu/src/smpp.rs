//! Lossless conversion between SMPP (or SGIP) texts and short messages on the air interface.
//!
//! SMPP carries octets and `data_coding`: values up to 15 are SMPP's own list, values from 16 are a GSM data coding
//! scheme. Text in the default alphabet has one septet per octet in SMPP, and is packed on the air interface. In both,
//! a user data header precedes the text.
//!
//! | `data_coding` | octets are | on the air |
//! |---|---|---|
//! | 0 | the default alphabet, one septet per octet | 0x00 |
//! | 1, 3 | ASCII, Latin-1 | 0x00 if the default alphabet has every character, else 0x08 |
//! | 2, 4 | data | 0x04 |
//! | 6, 7 | ISO 8859-5 (Cyrillic), ISO 8859-8 (Hebrew) | as with 1 |
//! | 8 | UTF-16, big-endian | 0x08 |
//! | 10, 14 | ISO-2022-JP, KS C 5601 (EUC-KR) | as with 1 |
//! | 15 | GB 18030 (SGIP; reserved in SMPP) | as with 1 |
//! | 5, 9, 11, 12, 13 | JIS variants, pictograms, reserved | an error |
//! | 16 to 255 | as the data coding scheme declares | the same octet |
//!
//! In the other direction, only codings that need no conversion are produced. The twelve schemes 0x01 to 0x0F other
//! than 0x04 and 0x08 differ from 0x00, 0x04 and 0x08 in unused bits only, and are returned as these. Every other
//! scheme is returned unchanged. The octets of user data are always restored, except for fill bits that are not zero
//! and for a header indicator without a header.

use crate::alphabet::{self, LanguageTables};
use crate::coding::Alphabet;
use crate::header::{ConcatReference, Header, LOCKING_SHIFT, PORTS_WIDE, SINGLE_SHIFT};
use crate::split::split;
use crate::{Concatenation, Error, Result, UserData};
use bytes::Bytes;
use encoding_rs::{EUC_KR, Encoding, GB18030, ISO_2022_JP, ISO_8859_5, ISO_8859_8};

/// One or more short messages for the air interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AirMessage {
    /// TP-DCS of all segments.
    pub data_coding: u8,
    /// The user data of each short message; at least one.
    pub segments: Vec<UserData>,
}

/// A text as carried by SMPP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SmppText {
    /// `data_coding`.
    pub data_coding: u8,
    /// Whether a user data header precedes the text (`esm_class` 0x40).
    pub udhi: bool,
    /// `short_message`.
    pub octets: Bytes,
}

/// Application port addressing, 8-bit.
const PORTS: u8 = 0x04;

/// SMPP optional parameters with an equivalent in the user data header or the data coding scheme (SMPP 3.4 §5.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptionalParameters {
    /// `sar_msg_ref_num`, `sar_total_segments`, `sar_segment_seqnum`: the segment of a concatenated message.
    pub segment: Option<Concatenation>,
    /// `destination_port` and `source_port`; 0 for a missing one.
    pub ports: Option<(u16, u16)>,
    /// `dest_addr_subunit`, as a message class: 0 display, 1 handset memory, 2 SIM, 3 terminal equipment.
    pub class: Option<u8>,
}

impl OptionalParameters {
    /// Reads optional parameters in PDU form: two octets each of tag and length, then the value. Unknown, incomplete
    /// and invalid parameters are ignored.
    #[must_use]
    pub fn read(parameters: &[u8]) -> Self {
        let (mut reference, mut total, mut number) = (None, None, None);
        let (mut destination, mut source, mut class) = (None, None, None);
        let mut rest = parameters;
        while let [tag_high, tag_low, high, low, after @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let Some((value, after)) = after.split_at_checked(length) else { break };
            match (u16::from_be_bytes([*tag_high, *tag_low]), value) {
                (0x0005, [subunit @ 1..=4]) => class = Some(subunit - 1),
                (0x020A, &[high, low]) => source = Some(u16::from_be_bytes([high, low])),
                (0x020B, &[high, low]) => destination = Some(u16::from_be_bytes([high, low])),
                (0x020C, &[high, low]) => reference = Some(u16::from_be_bytes([high, low])),
                (0x020E, &[octet]) => total = Some(octet),
                (0x020F, &[octet]) => number = Some(octet),
                _ => {}
            }
            rest = after;
        }
        let segment = match (reference, total, number) {
            (Some(reference), Some(total @ 2..), Some(number)) if (1..=total).contains(&number) => {
                Some(Concatenation { reference, wide: true, total, number })
            }
            _ => None,
        };
        let ports = destination.or(source).map(|_| (destination.unwrap_or(0), source.unwrap_or(0)));
        Self { segment, ports, class }
    }

    /// Encodes header elements for parameters that the message's own header lacks. The reference has 8 bits, since a
    /// segment of 153 septets has no space for 16.
    fn elements(&self, own: Header<'_>) -> Vec<u8> {
        let mut elements = Vec::new();
        if let Some(segment) = self.segment.filter(|_| own.concatenation().is_none()) {
            let [_, low] = segment.reference.to_be_bytes();
            elements.extend(ConcatReference::Short(low).element(segment.total, segment.number));
        }
        let has_ports = own.elements().any(|element| matches!(element.id, PORTS | PORTS_WIDE));
        if let Some((destination, source)) = self.ports.filter(|_| !has_ports) {
            elements.extend([PORTS_WIDE, 4]);
            elements.extend(destination.to_be_bytes());
            elements.extend(source.to_be_bytes());
        }
        elements
    }
}

/// Converts an SMPP text to short messages: [`to_air_with`] without optional parameters.
///
/// # Errors
/// As [`to_air_with`].
pub fn to_air(data_coding: u8, udhi: bool, octets: &[u8], reference: ConcatReference) -> Result<AirMessage> {
    to_air_with(data_coding, udhi, octets, reference, &OptionalParameters::default())
}

/// Converts an SMPP text with its optional parameters to short messages. The message's own header and coding take
/// precedence over the parameters.
///
/// A text without a header is split if it exceeds one short message; `reference` is written to the segment headers. A
/// text with its own header is not changed. If it exceeds one short message, it can be split only if the header
/// consists of national tables and ports, which are repeated in each segment.
///
/// # Errors
/// * [`Error::Coding`] for a `data_coding` without a GSM equivalent, [`Error::NotInCoding`] and [`Error::NotASeptet`]
///   for octets that are invalid in it.
/// * [`Error::NoHeader`] if `udhi` is set and there is no header.
/// * [`Error::LongWithHeader`], [`Error::LongCompressed`], [`Error::TooManySegments`] if the text is too long.
///
/// ```
/// use tpdu::{ConcatReference, smpp};
///
/// let air = smpp::to_air(3, false, b"Caf\xE9 Ol\xE9", ConcatReference::Short(1))?;
/// assert_eq!((air.data_coding, air.segments.len()), (0, 1));
/// let back = smpp::from_air(air.data_coding, &air.segments[0]);
/// assert_eq!((back.data_coding, &back.octets[..]), (0, &b"Caf\x05 Ol\x05"[..]));
/// # Ok::<(), tpdu::Error>(())
/// ```
pub fn to_air_with(
    data_coding: u8,
    udhi: bool,
    octets: &[u8],
    reference: ConcatReference,
    optional: &OptionalParameters,
) -> Result<AirMessage> {
    let own = if udhi { Header::split(octets).ok_or(Error::NoHeader)?.0 } else { Header(&[]) };
    let elements = optional.elements(own);
    let mut air = if elements.is_empty() {
        of_octets(data_coding, udhi, octets, reference)?
    } else {
        let text = if udhi { octets.get(own.length()..).unwrap_or_default() } else { octets };
        let length = elements.len() + own.0.len();
        let whole = u8::try_from(length).map(|length| [&[length], &elements[..], own.0, text].concat());
        let whole = whole.map_err(|_| Error::LongWithHeader {
            length,
            limit: crate::MAX_OCTETS,
            unit: Alphabet::Octets.unit(),
        })?;
        of_octets(data_coding, true, &whole, reference)?
    };
    if let Some(class) = optional.class
        && matches!(air.data_coding, 0x00 | 0x04 | 0x08)
    {
        air.data_coding |= CLASS_FOLLOWS | class;
    }
    Ok(air)
}

/// Marks a data coding scheme of the general group whose two lowest bits are the message class (23.038 §4).
const CLASS_FOLLOWS: u8 = 0x10;

fn of_octets(data_coding: u8, udhi: bool, octets: &[u8], reference: ConcatReference) -> Result<AirMessage> {
    let (header, text) =
        if udhi { Header::split(octets).ok_or(Error::NoHeader)? } else { (Header(&[]), octets) };
    let (scheme, text) = match data_coding {
        0 => (0x00, text.to_vec()),
        2 | 4 => (0x04, text.to_vec()),
        8 => (0x08, text.to_vec()),
        1..=15 => encode_text(&read(data_coding, text)?, header.tables()),
        scheme => (scheme, text.to_vec()),
    };
    if !udhi {
        return Ok(AirMessage { data_coding: scheme, segments: split(scheme, &[], &text, reference)? });
    }
    let alphabet = Alphabet::of(scheme);
    let whole = [octets.get(..header.length()).unwrap_or_default(), &text].concat();
    match UserData::pack(alphabet, true, &whole) {
        Ok(packed) => Ok(AirMessage { data_coding: scheme, segments: vec![packed] }),
        Err(Error::LongUserData { .. }) if repeatable(header) => {
            let segments = split(scheme, header.0, &text, reference).map_err(|error| match error {
                Error::NotASeptet { at, octet } => Error::NotASeptet { at: header.length() + at, octet },
                error => error,
            })?;
            Ok(AirMessage { data_coding: scheme, segments })
        }
        Err(Error::LongUserData { length, limit, unit }) => {
            Err(Error::LongWithHeader { length, limit, unit })
        }
        Err(error) => Err(error),
    }
}

/// Whether a header can be repeated in each segment.
fn repeatable(header: Header<'_>) -> bool {
    let mut elements = header.elements().peekable();
    elements.peek().is_some()
        && elements.all(|element| matches!(element.id, SINGLE_SHIFT | LOCKING_SHIFT | PORTS | PORTS_WIDE))
}

/// Encodes the text with these tables if possible, as UTF-16 otherwise: the scheme and the octets.
fn encode_text(text: &str, tables: LanguageTables) -> (u8, Vec<u8>) {
    match alphabet::encode(text, tables) {
        Some(septets) => (0x00, septets),
        None => (0x08, utf16(text)),
    }
}

/// UTF-16, big-endian.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

fn read(data_coding: u8, text: &[u8]) -> Result<String> {
    let with = |encoding: &'static Encoding| {
        encoding.decode_without_bom_handling_and_without_replacement(text).map(std::borrow::Cow::into_owned)
    };
    let text = match data_coding {
        1 if text.is_ascii() => Some(text.iter().copied().map(char::from).collect()),
        1 => None,
        3 => Some(text.iter().copied().map(char::from).collect()),
        6 => with(ISO_8859_5),
        7 => with(ISO_8859_8),
        10 => with(ISO_2022_JP),
        14 => with(EUC_KR),
        15 => with(GB18030),
        _ => return Err(Error::Coding(data_coding)),
    };
    text.ok_or(Error::NotInCoding(data_coding))
}

/// Converts a short message to an SMPP text. It cannot fail: user data with a header indicator but no valid header is
/// text.
#[must_use]
pub fn from_air(data_coding: u8, user_data: &UserData) -> SmppText {
    let alphabet = Alphabet::of(data_coding);
    let data_coding = match (data_coding, alphabet) {
        (0x00..=0x0F, Alphabet::Gsm7) => 0,
        (0x00..=0x0F, Alphabet::Octets) => 4,
        (0x00..=0x0F, Alphabet::Ucs2) => 8,
        (scheme, _) => scheme,
    };
    let udhi = user_data.header(alphabet).is_some();
    SmppText { data_coding, udhi, octets: user_data.unpack(alphabet).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: ConcatReference = ConcatReference::Short(9);

    fn air(data_coding: u8, octets: &[u8]) -> Result<(u8, Vec<u8>)> {
        let air = to_air(data_coding, false, octets, REFERENCE)?;
        let [part] = &air.segments[..] else { panic!("{} parts", air.segments.len()) };
        Ok((air.data_coding, part.unpack(Alphabet::of(air.data_coding))))
    }

    #[test]
    fn default_alphabet_text_becomes_septets() {
        assert_eq!(air(0, b"\x00\x1B\x65"), Ok((0, b"\x00\x1B\x65".to_vec())));
        assert_eq!(air(1, b"@[_]$"), Ok((0, b"\x00\x1B\x3C\x11\x1B\x3E\x02".to_vec())));
        assert_eq!(air(3, b"\xA3\xE9"), Ok((0, b"\x01\x05".to_vec())));
        assert_eq!(air(6, b"1 + 1"), Ok((0, b"1 + 1".to_vec())));
        assert_eq!(air(15, b"abc"), Ok((0, b"abc".to_vec())));
    }

    #[test]
    fn other_text_becomes_utf16() {
        let ucs2 = |text: &str| Ok((8, utf16(text)));
        assert_eq!(air(1, b"a`"), ucs2("a`"));
        assert_eq!(air(3, b"\xE7"), ucs2("ç"));
        assert_eq!(air(6, b"\xBF\xE0\xD8"), ucs2("При"));
        assert_eq!(air(7, b"\xF9\xEC\xE5\xED"), ucs2("שלום"));
        assert_eq!(air(10, b"\x1B$BF|K\\\x1B(B"), ucs2("日本"));
        assert_eq!(air(14, b"\xC7\xD1\xB1\xDB"), ucs2("한글"));
        assert_eq!(air(15, b"\xB2\xE2\xCA\xD4"), ucs2("测试"));
    }

    #[test]
    fn data_and_gsm_coding_schemes_are_unchanged() {
        assert_eq!(air(2, b"\x00\xFF"), Ok((4, b"\x00\xFF".to_vec())));
        assert_eq!(air(4, b"\x00\xFF"), Ok((4, b"\x00\xFF".to_vec())));
        assert_eq!(air(8, b"\xD8\x3D\x00"), Ok((8, b"\xD8\x3D\x00".to_vec())), "an odd octet, half a pair");
        for (scheme, octets) in
            [(0x10, &b"flash"[..]), (0xF5, b"\x00\xFF"), (0xE8, b"\x04\x11"), (0x20, b"\xFF")]
        {
            assert_eq!(air(scheme, octets), Ok((scheme, octets.to_vec())));
        }
    }

    #[test]
    fn unsupported_codings_are_errors() {
        for data_coding in [5, 9, 11, 12, 13] {
            assert_eq!(air(data_coding, b"a"), Err(Error::Coding(data_coding)));
        }
        assert_eq!(air(0, b"ab\xE9"), Err(Error::NotASeptet { at: 2, octet: 0xE9 }));
        assert_eq!(air(1, b"\xE9"), Err(Error::NotInCoding(1)));
        assert_eq!(air(15, b"\xB2"), Err(Error::NotInCoding(15)));
        assert_eq!(air(14, b"\xFF\xFF"), Err(Error::NotInCoding(14)));
    }

    #[test]
    fn text_with_its_own_header() {
        let part = |data_coding, octets: &[u8]| to_air(data_coding, true, octets, REFERENCE);
        let one = part(0, b"\x05\x00\x03\x2D\x02\x01hi").unwrap();
        assert_eq!((one.segments.len(), one.segments[0].length), (1, 9));
        // The text is converted, the header is not.
        let latin1 = part(3, b"\x05\x00\x03\xE9\x02\x01\xE9@").unwrap();
        assert_eq!(latin1.segments[0].unpack(Alphabet::Gsm7), b"\x05\x00\x03\xE9\x02\x01\x05\x00");
        let turkish =
            part(15, &[b"\x03\x24\x01\x01"[..].to_vec(), GB18030.encode("ış").0.to_vec()].concat()).unwrap();
        assert_eq!(turkish.segments[0].unpack(Alphabet::Gsm7), b"\x03\x24\x01\x01\x1B\x69\x1B\x73");
        assert_eq!(part(4, b"\x05\x00"), Err(Error::NoHeader));
        let long = [&b"\x05\x00\x03\x2D\x02\x01"[..], &[0x41; 154]].concat();
        assert_eq!(part(0, &long), Err(Error::LongWithHeader { length: 161, limit: 160, unit: "septets" }));
        assert_eq!(part(0, b"\x00a\x80"), Err(Error::NotASeptet { at: 2, octet: 0x80 }));
    }

    /// Encodes optional parameters in PDU form.
    fn parameters(all: &[(u16, &[u8])]) -> Vec<u8> {
        let one = |(tag, value): &(u16, &[u8])| {
            let length = u16::try_from(value.len()).unwrap();
            [&tag.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
        };
        all.iter().flat_map(one).collect()
    }

    fn with(data_coding: u8, udhi: bool, octets: &[u8], all: &[(u16, &[u8])]) -> Result<AirMessage> {
        to_air_with(data_coding, udhi, octets, REFERENCE, &OptionalParameters::read(&parameters(all)))
    }

    #[test]
    fn sar_and_port_tlvs_become_a_header_and_the_subunit_a_class() {
        let sar: [(u16, &[u8]); 3] = [(0x020C, &[3, 0x2D]), (0x020E, &[2]), (0x020F, &[1])];
        let air = with(0, false, &[b'x'; 153], &sar).unwrap();
        let header = air.segments[0].header(Alphabet::Gsm7).unwrap().concatenation().unwrap();
        assert_eq!((air.segments.len(), header.reference, header.total, header.number), (1, 0x2D, 2, 1));
        assert_eq!(air.segments[0].unpack(Alphabet::Gsm7)[6..], [b'x'; 153]);
        assert!(matches!(with(0, false, &[b'x'; 154], &sar), Err(Error::LongWithHeader { .. })));
        let ports: [(u16, &[u8]); 2] = [(0x020A, &[0x23, 0xF0]), (0x020B, &[0x0B, 0x84])];
        let air = with(4, false, b"\x01\x06", &ports).unwrap();
        assert_eq!(air.segments[0].unpack(Alphabet::Octets), b"\x06\x05\x04\x0B\x84\x23\xF0\x01\x06");
        // A long text repeats them in each segment.
        let air = with(4, false, &[1; 300], &ports).unwrap();
        let of = |part: &UserData| part.header(Alphabet::Octets).and_then(Header::ports);
        assert_eq!(air.segments.iter().map(of).collect::<Vec<_>>(), [Some((2948, 9200)); 3]);
        for (coding, text, scheme) in [(0, &b"hi"[..], 0x10), (4, b"hi", 0x14), (8, b"\0h", 0x18)] {
            assert_eq!(with(coding, false, text, &[(0x0005, &[1])]).unwrap().data_coding, scheme);
        }
        assert_eq!(with(0, false, b"hi", &[(0x0005, &[3])]).unwrap().data_coding, 0x12, "for the SIM");
        assert_eq!(with(3, false, b"\xE7", &[(0x0005, &[1])]).unwrap().data_coding, 0x18);
        // The message's own coding takes precedence.
        assert_eq!(with(0xF1, false, b"hi", &[(0x0005, &[1])]).unwrap().data_coding, 0xF1);
        let own = b"\x05\x00\x03\x2E\x03\x02hi";
        let all = [&sar[..], &ports].concat();
        let part = with(0, true, own, &all).unwrap().segments.remove(0);
        let header = part.header(Alphabet::Gsm7).unwrap();
        assert_eq!((header.concatenation().unwrap().reference, header.ports()), (0x2E, Some((2948, 9200))));
    }

    #[test]
    fn invalid_optional_parameters_are_ignored() {
        let nothing = OptionalParameters::default();
        let read = |all: &[(u16, &[u8])]| OptionalParameters::read(&parameters(all));
        assert_eq!(read(&[(0x020C, &[0, 1]), (0x020E, &[2])]), nothing, "two of three");
        assert_eq!(read(&[(0x020C, &[0, 1]), (0x020E, &[2]), (0x020F, &[3])]), nothing);
        assert_eq!(read(&[(0x020C, &[0, 1]), (0x020E, &[1]), (0x020F, &[1])]), nothing);
        assert_eq!(read(&[(0x0005, &[0]), (0x0005, &[9]), (0x020A, &[1]), (0x1400, b"abc")]), nothing);
        assert_eq!(read(&[(0x020B, &[0x0B, 0x84])]).ports, Some((2948, 0)));
        let whole = parameters(&[(0x0005, &[1]), (0x020B, &[0x0B, 0x84])]);
        for length in 0..whole.len() {
            assert_eq!(OptionalParameters::read(&whole[..length]).ports, None, "{length}");
        }
    }

    #[test]
    fn tables_and_ports_are_repeated_in_every_segment() {
        let long = [&b"\x03\x24\x01\x01"[..], &[0x41; 400]].concat();
        let air = to_air(0, true, &long, ConcatReference::Wide(300)).unwrap();
        assert_eq!(air.segments.len(), 3);
        for part in &air.segments {
            let header = part.header(Alphabet::Gsm7).unwrap();
            assert_eq!(header.tables().single, Some(crate::Language::Turkish));
            assert_eq!(header.concatenation().unwrap().reference, 300);
        }
        let wild = [&b"\x03\x24\x01\x01"[..], &[0x41; 400], &[0x80]].concat();
        assert_eq!(to_air(0, true, &wild, REFERENCE), Err(Error::NotASeptet { at: 404, octet: 0x80 }));
        let none = [&b"\x00"[..], &[0x41; 160]].concat();
        assert!(matches!(to_air(0, true, &none, REFERENCE), Err(Error::LongWithHeader { .. })));
    }

    #[test]
    fn every_coding_scheme_round_trips() {
        for scheme in 0..=255_u8 {
            let alphabet = Alphabet::of(scheme);
            for (udhi, octets) in
                [(false, &b"abcdefg"[..]), (false, b"@"), (true, b"\x05\x00\x03\x2D\x02\x01abc\0")]
            {
                let packed = UserData::pack(alphabet, udhi, octets).unwrap();
                let carried = from_air(scheme, &packed);
                assert_eq!((carried.udhi, &carried.octets[..]), (udhi, octets));
                let back = to_air(carried.data_coding, carried.udhi, &carried.octets, REFERENCE).unwrap();
                assert_eq!(back.segments, [packed]);
                if scheme >= 0x10 || scheme & 3 == 0 && scheme != 0x0C {
                    assert_eq!(back.data_coding, scheme);
                }
                assert_eq!(Alphabet::of(back.data_coding), alphabet);
                assert_eq!(
                    crate::coding::message_class(back.data_coding),
                    crate::coding::message_class(scheme)
                );
            }
        }
    }
}
