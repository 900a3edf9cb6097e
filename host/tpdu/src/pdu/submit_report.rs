use super::{Parameters, UDHI, bit, within};
use crate::wire::Reader;
use crate::{FailureCause, Result, TimeStamp};

/// SMS-SUBMIT-REPORT: the service centre's answer to a message or a command (3GPP TS 23.040 §9.2.2.2a).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmitReport {
    /// TP-FCS; `None` for a positive report.
    pub cause: Option<FailureCause>,
    /// TP-SCTS: the time at which the service centre received the message.
    pub service_centre_time: TimeStamp,
    /// Optional parameters.
    pub parameters: Parameters,
}

impl SubmitReport {
    /// TP-MTI.
    const TYPE: u8 = 1;

    /// Encodes the TPDU: for an RP-ERROR if there is a cause, for an RP-ACK otherwise.
    ///
    /// # Errors
    /// If a field does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![Self::TYPE | bit(self.parameters.udhi(), UDHI)];
        out.extend(self.cause.map(|cause| cause.0));
        out.push(self.parameters.indicator());
        out.extend(self.service_centre_time.encode()?);
        self.parameters.write(&mut out)?;
        within(out)
    }

    /// Decodes the TPDU; `failed` as in [`ToMs::decode`](super::ToMs::decode).
    ///
    /// # Errors
    /// If the TPDU is truncated or a field is invalid.
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
