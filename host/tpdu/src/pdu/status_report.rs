use super::{LOOP_PREVENTION, NO_MORE, Parameters, STATUS, UDHI, bit, within};
use crate::wire::Reader;
use crate::{Result, TimeStamp, TpAddress, TpStatus};

/// SMS-STATUS-REPORT: the service centre reports the state of a message or command to the handset (3GPP TS 23.040
/// §9.2.2.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusReport {
    /// TP-MMS: whether more messages wait for the handset. On the wire, the bit is set if *no* message waits.
    pub more_messages: bool,
    /// TP-LP.
    pub loop_prevention: bool,
    /// TP-SRQ: the report is about a command, not a message.
    pub about_command: bool,
    /// TP-MR of the message or command.
    pub message_reference: u8,
    /// TP-RA: recipient of the message or command.
    pub recipient: TpAddress,
    /// TP-SCTS: the time at which the service centre received it.
    pub service_centre_time: TimeStamp,
    /// TP-DT: the time of delivery, or of the last attempt.
    pub discharge_time: TimeStamp,
    /// TP-ST.
    pub status: TpStatus,
    /// Optional parameters.
    pub parameters: Parameters,
}

impl StatusReport {
    /// TP-MTI.
    const TYPE: u8 = 2;

    /// Encodes the TPDU.
    ///
    /// # Errors
    /// If a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let first = Self::TYPE
            | bit(!self.more_messages, NO_MORE)
            | bit(self.loop_prevention, LOOP_PREVENTION)
            | bit(self.about_command, STATUS)
            | bit(self.parameters.udhi(), UDHI);
        let mut out = vec![first, self.message_reference];
        self.recipient.write(&mut out)?;
        out.extend(self.service_centre_time.encode()?);
        out.extend(self.discharge_time.encode()?);
        out.push(self.status.0);
        // Phase 1 handsets do not know the parameter indicator: it is omitted if it is 0.
        if !self.parameters.is_empty() {
            out.push(self.parameters.indicator());
            self.parameters.write(&mut out)?;
        }
        within(out)
    }

    /// Decodes the TPDU; the message type in the first octet is not checked.
    ///
    /// # Errors
    /// If the TPDU is truncated or a field is invalid.
    pub fn decode(octets: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let message_reference = reader.u8("message reference")?;
        let recipient = TpAddress::read(&mut reader, "recipient address")?;
        let service_centre_time = TimeStamp::decode(reader.array("service centre's time")?)?;
        let discharge_time = TimeStamp::decode(reader.array("discharge time")?)?;
        let status = TpStatus(reader.u8("status")?);
        let indicator = Parameters::read_indicator(&mut reader)?;
        Ok(Self {
            more_messages: first & NO_MORE == 0,
            loop_prevention: first & LOOP_PREVENTION != 0,
            about_command: first & STATUS != 0,
            message_reference,
            recipient,
            service_centre_time,
            discharge_time,
            status,
            parameters: Parameters::read(indicator, first & UDHI != 0, &mut reader)?,
        })
    }
}
