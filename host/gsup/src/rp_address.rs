use crate::bcd;
use crate::{DecodeError, EncodeError, GsupImsi, Tag};

/// An SM-RP address: destination or originator on the relay layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RpAddress {
    /// An IMSI. Only as destination: libosmocore does not encode it as originator.
    Imsi(GsupImsi),
    /// An MSISDN.
    Msisdn(IsdnNumber),
    /// The number of a service centre.
    ServiceCentre(IsdnNumber),
    /// Explicitly no address.
    Absent,
}

/// An ISDN number with type and plan. An MSC sends it without digits for a subscriber without a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IsdnNumber {
    /// Type of number and numbering plan, with the extension bit set; 0x91 for an international number.
    pub ton_npi: u8,
    /// Digits, `*`, `#`, `a`, `b` and `c`.
    pub digits: String,
}

impl IsdnNumber {
    /// Type and plan of an international E.164 number.
    pub const INTERNATIONAL: u8 = 0x91;
    /// The extension bit: no further octet of type and plan follows.
    const LAST: u8 = 0x80;

    /// An international number; a leading plus sign is removed.
    #[must_use]
    pub fn international(digits: &str) -> Self {
        let digits = digits.strip_prefix('+').unwrap_or(digits);
        Self { ton_npi: Self::INTERNATIONAL, digits: digits.to_owned() }
    }

    /// The type of number, 0 to 7.
    #[must_use]
    pub fn ton(&self) -> u8 {
        self.ton_npi >> 4 & 7
    }

    /// The numbering plan, 0 to 15.
    #[must_use]
    pub fn npi(&self) -> u8 {
        self.ton_npi & 0xf
    }

    fn decode(octets: &[u8]) -> Option<Self> {
        let (ton_npi, bcd) = octets.split_first()?;
        // With a cleared extension bit, another octet would follow. It does not occur in GSUP.
        (ton_npi & Self::LAST != 0).then_some(())?;
        Some(Self { ton_npi: *ton_npi, digits: bcd::decode(bcd)? })
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), EncodeError> {
        into.push(self.ton_npi | Self::LAST);
        into.extend(bcd::encode(self.digits.as_bytes()).ok_or(EncodeError::Digits)?);
        Ok(())
    }
}

impl RpAddress {
    const IMSI: u8 = 1;
    const MSISDN: u8 = 2;
    const SERVICE_CENTRE: u8 = 3;
    const ABSENT: u8 = 0xff;

    /// Decodes the value of an information element.
    ///
    /// # Errors
    /// If it is not a valid address.
    pub fn decode(tag: Tag, value: &[u8]) -> Result<Self, DecodeError> {
        let address = value.split_first().and_then(|(kind, rest)| match *kind {
            Self::IMSI => GsupImsi::from_bcd(rest).map(Self::Imsi),
            Self::MSISDN => IsdnNumber::decode(rest).map(Self::Msisdn),
            Self::SERVICE_CENTRE => IsdnNumber::decode(rest).map(Self::ServiceCentre),
            Self::ABSENT => rest.is_empty().then_some(Self::Absent),
            _ => None,
        });
        address.ok_or(DecodeError::Address(tag.0))
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut value = Vec::with_capacity(12);
        match self {
            Self::Imsi(imsi) => {
                value.push(Self::IMSI);
                value.extend(imsi.to_bcd());
            }
            Self::Msisdn(number) => {
                value.push(Self::MSISDN);
                number.encode(&mut value)?;
            }
            Self::ServiceCentre(number) => {
                value.push(Self::SERVICE_CENTRE);
                number.encode(&mut value)?;
            }
            Self::Absent => value.push(Self::ABSENT),
        }
        Ok(value)
    }

    /// The number, unless it is an IMSI or absent.
    #[must_use]
    pub fn number(&self) -> Option<&IsdnNumber> {
        match self {
            Self::Msisdn(number) | Self::ServiceCentre(number) => Some(number),
            Self::Imsi(_) | Self::Absent => None,
        }
    }
}
