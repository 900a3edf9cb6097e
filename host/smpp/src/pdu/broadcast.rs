//! The broadcast family of 5.0.

use crate::wire::{BodyError, Reader, fits, fits_time, put_address, put_c_string};
use crate::{CommandStatus, Tlvs, tag};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// broadcast_sm (5.0).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BroadcastSm {
    /// At most 5 octets.
    pub service_type: Bytes,
    /// At most 20 octets.
    pub source: Address,
    /// The id of a message to be replaced.
    pub message_id: Bytes,
    /// 0 to 4.
    pub priority_flag: u8,
    /// Empty, or a time.
    pub schedule_delivery_time: Bytes,
    /// Empty, or a time.
    pub validity_period: Bytes,
    /// As in submit_sm.
    pub replace_if_present: u8,
    /// As in submit_sm.
    pub data_coding: u8,
    /// As in submit_sm.
    pub sm_default_msg_id: u8,
    /// Areas, content type, repetitions, frequency, text.
    pub tlvs: Tlvs,
}

impl BroadcastSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(
                6,
                CommandStatus::RINVSERTYP,
                "service_type has more than 5 octets",
            )?,
            source: reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?,
            message_id: reader.c_string(
                65,
                CommandStatus::RINVMSGID,
                "message_id has more than 64 octets",
            )?,
            priority_flag: reader.u8()?,
            schedule_delivery_time: reader.c_string(
                17,
                CommandStatus::RINVSCHED,
                "schedule_delivery_time has more than 16 octets",
            )?,
            validity_period: reader.c_string(
                17,
                CommandStatus::RINVEXPIRY,
                "validity_period has more than 16 octets",
            )?,
            replace_if_present: reader.u8()?,
            data_coding: reader.u8()?,
            sm_default_msg_id: reader.u8()?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.service_type, 6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
        fits(&self.source.value, 21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?;
        fits(&self.message_id, 65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        fits_time(
            &self.schedule_delivery_time,
            CommandStatus::RINVSCHED,
            "schedule_delivery_time has not 16 octets",
        )?;
        fits_time(&self.validity_period, CommandStatus::RINVEXPIRY, "validity_period has not 16 octets")
    }

    /// The number of broadcasts. Implementations disagree on the length of this TLV: one octet or two.
    #[must_use]
    pub fn repetitions(&self) -> Option<u16> {
        match self.tlvs.value(tag::BROADCAST_REP_NUM)? {
            [octet] => Some((*octet).into()),
            [high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_address(out, &self.source, 21);
        put_c_string(out, &self.message_id, 65);
        out.put_u8(self.priority_flag);
        put_c_string(out, &self.schedule_delivery_time, 17);
        put_c_string(out, &self.validity_period, 17);
        out.put_slice(&[self.replace_if_present, self.data_coding, self.sm_default_msg_id]);
        out.put_slice(self.tlvs.raw());
    }
}

/// query_broadcast_sm (5.0).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueryBroadcastSm {
    /// The message id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// user_message_reference.
    pub tlvs: Tlvs,
}

impl QueryBroadcastSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            message_id: reader.c_string(
                65,
                CommandStatus::RINVMSGID,
                "message_id has more than 64 octets",
            )?,
            source: reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.message_id, 65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        fits(&self.source.value, 21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        out.put_slice(self.tlvs.raw());
    }
}

/// cancel_broadcast_sm (5.0).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CancelBroadcastSm {
    /// Limits a cancel without id.
    pub service_type: Bytes,
    /// The message id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// broadcast_content_type, user_message_reference.
    pub tlvs: Tlvs,
}

impl CancelBroadcastSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(
                6,
                CommandStatus::RINVSERTYP,
                "service_type has more than 5 octets",
            )?,
            message_id: reader.c_string(
                65,
                CommandStatus::RINVMSGID,
                "message_id has more than 64 octets",
            )?,
            source: reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.service_type, 6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
        fits(&self.message_id, 65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        fits(&self.source.value, 21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        out.put_slice(self.tlvs.raw());
    }
}
