//! The fields of SGIP messages that SMPP does not have. They are stored with the message in the form of TLVs, but apart
//! from its SMPP TLVs, so that they are preserved from an SP's Submit to a gateway's Submit.

use crate::{Sequence, Submit};
use bytes::{BufMut, Bytes, BytesMut};

const CHARGE_NUMBER: u16 = 0x1501;
const CORP_ID: u16 = 0x1502;
const SERVICE_TYPE: u16 = 0x1503;
const FEE_TYPE: u16 = 0x1504;
const FEE_VALUE: u16 = 0x1505;
const GIVEN_VALUE: u16 = 0x1506;
const AGENT_FLAG: u16 = 0x1507;
const MO_RELATED: u16 = 0x1508;
const PRIORITY: u16 = 0x1509;
const REPORT_FLAG: u16 = 0x150A;
const MESSAGE_TYPE: u16 = 0x150B;
const RESERVE: u16 = 0x150C;
const SEQUENCE: u16 = 0x150D;
const REFERENCE: u16 = 0x150E;

/// The fields, each as on the wire; `None` if not set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SgipFields {
    /// See [`Submit::charge_number`].
    pub charge_number: Option<Bytes>,
    /// See [`Submit::corp_id`].
    pub corp_id: Option<Bytes>,
    /// See [`Submit::service_type`]; longer than SMPP's.
    pub service_type: Option<Bytes>,
    /// See [`Submit::fee_type`].
    pub fee_type: Option<u8>,
    /// See [`Submit::fee_value`].
    pub fee_value: Option<Bytes>,
    /// See [`Submit::given_value`].
    pub given_value: Option<Bytes>,
    /// See [`Submit::agent_flag`].
    pub agent_flag: Option<u8>,
    /// See [`Submit::mo_related`].
    pub mo_related: Option<u8>,
    /// See [`Submit::priority`]; SMPP has four levels.
    pub priority: Option<u8>,
    /// See [`Submit::report_flag`].
    pub report_flag: Option<u8>,
    /// See [`Submit::message_type`].
    pub message_type: Option<u8>,
    /// See [`Submit::reserve`]: the LinkID.
    pub reserve: Option<[u8; 8]>,
    /// The sequence of the SP's Submit, which a Report to the SP names.
    pub sequence: Option<Sequence>,
    /// The submitter's own reference of the message, at most 255 octets; never sent over SGIP.
    pub reference: Option<Bytes>,
}

impl SgipFields {
    /// Reads the fields of a Submit.
    #[must_use]
    pub fn of(submit: &Submit, sequence: Sequence) -> Self {
        Self {
            charge_number: Some(submit.charge_number.clone()),
            corp_id: Some(submit.corp_id.clone()),
            service_type: Some(submit.service_type.clone()),
            fee_type: Some(submit.fee_type),
            fee_value: Some(submit.fee_value.clone()),
            given_value: Some(submit.given_value.clone()),
            agent_flag: Some(submit.agent_flag),
            mo_related: Some(submit.mo_related),
            priority: Some(submit.priority),
            report_flag: Some(submit.report_flag),
            message_type: Some(submit.message_type),
            reserve: (submit.reserve != [0; 8]).then_some(submit.reserve),
            sequence: Some(sequence),
            reference: None,
        }
    }

    /// Writes the fields that are set into a Submit.
    pub fn put_into(&self, submit: &mut Submit) {
        fn set<T: Clone>(field: &mut T, said: Option<&T>) {
            if let Some(said) = said {
                field.clone_from(said);
            }
        }
        set(&mut submit.charge_number, self.charge_number.as_ref());
        set(&mut submit.corp_id, self.corp_id.as_ref());
        set(&mut submit.service_type, self.service_type.as_ref());
        set(&mut submit.fee_type, self.fee_type.as_ref());
        set(&mut submit.fee_value, self.fee_value.as_ref());
        set(&mut submit.given_value, self.given_value.as_ref());
        set(&mut submit.agent_flag, self.agent_flag.as_ref());
        set(&mut submit.mo_related, self.mo_related.as_ref());
        set(&mut submit.priority, self.priority.as_ref());
        set(&mut submit.report_flag, self.report_flag.as_ref());
        set(&mut submit.message_type, self.message_type.as_ref());
        set(&mut submit.reserve, self.reserve.as_ref());
    }

    /// Appends the fields as TLVs: two octets tag, two length, value.
    pub fn append_to(&self, tlvs: &mut BytesMut) {
        let mut put = |tag: u16, value: &[u8]| {
            let value = value.get(..255).unwrap_or(value);
            tlvs.put_u16(tag);
            tlvs.put_u16(u16::try_from(value.len()).unwrap_or(0));
            tlvs.put_slice(value);
        };
        let texts = [
            (CHARGE_NUMBER, &self.charge_number),
            (CORP_ID, &self.corp_id),
            (SERVICE_TYPE, &self.service_type),
            (FEE_VALUE, &self.fee_value),
            (GIVEN_VALUE, &self.given_value),
            (REFERENCE, &self.reference),
        ];
        for (tag, value) in texts {
            if let Some(value) = value {
                put(tag, value);
            }
        }
        let octets = [
            (FEE_TYPE, self.fee_type),
            (AGENT_FLAG, self.agent_flag),
            (MO_RELATED, self.mo_related),
            (PRIORITY, self.priority),
            (REPORT_FLAG, self.report_flag),
            (MESSAGE_TYPE, self.message_type),
        ];
        for (tag, value) in octets {
            if let Some(value) = value {
                put(tag, &[value]);
            }
        }
        if let Some(reserve) = &self.reserve {
            put(RESERVE, reserve);
        }
        if let Some(sequence) = self.sequence {
            put(SEQUENCE, &sequence.octets());
        }
    }

    /// Reads the fields from a message's TLVs. Other TLVs are ignored; a malformed one ends the reading.
    #[must_use]
    pub fn read(tlvs: &Bytes) -> Self {
        let mut fields = Self::default();
        for (tag, value) in model::tlvs(tlvs) {
            let value = tlvs.slice_ref(value);
            let octet = value.first().copied();
            match tag {
                CHARGE_NUMBER => fields.charge_number = Some(value),
                CORP_ID => fields.corp_id = Some(value),
                SERVICE_TYPE => fields.service_type = Some(value),
                FEE_TYPE => fields.fee_type = octet,
                FEE_VALUE => fields.fee_value = Some(value),
                GIVEN_VALUE => fields.given_value = Some(value),
                AGENT_FLAG => fields.agent_flag = octet,
                MO_RELATED => fields.mo_related = octet,
                PRIORITY => fields.priority = octet,
                REPORT_FLAG => fields.report_flag = octet,
                MESSAGE_TYPE => fields.message_type = octet,
                RESERVE => fields.reserve = value[..].try_into().ok(),
                SEQUENCE => fields.sequence = value[..].try_into().ok().map(Sequence::from_octets),
                REFERENCE => fields.reference = Some(value),
                _ => {}
            }
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_17_the_fields_of_a_submit_round_trip_as_tlvs() {
        let submit = Submit {
            charge_number: "000000000000000000000".into(),
            corp_id: "12345".into(),
            service_type: "TEN-OCTETS".into(),
            fee_type: 2,
            fee_value: "10".into(),
            mo_related: 1,
            priority: 9,
            report_flag: 1,
            reserve: *b"LINK-ID1",
            ..Submit::default()
        };
        let sequence = Sequence { node: 1, time: 2, counter: 3 };
        let mut tlvs = BytesMut::from(&[0x02, 0x04, 0, 2, 9, 9][..]);
        SgipFields::of(&submit, sequence).append_to(&mut tlvs);
        let tlvs = tlvs.freeze();
        let fields = SgipFields::read(&tlvs);
        assert_eq!(fields, SgipFields::of(&submit, sequence));
        let mut again = Submit::default();
        fields.put_into(&mut again);
        assert_eq!(again, submit);
        assert_eq!(SgipFields::read(&tlvs.slice(..6)), SgipFields::default());
        assert_eq!(SgipFields::read(&Bytes::from_static(&[0x15, 0x0C, 0, 9, 1])), SgipFields::default());
    }
}
