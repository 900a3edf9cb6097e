use crate::wire::{BodyError, Reader, fits, put_address, put_c_string};
use crate::{CommandStatus, Tlvs, tag};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// data_sm (34 §4.7.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DataSm {
    /// At most 5 octets.
    pub service_type: Bytes,
    /// At most 64 octets.
    pub source: Address,
    /// At most 64 octets.
    pub destination: Address,
    /// As in submit_sm.
    pub esm_class: u8,
    /// As in submit_sm.
    pub registered_delivery: u8,
    /// As in submit_sm.
    pub data_coding: u8,
    /// TLVs, including message_payload.
    pub tlvs: Tlvs,
}

impl DataSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(
                6,
                CommandStatus::RINVSERTYP,
                "service_type has more than 5 octets",
            )?,
            source: reader.address(65, CommandStatus::RINVSRCADR, "source_addr has more than 64 octets")?,
            destination: reader.address(
                65,
                CommandStatus::RINVDSTADR,
                "destination_addr has more than 64 octets",
            )?,
            esm_class: reader.u8()?,
            registered_delivery: reader.u8()?,
            data_coding: reader.u8()?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.service_type, 6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
        fits(&self.source.value, 65, CommandStatus::RINVSRCADR, "source_addr has more than 64 octets")?;
        fits(
            &self.destination.value,
            65,
            CommandStatus::RINVDSTADR,
            "destination_addr has more than 64 octets",
        )
    }

    /// The text, from message_payload; `None` without it.
    #[must_use]
    pub fn text(&self) -> Option<Bytes> {
        self.tlvs.get(tag::MESSAGE_PAYLOAD)
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_address(out, &self.source, 65);
        put_address(out, &self.destination, 65);
        out.put_slice(&[self.esm_class, self.registered_delivery, self.data_coding]);
        out.put_slice(self.tlvs.raw());
    }
}
