use super::{Parameters, UDHI, bit, within};
use crate::wire::Reader;
use crate::{FailureCause, Result, TimeStamp};

/// SMS-SUBMIT-REPORT: the service centre's answer to a message or a command (3GPP TS 23.040 §9.2.2.2a).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmitReport {
    /// TP-FCS: why it refuses; `None` where it does not.
    pub cause: Option<FailureCause>,
    /// TP-SCTS: when the service centre got the message.
    pub service_centre_time: TimeStamp,
    /// What else it says.
    pub parameters: Parameters,
}

impl SubmitReport {
    /// TP-MTI.
    const TYPE: u8 = 1;

    /// Its octets: for an RP-ERROR where there is a cause, else for an RP-ACK.
    ///
    /// # Errors
    /// Where a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![Self::TYPE | bit(self.parameters.udhi(), UDHI)];
        out.extend(self.cause.map(|cause| cause.0));
        out.push(self.parameters.indicator());
        out.extend(self.service_centre_time.encode()?);
        self.parameters.write(&mut out)?;
        within(out)
    }

    /// Reads one; `failed` as with [`ToMs::decode`](super::ToMs::decode).
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(octets: &[u8], failed: bool) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let cause = failed.then(|| reader.u8("failure cause").map(FailureCause)).transpose()?;
        let indicator = Parameters::read_indicator(&mut reader)?;
        let service_centre_time = TimeStamp::decode(reader.array("service centre's time")?)?;
        let parameters = Parameters::read(indicator, first & UDHI != 0, &mut reader)?;
        Ok(Self { cause, service_centre_time, parameters })
    }
}
