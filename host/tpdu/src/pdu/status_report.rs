use super::{LOOP_PREVENTION, NO_MORE, Parameters, STATUS, UDHI, bit, within};
use crate::wire::Reader;
use crate::{Address, Result, Status, TimeStamp};

/// SMS-STATUS-REPORT: the service centre tells a telephone what became of its message or command (3GPP TS 23.040
/// §9.2.2.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusReport {
    /// TP-MMS: others wait for this telephone. (On the wire the bit is set where none does.)
    pub more_messages: bool,
    /// TP-LP.
    pub loop_prevention: bool,
    /// TP-SRQ: it is about a command, not a message.
    pub about_command: bool,
    /// TP-MR of what it is about.
    pub message_reference: u8,
    /// TP-RA: to whom that went.
    pub recipient: Address,
    /// TP-SCTS: when the service centre got it.
    pub service_centre_time: TimeStamp,
    /// TP-DT: when it ended, or was last tried.
    pub discharge_time: TimeStamp,
    /// TP-ST.
    pub status: Status,
    /// What else it says.
    pub parameters: Parameters,
}

impl StatusReport {
    /// TP-MTI.
    const TYPE: u8 = 2;

    /// Its octets.
    ///
    /// # Errors
    /// Where a field does not fit.
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
        // Telephones of phase 1 know of none: where it tells of nothing it is left out.
        if !self.parameters.is_empty() {
            out.push(self.parameters.indicator());
            self.parameters.write(&mut out)?;
        }
        within(out)
    }

    /// Reads one, whatever type its first octet says.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(octets: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let message_reference = reader.u8("message reference")?;
        let recipient = Address::read(&mut reader, "recipient address")?;
        let service_centre_time = TimeStamp::decode(reader.array("service centre's time")?)?;
        let discharge_time = TimeStamp::decode(reader.array("discharge time")?)?;
        let status = Status(reader.u8("status")?);
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
