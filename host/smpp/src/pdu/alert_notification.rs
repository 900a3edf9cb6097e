use crate::wire::{BodyError, Reader, fits, put_address};
use crate::{CommandStatus, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// alert_notification (34 §4.12.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AlertNotification {
    /// The handset that has become available.
    pub source: Address,
    /// The ESME's address.
    pub esme: Address,
    /// ms_availability_status.
    pub tlvs: Tlvs,
}

impl AlertNotification {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            source: reader.address(65, CommandStatus::RINVSRCADR, "source_addr has more than 64 octets")?,
            esme: reader.address(65, CommandStatus::RINVDSTADR, "esme_addr has more than 64 octets")?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.source.value, 65, CommandStatus::RINVSRCADR, "source_addr has more than 64 octets")?;
        fits(&self.esme.value, 65, CommandStatus::RINVDSTADR, "esme_addr has more than 64 octets")
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_address(out, &self.source, 65);
        put_address(out, &self.esme, 65);
        out.put_slice(self.tlvs.raw());
    }
}
