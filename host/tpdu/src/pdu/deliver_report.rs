use super::{Parameters, UDHI, bit, within};
use crate::wire::Reader;
use crate::{FailureCause, Result};

/// SMS-DELIVER-REPORT: the handset's answer to a message or a status report (3GPP TS 23.040 §9.2.2.1a).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliverReport {
    /// TP-FCS; `None` for a positive report, and for a truncated negative one.
    pub cause: Option<FailureCause>,
    /// Optional parameters, for example the SIM's answer to a data download.
    pub parameters: Parameters,
}

impl DeliverReport {
    /// TP-MTI.
    const TYPE: u8 = 0;

    /// Encodes the TPDU: for an RP-ERROR if there is a cause, for an RP-ACK otherwise.
    ///
    /// # Errors
    /// If the user data does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![Self::TYPE | bit(self.parameters.udhi(), UDHI)];
        out.extend(self.cause.map(|cause| cause.0));
        out.push(self.parameters.indicator());
        self.parameters.write(&mut out)?;
        within(out)
    }

    /// Decodes the TPDU; `failed` as in [`FromMs::decode`](super::FromMs::decode).
    ///
    /// # Errors
    /// If the TPDU is truncated or a field is invalid.
    pub fn decode(octets: &[u8], failed: bool) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let cause =
            if failed && !reader.is_empty() { Some(FailureCause(reader.u8("failure cause")?)) } else { None };
        let indicator = Parameters::read_indicator(&mut reader)?;
        Ok(Self { cause, parameters: Parameters::read(indicator, first & UDHI != 0, &mut reader)? })
    }
}
