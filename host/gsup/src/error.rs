/// A message that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are no octets.
    #[error("an empty GSUP message")]
    Empty,
    /// The message does not begin with an IMSI; HLR and MSC drop such messages silently.
    #[error("the GSUP message of type {0:#04x} does not begin with an IMSI")]
    NoImsi(u8),
    /// The IMSI is invalid.
    #[error("the IMSI of the GSUP message of type {0:#04x} does not consist of 6 to 15 digits")]
    BadImsi(u8),
    /// An information element is truncated.
    #[error("the GSUP message of type {kind:#04x} ends within the information element {tag:#04x}")]
    Short {
        /// The message type.
        kind: u8,
        /// The tag of the information element.
        tag: u8,
    },
    /// The element is not a valid address.
    #[error("the information element {0:#04x} is not an SMS relay address")]
    Address(u8),
}

/// A value that cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The value is too long for an information element.
    #[error("the information element {tag:#04x} has {octets} octets; the limit is 255")]
    Long {
        /// The tag of the element.
        tag: u8,
        /// The length of the value.
        octets: usize,
    },
    /// A number contains a character other than digits, `*`, `#`, `a`, `b` and `c`.
    #[error("a number on GSUP consists of digits, *, #, a, b and c")]
    Digits,
}
