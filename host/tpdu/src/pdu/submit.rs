use super::{REPLY_PATH, STATUS, UDHI, bit, within};
use crate::coding::Alphabet;
use crate::user_data::MAX_OCTETS;
use crate::wire::Reader;
use crate::{Result, TpAddress, UserData, Validity};

/// SMS-SUBMIT: a message from a handset to the service centre (3GPP TS 23.040 §9.2.2.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Submit {
    /// TP-RD: whether the service centre rejects a duplicate (same originator, destination and reference) of a message
    /// that it still holds.
    pub reject_duplicates: bool,
    /// TP-RP: whether an answer may be sent through this service centre.
    pub reply_path: bool,
    /// TP-SRR: whether a status report is requested.
    pub status_report_request: bool,
    /// TP-MR: the handset's reference of the message.
    pub message_reference: u8,
    /// TP-DA.
    pub destination: TpAddress,
    /// TP-PID.
    pub protocol_id: u8,
    /// TP-DCS.
    pub data_coding: u8,
    /// TP-VP.
    pub validity: Validity,
    /// TP-UD.
    pub user_data: UserData,
}

impl Submit {
    /// TP-MTI.
    const TYPE: u8 = 1;
    const REJECT_DUPLICATES: u8 = 0x04;

    /// Encodes the TPDU.
    ///
    /// # Errors
    /// If a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let first = Self::TYPE
            | bit(self.reject_duplicates, Self::REJECT_DUPLICATES)
            | self.validity.format()
            | bit(self.status_report_request, STATUS)
            | bit(self.user_data.udhi, UDHI)
            | bit(self.reply_path, REPLY_PATH);
        let mut out = vec![first, self.message_reference];
        self.destination.write(&mut out)?;
        out.extend([self.protocol_id, self.data_coding]);
        self.validity.write(&mut out)?;
        self.user_data.write(Alphabet::of(self.data_coding), MAX_OCTETS, &mut out)?;
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
        let destination = TpAddress::read(&mut reader, "destination address")?;
        let protocol_id = reader.u8("protocol identifier")?;
        let data_coding = reader.u8("data coding")?;
        let validity = Validity::read(first, &mut reader)?;
        let alphabet = Alphabet::of(data_coding);
        Ok(Self {
            reject_duplicates: first & Self::REJECT_DUPLICATES != 0,
            reply_path: first & REPLY_PATH != 0,
            status_report_request: first & STATUS != 0,
            message_reference,
            destination,
            protocol_id,
            data_coding,
            validity,
            user_data: UserData::read(&mut reader, first & UDHI != 0, alphabet, MAX_OCTETS)?,
        })
    }
}
