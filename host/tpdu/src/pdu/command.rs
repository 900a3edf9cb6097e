use super::{STATUS, UDHI, bit, within};
use crate::wire::Reader;
use crate::{Error, Result, TpAddress};
use bytes::Bytes;

/// TP-CT: the type of a command (3GPP TS 23.040 §9.2.3.19).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CommandType(pub u8);

impl CommandType {
    /// Request a status report about the message.
    pub const ENQUIRY: Self = Self(0);
    /// Delete the message.
    pub const DELETE: Self = Self(2);
    /// Request a status report after all.
    pub const ENABLE_REPORT: Self = Self(3);
}

/// SMS-COMMAND: a command about a message that the handset sent before (3GPP TS 23.040 §9.2.2.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// TP-SRR: whether a status report about the command is requested.
    pub status_report_request: bool,
    /// TP-UDHI: whether the command data begins with a header.
    pub udhi: bool,
    /// TP-MR: reference of the command.
    pub message_reference: u8,
    /// TP-PID.
    pub protocol_id: u8,
    /// TP-CT.
    pub kind: CommandType,
    /// TP-MN: TP-MR of the message.
    pub message_number: u8,
    /// TP-DA of the message.
    pub destination: TpAddress,
    /// TP-CD.
    pub data: Bytes,
}

impl Command {
    /// TP-MTI.
    const TYPE: u8 = 2;

    /// Encodes the TPDU.
    ///
    /// # Errors
    /// If a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let first = Self::TYPE | bit(self.status_report_request, STATUS) | bit(self.udhi, UDHI);
        let mut out = vec![first, self.message_reference, self.protocol_id, self.kind.0, self.message_number];
        self.destination.write(&mut out)?;
        let length = u8::try_from(self.data.len());
        out.push(length.map_err(|_| Error::LongTpdu(out.len() + 1 + self.data.len()))?);
        out.extend_from_slice(&self.data);
        within(out)
    }

    /// Decodes the TPDU; the message type in the first octet is not checked. If the command data length is missing, the
    /// data is empty.
    ///
    /// # Errors
    /// If the TPDU is truncated or a field is invalid.
    pub fn decode(octets: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let message_reference = reader.u8("message reference")?;
        let protocol_id = reader.u8("protocol identifier")?;
        let kind = CommandType(reader.u8("command type")?);
        let message_number = reader.u8("message number")?;
        let destination = TpAddress::read(&mut reader, "destination address")?;
        let length = if reader.is_empty() { 0 } else { reader.u8("command data length")? };
        let data = reader.take(usize::from(length), "command data")?;
        Ok(Self {
            status_report_request: first & STATUS != 0,
            udhi: first & UDHI != 0,
            message_reference,
            protocol_id,
            kind,
            message_number,
            destination,
            data: Bytes::copy_from_slice(data),
        })
    }
}
