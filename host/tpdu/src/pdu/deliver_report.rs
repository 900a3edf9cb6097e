use super::{Parameters, UDHI, bit, within};
use crate::wire::Reader;
use crate::{FailureCause, Result};

/// SMS-DELIVER-REPORT: a telephone's answer to a message or a status report (3GPP TS 23.040 §9.2.2.1a).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliverReport {
    /// TP-FCS: why it refuses; `None` where it does not, and in a refusal that ends before it.
    pub cause: Option<FailureCause>,
    /// What else it says; the card's answer to a download, for one.
    pub parameters: Parameters,
}

impl DeliverReport {
    /// TP-MTI.
    const TYPE: u8 = 0;

    /// Its octets: for an RP-ERROR where there is a cause, else for an RP-ACK.
    ///
    /// # Errors
    /// Where its user data do not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![Self::TYPE | bit(self.parameters.udhi(), UDHI)];
        out.extend(self.cause.map(|cause| cause.0));
        out.push(self.parameters.indicator());
        self.parameters.write(&mut out)?;
        within(out)
    }

    /// Reads one; `failed` as with [`FromMs::decode`](super::FromMs::decode).
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(octets: &[u8], failed: bool) -> Result<Self> {
        let mut reader = Reader::new(octets);
        let first = reader.u8("first octet")?;
        let cause =
            if failed && !reader.is_empty() { Some(FailureCause(reader.u8("failure cause")?)) } else { None };
        let indicator = Parameters::read_indicator(&mut reader)?;
        Ok(Self { cause, parameters: Parameters::read(indicator, first & UDHI != 0, &mut reader)? })
    }
}
