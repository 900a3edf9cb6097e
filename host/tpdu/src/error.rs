use crate::FailureCause;

/// What is wrong with a TPDU that came, or why one cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The octets end before a field does.
    #[error("the TPDU ends inside its {0}")]
    Short(&'static str),
    /// TP-MTI says a type that this direction does not have.
    #[error("message type {0} (TP-MTI) does not exist in this direction")]
    MessageType(u8),
    /// An address has more digits than its field.
    #[error("an address of {0} digits; at most 20 fit")]
    LongAddress(usize),
    /// An alphanumeric address is longer than its field.
    #[error("an alphanumeric address of {0} characters of the default alphabet; at most 11 fit")]
    LongName(usize),
    /// An address has a character that no semi-octet stands for.
    #[error("{0:?} in a number; digits, *, #, a, b and c are possible")]
    Digit(char),
    /// An address' type of number or numbering plan is out of range.
    #[error("type of number {ton} and numbering plan {npi}; at most 7 and 15 fit")]
    NumberType {
        /// Type of number.
        ton: u8,
        /// Numbering plan indicator.
        npi: u8,
    },
    /// A point in time that is none.
    #[error("no point in time: its {0} is out of range or not decimal")]
    Time(&'static str),
    /// A validity period that cannot be understood.
    #[error("no validity period: {0}")]
    Validity(&'static str),
    /// The length octet (TP-UDL) says more than a short message can have, or a text is too long for one.
    #[error("user data of {length} {unit}; at most {limit} fit")]
    LongUserData {
        /// What there is.
        length: usize,
        /// What fits.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// Length and octets of user data do not belong together.
    #[error("user data of {octets} octets under a length (TP-UDL) of {length}")]
    Inconsistent {
        /// TP-UDL.
        length: u8,
        /// Octets.
        octets: usize,
    },
    /// The whole is longer than any TPDU.
    #[error("a TPDU of {0} octets; at most 164 fit")]
    LongTpdu(usize),
    /// A text that is said to begin with a user data header does not.
    #[error("the text does not begin with a user data header, as its sender says it does")]
    NoHeader,
    /// An octet over 127 where a character of the default alphabet is expected.
    #[error("octet 0x{octet:02X} at {at} is no character of the default alphabet")]
    NotASeptet {
        /// Its place, from 0, a header counted.
        at: usize,
        /// The octet.
        octet: u8,
    },
    /// A data coding that has no way to the air.
    #[error("data coding {0} cannot be converted for the air")]
    Coding(u8),
    /// Octets that are not text in the coding that their sender names.
    #[error("the text is not in data coding {0}, as its sender says it is")]
    NotInCoding(u8),
    /// A text with a header of its own that fits no single short message: to split it would need a second header.
    #[error("a text of {length} {unit} with a user data header of its own; at most {limit} fit")]
    LongWithHeader {
        /// What there is, the header counted.
        length: usize,
        /// What fits.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// A text that would take more parts than a header can number.
    #[error("a text that would take {0} short messages; at most 255 can be joined")]
    ManyParts(usize),
    /// Compressed text cannot be cut.
    #[error("a compressed text of {0} octets; at most 140 fit, and it cannot be cut")]
    LongCompressed(usize),
}

impl Error {
    /// How a service centre says so to a telephone (TP-FCS), where a better word than "unspecified" exists.
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

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
