use super::{LOOP_PREVENTION, NO_MORE, REPLY_PATH, STATUS, UDHI, bit, within};
use crate::coding::Alphabet;
use crate::user_data::MAX_OCTETS;
use crate::wire::Reader;
use crate::{Address, Result, TimeStamp, UserData};

/// SMS-DELIVER: a message from the service centre to a telephone (3GPP TS 23.040 §9.2.2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deliver {
    /// TP-MMS: others wait for this telephone. (On the wire the bit is set where none does.)
    pub more_messages: bool,
    /// TP-LP: it was forwarded, or is an answer of a machine; do not answer by machine.
    pub loop_prevention: bool,
    /// TP-SRI: its sender will get a status report.
    pub status_report_indication: bool,
    /// TP-RP: an answer may go through this service centre.
    pub reply_path: bool,
    /// TP-OA.
    pub originator: Address,
    /// TP-PID.
    pub protocol_id: u8,
    /// TP-DCS, as it is.
    pub data_coding: u8,
    /// TP-SCTS: when the service centre got the message.
    pub service_centre_time: TimeStamp,
    /// TP-UD.
    pub user_data: UserData,
}

impl Deliver {
    /// TP-MTI.
    const TYPE: u8 = 0;

    /// Its octets.
    ///
    /// # Errors
    /// Where a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let first = Self::TYPE
            | bit(!self.more_messages, NO_MORE)
            | bit(self.loop_prevention, LOOP_PREVENTION)
            | bit(self.status_report_indication, STATUS)
            | bit(self.user_data.udhi, UDHI)
            | bit(self.reply_path, REPLY_PATH);
        let mut out = vec![first];
        self.originator.write(&mut out)?;
        out.extend([self.protocol_id, self.data_coding]);
        out.extend(self.service_centre_time.encode()?);
        self.user_data.write(Alphabet::of(self.data_coding), MAX_OCTETS, &mut out)?;
        within(out)
    }

    /// Reads one, whatever type its first octet says.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(octets: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let originator = Address::read(&mut reader, "originating address")?;
        let protocol_id = reader.u8("protocol identifier")?;
        let data_coding = reader.u8("data coding")?;
        let service_centre_time = TimeStamp::decode(reader.array("service centre's time")?)?;
        let alphabet = Alphabet::of(data_coding);
        Ok(Self {
            more_messages: first & NO_MORE == 0,
            loop_prevention: first & LOOP_PREVENTION != 0,
            status_report_indication: first & STATUS != 0,
            reply_path: first & REPLY_PATH != 0,
            originator,
            protocol_id,
            data_coding,
            service_centre_time,
            user_data: UserData::read(&mut reader, first & UDHI != 0, alphabet, MAX_OCTETS)?,
        })
    }
}
