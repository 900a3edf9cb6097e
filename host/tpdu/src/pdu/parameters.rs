use crate::coding::Alphabet;
use crate::wire::Reader;
use crate::{Result, UserData};

use super::MAX_TPDU;

/// TP-PI bits.
const PROTOCOL_ID: u8 = 0x01;
const DATA_CODING: u8 = 0x02;
const USER_DATA: u8 = 0x04;
const MORE: u8 = 0x80;

/// Optional parameters of a report, as declared by TP-PI (3GPP TS 23.040 §9.2.3.27).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parameters {
    /// TP-PID.
    pub protocol_id: Option<u8>,
    /// TP-DCS; 0 for user data without one.
    pub data_coding: Option<u8>,
    /// TP-UD.
    pub user_data: Option<UserData>,
}

impl Parameters {
    pub(super) fn udhi(&self) -> bool {
        self.user_data.as_ref().is_some_and(|data| data.udhi)
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The parameter indicator octet.
    pub(super) fn indicator(&self) -> u8 {
        super::bit(self.protocol_id.is_some(), PROTOCOL_ID)
            | super::bit(self.data_coding.is_some(), DATA_CODING)
            | super::bit(self.user_data.is_some(), USER_DATA)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend(self.protocol_id);
        out.extend(self.data_coding);
        match &self.user_data {
            Some(data) => data.write(Alphabet::of(self.data_coding.unwrap_or(0)), MAX_TPDU, out),
            None => Ok(()),
        }
    }

    /// Reads the parameter indicator. Extension octets are ignored; a missing indicator reads as 0.
    pub(super) fn read_indicator(reader: &mut Reader<'_>) -> Result<u8> {
        if reader.is_empty() {
            return Ok(0);
        }
        let indicator = reader.u8("parameter indicator")?;
        let mut last = indicator;
        while last & MORE != 0 {
            last = reader.u8("parameter indicator")?;
        }
        Ok(indicator)
    }

    pub(super) fn read(indicator: u8, udhi: bool, reader: &mut Reader<'_>) -> Result<Self> {
        let mut octet = |bit, field| (indicator & bit != 0).then(|| reader.u8(field)).transpose();
        let protocol_id = octet(PROTOCOL_ID, "protocol identifier")?;
        let data_coding = octet(DATA_CODING, "data coding")?;
        let alphabet = Alphabet::of(data_coding.unwrap_or(0));
        let user_data = (indicator & USER_DATA != 0)
            .then(|| UserData::read(reader, udhi, alphabet, MAX_TPDU))
            .transpose()?;
        Ok(Self { protocol_id, data_coding, user_data })
    }
}
