//! The optional fields after a body: tag, length of the value, value (SMGP 3.0.3 §6.3).

use bytes::{BufMut, Bytes, BytesMut};
use sp_session::{DecodeError, PduReader};

/// Tags of optional fields.
#[expect(missing_docs, reason = "the names of the specification")]
pub mod tag {
    pub const TP_PID: u16 = 0x0001;
    pub const TP_UDHI: u16 = 0x0002;
    pub const LINK_ID: u16 = 0x0003;
    pub const CHARGE_USER_TYPE: u16 = 0x0004;
    pub const PK_TOTAL: u16 = 0x0009;
    pub const PK_NUMBER: u16 = 0x000A;
    pub const MSG_SRC: u16 = 0x0010;
    pub const M_SERVICE_ID: u16 = 0x0012;
}

/// The optional fields of a PDU, in order, including unknown ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SmgpTlvs(pub Vec<(u16, Bytes)>);

/// Status 10: the structure of the message is wrong.
const STATUS_STRUCTURE: u32 = 10;

impl SmgpTlvs {
    /// The value of a tag; the last one if the tag is repeated.
    #[must_use]
    pub fn get(&self, tag: u16) -> Option<&Bytes> {
        self.0.iter().rev().find(|(other, _)| *other == tag).map(|(_, value)| value)
    }

    /// The value of a tag as a number of one octet.
    #[must_use]
    pub fn octet(&self, tag: u16) -> Option<u8> {
        self.get(tag)?.first().copied()
    }

    /// The value of a tag as text: up to its first NUL.
    #[must_use]
    pub fn text(&self, tag: u16) -> Bytes {
        let Some(value) = self.get(tag) else { return Bytes::new() };
        PduReader::new(value).last_text(value.len())
    }

    /// Adds a number of one octet.
    pub fn put_octet(&mut self, tag: u16, value: u8) {
        self.0.push((tag, Bytes::copy_from_slice(&[value])));
    }

    /// Adds a text, padded with NULs to `width` octets. An empty text is not added.
    pub fn put_text(&mut self, tag: u16, text: &[u8], width: usize) {
        if !text.is_empty() {
            let mut value = text.to_vec();
            value.resize(width.max(text.len()), 0);
            self.0.push((tag, value.into()));
        }
    }

    /// The octets on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        for (tag, value) in &self.0 {
            out.put_u16(*tag);
            out.put_u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
            out.put_slice(value);
        }
        out.freeze()
    }

    pub(crate) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        let mut tlvs = Vec::new();
        while reader.remaining() > 0 {
            let mut one = || {
                let tag = u16::from_be_bytes(reader.array("Tag")?);
                let length = u16::from_be_bytes(reader.array("Length")?);
                let value = reader.take(usize::from(length), "Value")?;
                Ok((tag, Bytes::copy_from_slice(value)))
            };
            // The PDU is whole, so this is an error of its content.
            let one: Result<_, DecodeError> = one();
            tlvs.push(one.map_err(|_| DecodeError::Invalid(STATUS_STRUCTURE))?);
        }
        Ok(Self(tlvs))
    }
}

/// Reads octets that [`SmgpTlvs::to_bytes`] has written.
pub(crate) fn read_all(octets: &Bytes) -> Vec<(u16, Bytes)> {
    SmgpTlvs::decode(&mut PduReader::new(octets)).map(|tlvs| tlvs.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_16_optional_fields_in_any_order() {
        let octets = [0, 3, 0, 2, b'A', 0, 0x7F, 1, 0, 0, 0, 2, 0, 1, 0, 0, 2, 0, 1, 1];
        let tlvs = SmgpTlvs::decode(&mut PduReader::new(&octets)).unwrap();
        assert_eq!(tlvs.octet(tag::TP_UDHI), Some(1), "the last one counts");
        assert_eq!(tlvs.text(tag::LINK_ID), "A");
        assert_eq!(tlvs.get(0x7F01), Some(&Bytes::new()));
        assert_eq!(tlvs.to_bytes(), octets[..], "unknown and repeated ones are kept");
        assert_eq!(SmgpTlvs::decode(&mut PduReader::new(&[])), Ok(SmgpTlvs::default()));
        for cut in [1, 3, 5, octets.len() - 1] {
            let result = SmgpTlvs::decode(&mut PduReader::new(&octets[..cut]));
            assert_eq!(result, Err(DecodeError::Invalid(10)), "{cut}");
        }
    }
}
