//! TP-User-Data in wire format (3GPP TS 23.040 §9.2.3.24).

use crate::coding::Alphabet;
use crate::header::Header;
use crate::wire::Reader;
use crate::{Error, Result, septets};
use bytes::Bytes;

/// Maximum octets of user data in SMS-SUBMIT and SMS-DELIVER.
pub const MAX_OCTETS: usize = 140;

/// User data: TP-UDHI, TP-UDL and TP-UD. Its meaning depends on the data coding scheme.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct UserData {
    /// Whether a header precedes the text, if its length is valid: see [`header`](Self::header).
    pub udhi: bool,
    /// TP-UDL: septets for [`Alphabet::Gsm7`], including header and fill bits; octets otherwise.
    pub length: u8,
    /// TP-UD, packed.
    pub octets: Bytes,
}

impl UserData {
    /// Packs a text. If `udhi` is set, `text` begins with a header. The text of [`Alphabet::Gsm7`] has one septet per
    /// octet.
    ///
    /// # Errors
    /// [`Error::NoHeader`] if `udhi` is set and there is no header, [`Error::NotASeptet`], and [`Error::LongUserData`]
    /// if the result exceeds 140 octets.
    ///
    /// ```
    /// use tpdu::{Alphabet, UserData};
    ///
    /// let packed = UserData::pack(Alphabet::Gsm7, false, b"hellohello")?;
    /// assert_eq!((packed.length, packed.octets.len()), (10, 9));
    /// assert_eq!(packed.unpack(Alphabet::Gsm7), b"hellohello");
    /// # Ok::<(), tpdu::Error>(())
    /// ```
    pub fn pack(alphabet: Alphabet, udhi: bool, text: &[u8]) -> Result<Self> {
        let (header, text) = if udhi {
            let (header, rest) = Header::split(text).ok_or(Error::NoHeader)?;
            (text.get(..header.length()).unwrap_or_default(), rest)
        } else {
            (&[][..], text)
        };
        let length = alphabet.header_units(header.len()) + text.len();
        let short = u8::try_from(length).ok().filter(|length| usize::from(*length) <= alphabet.limit());
        let Some(short) = short else {
            return Err(Error::LongUserData { length, limit: alphabet.limit(), unit: alphabet.unit() });
        };
        let mut octets = Vec::with_capacity(MAX_OCTETS);
        octets.extend_from_slice(header);
        if alphabet == Alphabet::Gsm7 {
            if let Some(at) = text.iter().position(|octet| *octet > 0x7F) {
                return Err(Error::NotASeptet { at: header.len() + at, octet: text[at] });
            }
            septets::pack_at(&mut octets, septets::septets_for(header.len()) * 7, text.iter().copied());
            // Without text, the fill bits may need an octet of their own.
            octets.resize(septets::octets_for(length), 0);
        } else {
            octets.extend_from_slice(text);
        }
        Ok(Self { udhi, length: short, octets: octets.into() })
    }

    /// The header; `None` if there is none or its length exceeds the user data. An invalid header must be ignored, and
    /// the octets are text.
    #[must_use]
    pub fn header(&self, alphabet: Alphabet) -> Option<Header<'_>> {
        let (header, _) = self.udhi.then(|| Header::split(&self.octets)).flatten()?;
        (alphabet.header_units(header.length()) <= usize::from(self.length)).then_some(header)
    }

    /// The text after the header; for [`Alphabet::Gsm7`] one septet per octet.
    #[must_use]
    pub fn text(&self, alphabet: Alphabet) -> Vec<u8> {
        let header = self.header(alphabet).map_or(0, Header::length);
        if alphabet == Alphabet::Gsm7 {
            let skipped = septets::septets_for(header);
            let count = usize::from(self.length).saturating_sub(skipped);
            return septets::unpack(&self.octets, skipped * 7, count);
        }
        let end = usize::from(self.length).min(self.octets.len());
        self.octets.get(header..end).unwrap_or_default().to_vec()
    }

    /// The header, if any, and the text, in the form that [`pack`](Self::pack) takes, with `udhi` set if
    /// [`header`](Self::header) returns one. Packing it again gives the same octets, except for unused bits.
    #[must_use]
    pub fn unpack(&self, alphabet: Alphabet) -> Vec<u8> {
        let header = self.header(alphabet).map_or(0, Header::length);
        let mut octets = self.octets.get(..header).unwrap_or_default().to_vec();
        octets.extend(self.text(alphabet));
        octets
    }

    /// `limit`: maximum number of octets.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        udhi: bool,
        alphabet: Alphabet,
        limit: usize,
    ) -> Result<Self> {
        let length = reader.u8("user data length")?;
        let count = alphabet.octets(usize::from(length));
        if count > limit {
            return Err(Error::LongUserData { length: count, limit, unit: "octets" });
        }
        Ok(Self { udhi, length, octets: Bytes::copy_from_slice(reader.take(count, "user data")?) })
    }

    pub(crate) fn write(&self, alphabet: Alphabet, limit: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.octets.len() != alphabet.octets(usize::from(self.length)) {
            return Err(Error::Inconsistent { length: self.length, octets: self.octets.len() });
        }
        if self.octets.len() > limit {
            return Err(Error::LongUserData { length: self.octets.len(), limit, unit: "octets" });
        }
        out.push(self.length);
        out.extend_from_slice(&self.octets);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_a_header_is_septet_aligned() {
        let text = [&[5, 0, 3, 0x2D, 2, 1][..], b"hi"].concat();
        let packed = UserData::pack(Alphabet::Gsm7, true, &text).unwrap();
        // Six octets are 48 bits; one fill bit makes 49 bits, seven septets.
        assert_eq!(packed.length, 9);
        assert_eq!(packed.octets[..], [5, 0, 3, 0x2D, 2, 1, b'h' << 1, b'i']);
        assert_eq!(packed.unpack(Alphabet::Gsm7), text);
        assert_eq!(packed.text(Alphabet::Gsm7), b"hi");
        assert_eq!(packed.header(Alphabet::Gsm7).unwrap().concatenation().unwrap().total, 2);
    }

    #[test]
    fn user_data_limits_are_exact() {
        let header = |length: u8| -> Vec<u8> {
            let data = length.saturating_sub(2);
            [&[length, 0x70, data][..], &vec![0; usize::from(data)]].concat()
        };
        for (length, septets, octets) in [(5, 153, 134), (6, 152, 133), (3, 155, 136)] {
            for (alphabet, room) in
                [(Alphabet::Gsm7, septets), (Alphabet::Octets, octets), (Alphabet::Ucs2, octets)]
            {
                let text = [header(length), vec![0x55; room]].concat();
                let packed = UserData::pack(alphabet, true, &text).unwrap();
                assert!(packed.octets.len() <= MAX_OCTETS && usize::from(packed.length) == alphabet.limit());
                assert_eq!(packed.unpack(alphabet), text);
                let more = [text, vec![0x55]].concat();
                assert!(matches!(UserData::pack(alphabet, true, &more), Err(Error::LongUserData { .. })));
            }
        }
        assert_eq!(UserData::pack(Alphabet::Gsm7, false, &[0x41; 160]).unwrap().octets.len(), 140);
        assert!(UserData::pack(Alphabet::Gsm7, false, &[0x41; 161]).is_err());
        assert!(UserData::pack(Alphabet::Octets, false, &[0x41; 10_000]).is_err());
        assert_eq!(UserData::pack(Alphabet::Ucs2, false, b""), Ok(UserData::default()));
    }

    #[test]
    fn invalid_header_is_text() {
        assert_eq!(UserData::pack(Alphabet::Octets, true, &[9, 0, 3]), Err(Error::NoHeader));
        assert_eq!(UserData::pack(Alphabet::Gsm7, true, &[]), Err(Error::NoHeader));
        let wild = UserData { udhi: true, length: 3, octets: Bytes::from_static(&[9, 0, 3]) };
        assert_eq!((wild.header(Alphabet::Octets), wild.unpack(Alphabet::Octets)), (None, vec![9, 0, 3]));
        // A header of six octets needs seven septets.
        let short = UserData { udhi: true, length: 6, octets: Bytes::from_static(&[5, 0, 3, 1, 2, 1]) };
        assert_eq!((short.header(Alphabet::Gsm7), short.text(Alphabet::Gsm7).len()), (None, 6));
    }

    #[test]
    fn header_without_text_has_fill_bits() {
        for length in 1..=139_u8 {
            let header = [&[length][..], &vec![0xAA; usize::from(length)]].concat();
            for alphabet in [Alphabet::Gsm7, Alphabet::Octets] {
                let packed = UserData::pack(alphabet, true, &header).unwrap();
                assert_eq!(packed.octets.len(), alphabet.octets(usize::from(packed.length)));
                assert_eq!(packed.unpack(alphabet), header);
            }
        }
    }

    #[test]
    fn invalid_septet_is_reported_with_its_position() {
        let error = UserData::pack(Alphabet::Gsm7, true, &[0, b'a', 0xE9]).unwrap_err();
        assert_eq!(error, Error::NotASeptet { at: 2, octet: 0xE9 });
    }
}
