/// A message that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are no octets at all.
    #[error("an empty GSUP message")]
    Empty,
    /// No IMSI stands first: HLR and MSC drop such a message without a word.
    #[error("the GSUP message of type {0:#04x} does not begin with an IMSI")]
    NoImsi(u8),
    /// The IMSI is none.
    #[error("the IMSI of the GSUP message of type {0:#04x} does not consist of 6 to 15 digits")]
    BadImsi(u8),
    /// An information element is longer than the message.
    #[error("the GSUP message of type {kind:#04x} ends within the information element {tag:#04x}")]
    Short {
        /// The message's type.
        kind: u8,
        /// The information element's tag.
        tag: u8,
    },
    /// An address is none.
    #[error("the information element {0:#04x} is not an SMS relay address")]
    Address(u8),
}

/// What cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A value is longer than an information element can be.
    #[error("the information element {tag:#04x} has {octets} octets; 255 are the most")]
    Long {
        /// Its tag.
        tag: u8,
        /// Its octets.
        octets: usize,
    },
    /// A number has something other than digits, `*`, `#`, `a`, `b` and `c`.
    #[error("a number on GSUP consists of digits, *, #, a, b and c")]
    Digits,
}
