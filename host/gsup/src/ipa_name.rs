use std::fmt;
use std::str::FromStr;

/// An IPA name: identifies a connection to an HLR, and is used for routing.
///
/// At most 31 octets of visible ASCII: OsmoHLR stores it with its terminating NUL in 32 octets, and compares the NUL,
/// too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IpaName(Box<str>);

/// The text is not a valid IPA name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IpaNameError {
    /// It is empty.
    #[error("a name on GSUP must not be empty")]
    Empty,
    /// It is too long.
    #[error(
        "a name on GSUP has at most {max} octets, this one has {0}: an HLR truncates longer names and routes nothing to them",
        max = IpaName::MAX_LEN
    )]
    Long(usize),
    /// It contains a character that is not visible ASCII.
    #[error(
        "a name on GSUP consists of visible ASCII characters without spaces; the character at position {0} is invalid"
    )]
    Character(usize),
}

impl IpaName {
    /// Maximum length without the NUL.
    pub const MAX_LEN: usize = 31;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of an information element.
    pub(crate) fn with_nul(&self) -> Vec<u8> {
        [self.0.as_bytes(), b"\0"].concat()
    }
}

impl FromStr for IpaName {
    type Err = IpaNameError;

    fn from_str(text: &str) -> Result<Self, IpaNameError> {
        if text.is_empty() {
            return Err(IpaNameError::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(IpaNameError::Long(text.len()));
        }
        match text.bytes().position(|octet| !octet.is_ascii_graphic()) {
            Some(at) => Err(IpaNameError::Character(at + 1)),
            None => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for IpaName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
