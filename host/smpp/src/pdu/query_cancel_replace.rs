//! Requests about a submitted message: query_sm, cancel_sm, replace_sm.

use super::sm::{check_single_text, fits_text, put_short_message, short_message};
use crate::wire::{BodyError, Reader, fits, fits_time, put_address, put_c_string};
use crate::{CommandStatus, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// query_sm (34 §4.8.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuerySm {
    /// The message id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
}

impl QuerySm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            message_id: reader.c_string(
                65,
                CommandStatus::RINVMSGID,
                "message_id has more than 64 octets",
            )?,
            source: reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.message_id, 65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        fits(&self.source.value, 21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
    }
}

/// query_sm_resp (34 §4.8.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuerySmResp {
    /// The message id.
    pub message_id: Bytes,
    /// Empty while the message is not final.
    pub final_date: Bytes,
    /// message_state (34 §5.2.28).
    pub message_state: u8,
    /// The network's error code; 0 for none.
    pub error_code: u8,
}

impl QuerySmResp {
    /// `None` if the body ends before the state: such a response does not describe the message.
    pub(crate) fn decode(mut reader: Reader) -> Option<Self> {
        Some(Self {
            message_id: reader.lenient_c_string(),
            final_date: reader.lenient_c_string(),
            message_state: reader.u8().ok()?,
            error_code: reader.u8().unwrap_or_default(),
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_c_string(out, &self.final_date, 17);
        out.put_slice(&[self.message_state, self.error_code]);
    }
}

/// cancel_sm (34 §4.9.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CancelSm {
    /// Limits a cancel without id.
    pub service_type: Bytes,
    /// The message id; empty: all messages from source to destination.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// The destination of the submission.
    pub destination: Address,
}

impl CancelSm {
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
            destination: reader.address(
                21,
                CommandStatus::RINVDSTADR,
                "destination_addr has more than 20 octets",
            )?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.service_type, 6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
        fits(&self.message_id, 65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        fits(&self.source.value, 21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?;
        fits(
            &self.destination.value,
            21,
            CommandStatus::RINVDSTADR,
            "destination_addr has more than 20 octets",
        )
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        put_address(out, &self.destination, 21);
    }
}

/// replace_sm (34 §4.10.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReplaceSm {
    /// The message id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// Empty, or a time.
    pub schedule_delivery_time: Bytes,
    /// Empty, or a time.
    pub validity_period: Bytes,
    /// As in submit_sm.
    pub registered_delivery: u8,
    /// As in submit_sm.
    pub sm_default_msg_id: u8,
    /// The new text.
    pub short_message: Bytes,
    /// 5.0: message_payload.
    pub tlvs: Tlvs,
}

impl ReplaceSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        let message_id =
            reader.c_string(65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        let source = reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?;
        let schedule_delivery_time = reader.c_string(
            17,
            CommandStatus::RINVSCHED,
            "schedule_delivery_time has more than 16 octets",
        )?;
        let validity_period =
            reader.c_string(17, CommandStatus::RINVEXPIRY, "validity_period has more than 16 octets")?;
        let replace = Self {
            message_id,
            source,
            schedule_delivery_time,
            validity_period,
            registered_delivery: reader.u8()?,
            sm_default_msg_id: reader.u8()?,
            short_message: short_message(&mut reader)?,
            tlvs: Tlvs::decode(reader.rest())?,
        };
        check_single_text(&replace.short_message, &replace.tlvs)?;
        Ok(replace)
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.message_id, 65, CommandStatus::RINVMSGID, "message_id has more than 64 octets")?;
        fits(&self.source.value, 21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?;
        fits_time(
            &self.schedule_delivery_time,
            CommandStatus::RINVSCHED,
            "schedule_delivery_time has not 16 octets",
        )?;
        fits_time(&self.validity_period, CommandStatus::RINVEXPIRY, "validity_period has not 16 octets")?;
        fits_text(&self.short_message, &self.tlvs)
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        put_c_string(out, &self.schedule_delivery_time, 17);
        put_c_string(out, &self.validity_period, 17);
        out.put_slice(&[self.registered_delivery, self.sm_default_msg_id]);
        put_short_message(out, &self.short_message);
        out.put_slice(self.tlvs.raw());
    }
}
