use crate::wire::{BodyError, Reader, fits, fits_time, put_address, put_c_string};
use crate::{CommandStatus, Tlvs, tag};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// The most octets that short_message may hold (34 §5.2.21).
pub const MAX_SHORT_MESSAGE: usize = 254;

/// The body that submit_sm and deliver_sm share (34 §4.4.1, §4.6.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sm {
    /// At most 5 octets.
    pub service_type: Bytes,
    /// At most 20 octets.
    pub source: Address,
    /// At most 20 octets.
    pub destination: Address,
    /// Message mode, type and GSM features (34 §5.2.12).
    pub esm_class: u8,
    /// TP-PID.
    pub protocol_id: u8,
    /// 0 to 3.
    pub priority_flag: u8,
    /// Empty, or a time (34 §7.1.1).
    pub schedule_delivery_time: Bytes,
    /// Empty, or a time.
    pub validity_period: Bytes,
    /// registered_delivery: the requested DLRs (34 §5.2.17).
    pub registered_delivery: u8,
    /// Whether to replace a waiting message with the same addresses and service type.
    pub replace_if_present: u8,
    /// The coding of the text (34 §5.2.19).
    pub data_coding: u8,
    /// The id of a predefined text; 0 for none.
    pub sm_default_msg_id: u8,
    /// At most 254 octets; empty if the text is in message_payload.
    pub short_message: Bytes,
    /// TLVs.
    pub tlvs: Tlvs,
}

/// Reads sm_length and short_message.
pub(super) fn short_message(reader: &mut Reader) -> Result<Bytes, BodyError> {
    let length = usize::from(reader.u8()?);
    if length > MAX_SHORT_MESSAGE {
        return Err(BodyError::new(CommandStatus::RINVMSGLEN, "sm_length is above 254"));
    }
    reader
        .take(length)
        .map_err(|_| BodyError::new(CommandStatus::RINVMSGLEN, "short_message ends before sm_length"))
}

pub(super) fn put_short_message(out: &mut BytesMut, text: &[u8]) {
    let text = text.get(..MAX_SHORT_MESSAGE).unwrap_or(text);
    out.put_u8(text.len() as u8);
    out.put_slice(text);
}

/// Checks that the text is in one place only (34 §5.3.2.32). An empty payload does not conflict with a short_message.
pub(super) fn check_single_text(short_message: &[u8], tlvs: &Tlvs) -> Result<(), BodyError> {
    if !short_message.is_empty() && tlvs.value(tag::MESSAGE_PAYLOAD).is_some_and(|text| !text.is_empty()) {
        return Err(BodyError::new(
            CommandStatus::RINVMSGLEN,
            "short_message and message_payload are both there",
        ));
    }
    Ok(())
}

pub(super) fn fits_text(short_message: &[u8], tlvs: &Tlvs) -> Result<(), BodyError> {
    if short_message.len() > MAX_SHORT_MESSAGE {
        return Err(BodyError::new(CommandStatus::RINVMSGLEN, "short_message has more than 254 octets"));
    }
    check_single_text(short_message, tlvs)
}

impl Sm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        let service_type =
            reader.c_string(6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
        let source = reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?;
        let destination =
            reader.address(21, CommandStatus::RINVDSTADR, "destination_addr has more than 20 octets")?;
        Self::decode_from_esm_class(reader, service_type, source, destination)
    }

    /// Decodes the fields that submit_multi shares, from esm_class on.
    pub(super) fn decode_from_esm_class(
        mut reader: Reader,
        service_type: Bytes,
        source: Address,
        destination: Address,
    ) -> Result<Self, BodyError> {
        let sm = Self {
            service_type,
            source,
            destination,
            esm_class: reader.u8()?,
            protocol_id: reader.u8()?,
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
            registered_delivery: reader.u8()?,
            replace_if_present: reader.u8()?,
            data_coding: reader.u8()?,
            sm_default_msg_id: reader.u8()?,
            short_message: short_message(&mut reader)?,
            tlvs: Tlvs::decode(reader.rest())?,
        };
        check_single_text(&sm.short_message, &sm.tlvs)?;
        Ok(sm)
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(
            &self.destination.value,
            21,
            CommandStatus::RINVDSTADR,
            "destination_addr has more than 20 octets",
        )?;
        self.fits_without_destination()
    }

    pub(super) fn fits_without_destination(&self) -> Result<(), BodyError> {
        fits(&self.service_type, 6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
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
        out.reserve(96 + self.short_message.len() + self.tlvs.raw().len());
        put_c_string(out, &self.service_type, 6);
        put_address(out, &self.source, 21);
        put_address(out, &self.destination, 21);
        self.encode_from_esm_class(out);
    }

    pub(super) fn encode_from_esm_class(&self, out: &mut BytesMut) {
        out.put_slice(&[self.esm_class, self.protocol_id, self.priority_flag]);
        put_c_string(out, &self.schedule_delivery_time, 17);
        put_c_string(out, &self.validity_period, 17);
        out.put_slice(&[
            self.registered_delivery,
            self.replace_if_present,
            self.data_coding,
            self.sm_default_msg_id,
        ]);
        put_short_message(out, &self.short_message);
        out.put_slice(self.tlvs.raw());
    }

    /// The text, from short_message or message_payload.
    #[must_use]
    pub fn text(&self) -> Bytes {
        if self.short_message.is_empty() {
            self.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap_or_default()
        } else {
            self.short_message.clone()
        }
    }
}
