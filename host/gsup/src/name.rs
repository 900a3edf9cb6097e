use std::fmt;
use std::str::FromStr;

/// The name by which an HLR knows a connection and routes to it ("IPA name").
///
/// At most 31 octets of visible ASCII: OsmoHLR keeps it in a buffer of 32 with the NUL that ends it, and compares the NUL
/// too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(Box<str>);

/// This cannot be the name of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is nothing.
    #[error("a name on GSUP must not be empty")]
    Empty,
    /// It is too long.
    #[error(
        "a name on GSUP has at most {most} octets, this one has {0}: an HLR cuts what is longer, and routes nothing to it",
        most = Name::MOST
    )]
    Long(usize),
    /// It has a character that is none of visible ASCII.
    #[error(
        "a name on GSUP consists of visible ASCII characters without spaces; the one at position {0} is something else"
    )]
    Character(usize),
}

impl Name {
    /// The most octets, without the NUL.
    pub const MOST: usize = 31;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As an information element has it.
    pub(crate) fn with_nul(&self) -> Vec<u8> {
        [self.0.as_bytes(), b"\0"].concat()
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > Self::MOST {
            return Err(NameError::Long(text.len()));
        }
        match text.bytes().position(|octet| !octet.is_ascii_graphic()) {
            Some(at) => Err(NameError::Character(at + 1)),
            None => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
