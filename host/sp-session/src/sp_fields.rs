//! Fields of CMPP and SMGP that other protocols do not have. They are stored with the message as additional TLVs, so
//! that they survive between an SP's Submit and a gateway's.

use bytes::{BufMut, Bytes, BytesMut};
use std::ops::RangeInclusive;

/// Tags of these fields; SGIP's fields use others.
pub const TAGS: RangeInclusive<u16> = 0x1520..=0x152F;

/// The fields, each as on the wire; empty if not set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpFields {
    /// The message id at the SP, to which the status report refers.
    pub submission: Bytes,
    /// The business code: at most 10 characters.
    pub service: Bytes,
    /// The payer: one octet, 0 the destination, 1 the source, 2 the SP, 3 the number in `payer`.
    pub payer_type: Bytes,
    /// The number that pays.
    pub payer: Bytes,
    /// The kind of the charge, in CMPP's form: 01 free, 02 per message, 03 monthly, 04 capped, 05 charged by the SP.
    pub fee_type: Bytes,
    /// The price of the message in fen: at most six digits.
    pub fee_code: Bytes,
    /// SMGP: the price of a month in fen.
    pub fixed_fee: Bytes,
    /// The SP's enterprise code.
    pub sp_code: Bytes,
    /// Id that the messages of one transaction share.
    pub link_id: Bytes,
    /// SMGP: the product that is charged for.
    pub product: Bytes,
    /// SMGP: TLVs without a field here, as on the wire.
    pub more: Bytes,
}

/// Access to a field, for reading and writing.
type FieldAccessor = fn(&mut SpFields) -> &mut Bytes;

/// The fields, in the order of their tags.
const FIELDS: [FieldAccessor; 11] = [
    |fields| &mut fields.submission,
    |fields| &mut fields.service,
    |fields| &mut fields.payer_type,
    |fields| &mut fields.payer,
    |fields| &mut fields.fee_type,
    |fields| &mut fields.fee_code,
    |fields| &mut fields.fixed_fee,
    |fields| &mut fields.sp_code,
    |fields| &mut fields.link_id,
    |fields| &mut fields.product,
    |fields| &mut fields.more,
];

impl SpFields {
    /// Appends the fields that are set as TLVs: two octets tag, two length, value.
    pub fn append_to(&self, tlvs: &mut BytesMut) {
        let mut fields = self.clone();
        for (accessor, tag) in FIELDS.iter().zip(TAGS) {
            let value = accessor(&mut fields);
            let Ok(length) = u16::try_from(value.len()) else { continue };
            if length > 0 {
                tlvs.put_u16(tag);
                tlvs.put_u16(length);
                tlvs.put_slice(value);
            }
        }
    }

    /// Reads the fields from a message's TLVs. Other TLVs are ignored; a malformed one ends the reading.
    #[must_use]
    pub fn read(tlvs: &Bytes) -> Self {
        let mut fields = Self::default();
        for (tag, value) in model::tlvs(tlvs) {
            let index = TAGS.contains(&tag).then(|| usize::from(tag - TAGS.start()));
            if let Some(accessor) = index.and_then(|index| FIELDS.get(index)) {
                *accessor(&mut fields) = tlvs.slice_ref(value);
            }
        }
        fields
    }

    /// These fields; fields that are not set are taken from `defaults`.
    #[must_use]
    pub fn or(mut self, defaults: &Self) -> Self {
        let mut defaults = defaults.clone();
        for accessor in FIELDS {
            let default = std::mem::take(accessor(&mut defaults));
            let own = accessor(&mut self);
            if own.is_empty() {
                *own = default;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn octets() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    proptest! {
        #[test]
        fn fields_survive_as_tlvs(values in prop::collection::vec(octets(), FIELDS.len())) {
            let mut fields = SpFields::default();
            for (accessor, value) in FIELDS.iter().zip(&values) {
                *accessor(&mut fields) = value.clone();
            }
            let mut tlvs = BytesMut::from(&[0x02, 0x0C, 0, 2, 1, 2][..]);
            fields.append_to(&mut tlvs);
            prop_assert_eq!(SpFields::read(&tlvs.freeze()), fields);
        }

        #[test]
        fn any_octets_can_be_read(octets in octets()) {
            let _ = SpFields::read(&octets);
        }
    }

    #[test]
    fn sgip_does_not_read_these_fields_as_its_own() {
        let mut fields = SpFields::default();
        FIELDS.iter().for_each(|accessor| *accessor(&mut fields) = "1".into());
        let mut octets = BytesMut::new();
        fields.append_to(&mut octets);
        assert_eq!(sgip::SgipFields::read(&octets.freeze()), sgip::SgipFields::default());
    }

    #[test]
    fn set_fields_have_precedence_over_defaults() {
        let defaults = SpFields { fee_type: "01".into(), service: "A".into(), ..SpFields::default() };
        let own = SpFields { service: "B".into(), ..SpFields::default() };
        assert_eq!(
            own.or(&defaults),
            SpFields { fee_type: "01".into(), service: "B".into(), ..SpFields::default() }
        );
    }
}
