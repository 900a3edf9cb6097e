use crate::FailureCause;

/// A TPDU that cannot be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The octets end within a field.
    #[error("the TPDU ends within its {0}")]
    Short(&'static str),
    /// The TP-MTI is not defined for this direction.
    #[error("message type {0} (TP-MTI) does not exist in this direction")]
    MessageType(u8),
    /// An address has too many digits.
    #[error("address has {0} digits; the limit is 20")]
    LongAddress(usize),
    /// An alphanumeric address is too long.
    #[error("alphanumeric address has {0} characters of the default alphabet; the limit is 11")]
    LongName(usize),
    /// An address contains a character that has no semi-octet.
    #[error("invalid character {0:?} in a number; digits, *, #, a, b and c are allowed")]
    Digit(char),
    /// TON or NPI of an address is out of range.
    #[error("type of number {ton} or numbering plan {npi} is out of range; the limits are 7 and 15")]
    NumberType {
        /// Type of number.
        ton: u8,
        /// Numbering plan indicator.
        npi: u8,
    },
    /// An invalid time stamp.
    #[error("invalid time stamp: {0} is out of range or not decimal")]
    Time(&'static str),
    /// An invalid validity period.
    #[error("invalid validity period: {0}")]
    Validity(&'static str),
    /// TP-UDL exceeds the limit, or a text is too long for one short message.
    #[error("user data has {length} {unit}; the limit is {limit}")]
    LongUserData {
        /// The actual length.
        length: usize,
        /// The limit.
        limit: usize,
        /// The unit of both.
        unit: &'static str,
    },
    /// TP-UDL does not match the number of octets of user data.
    #[error("user data has {octets} octets, which does not match TP-UDL {length}")]
    Inconsistent {
        /// TP-UDL.
        length: u8,
        /// Octets of user data.
        octets: usize,
    },
    /// The TPDU exceeds the maximum length.
    #[error("TPDU has {0} octets; the limit is 164")]
    LongTpdu(usize),
    /// The user data header indicator is set, but there is no valid header.
    #[error("user data header indicator is set, but the text has no valid header")]
    NoHeader,
    /// An octet over 127 in text of the default alphabet.
    #[error("octet 0x{octet:02X} at {at} is not a character of the default alphabet")]
    NotASeptet {
        /// Its offset from 0, including the header.
        at: usize,
        /// The octet.
        octet: u8,
    },
    /// A `data_coding` without a GSM equivalent.
    #[error("data coding {0} has no GSM equivalent")]
    Coding(u8),
    /// Octets that are not valid in the declared coding.
    #[error("the text is not valid in data coding {0}")]
    NotInCoding(u8),
    /// A text with its own header exceeds one short message; to split it would need a second header.
    #[error("text with its own user data header has {length} {unit}; the limit is {limit}")]
    LongWithHeader {
        /// The actual length, including the header.
        length: usize,
        /// The limit.
        limit: usize,
        /// The unit of both.
        unit: &'static str,
    },
    /// A text that needs more than 255 segments.
    #[error("text needs {0} segments; the limit is 255")]
    TooManySegments(usize),
    /// Compressed text exceeds one short message; it cannot be split.
    #[error("compressed text has {0} octets; the limit is 140, and it cannot be split")]
    LongCompressed(usize),
}

impl Error {
    /// The TP-FCS for an answer to the handset; "unspecified" if no other value fits.
    #[must_use]
    pub fn failure_cause(&self) -> FailureCause {
        match self {
            Self::MessageType(_) => FailureCause::TPDU_NOT_SUPPORTED,
            Self::LongAddress(_) | Self::LongName(_) | Self::Digit(_) | Self::NumberType { .. } => {
                FailureCause::INVALID_SME_ADDRESS
            }
            Self::Validity(_) | Self::Time(_) => FailureCause::VALIDITY_PERIOD_NOT_SUPPORTED,
            Self::Coding(_) | Self::NotInCoding(_) | Self::NotASeptet { .. } => FailureCause::CODING_OTHER,
            _ => FailureCause::UNSPECIFIED,
        }
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
