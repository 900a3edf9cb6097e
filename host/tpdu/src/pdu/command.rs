use super::{STATUS, UDHI, bit, within};
use crate::wire::Reader;
use crate::{Address, Error, Result};
use bytes::Bytes;

/// What a command wants (TP-CT, 3GPP TS 23.040 §9.2.3.19).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CommandType(pub u8);

impl CommandType {
    /// Tell what became of the message.
    pub const ENQUIRY: Self = Self(0);
    /// No status report is wanted any more.
    pub const CANCEL_REPORT: Self = Self(1);
    /// Delete the message.
    pub const DELETE: Self = Self(2);
    /// A status report is wanted after all.
    pub const ENABLE_REPORT: Self = Self(3);
}

/// SMS-COMMAND: a wish about a message that the telephone sent before (3GPP TS 23.040 §9.2.2.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// TP-SRR: tell what becomes of the command.
    pub status_report_request: bool,
    /// TP-UDHI: its data begin with a header.
    pub udhi: bool,
    /// TP-MR, the telephone's number of the command.
    pub message_reference: u8,
    /// TP-PID.
    pub protocol_id: u8,
    /// TP-CT.
    pub kind: CommandType,
    /// TP-MN: TP-MR of the message.
    pub message_number: u8,
    /// TP-DA of the message.
    pub destination: Address,
    /// TP-CD.
    pub data: Bytes,
}

impl Command {
    /// TP-MTI.
    const TYPE: u8 = 2;

    /// Its octets.
    ///
    /// # Errors
    /// Where a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let first = Self::TYPE | bit(self.status_report_request, STATUS) | bit(self.udhi, UDHI);
        let mut out = vec![first, self.message_reference, self.protocol_id, self.kind.0, self.message_number];
        self.destination.write(&mut out)?;
        let length = u8::try_from(self.data.len());
        out.push(length.map_err(|_| Error::LongTpdu(out.len() + 1 + self.data.len()))?);
        out.extend_from_slice(&self.data);
        within(out)
    }

    /// Reads one, whatever type its first octet says. One that ends before its data's length has none.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(octets: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let message_reference = reader.u8("message reference")?;
        let protocol_id = reader.u8("protocol identifier")?;
        let kind = CommandType(reader.u8("command type")?);
        let message_number = reader.u8("message number")?;
        let destination = Address::read(&mut reader, "destination address")?;
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
