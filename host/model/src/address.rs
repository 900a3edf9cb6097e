use smallvec::SmallVec;
use std::fmt;

/// The octets of an address value; up to 22 need no allocation.
pub type AddressBytes = SmallVec<[u8; 22]>;

/// A GSM address: type of number, numbering plan and the value as its sender wrote it.
///
/// The value is raw octets, not text: alphanumeric senders carry octets outside ASCII, and a relay must not change
/// them. At most 20 octets in SMPP submit_sm and 64 in data_sm (SMPP 3.4 §5.2.8, §5.2.9).
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Type of number (SMPP 3.4 §5.2.5): 0 unknown, 1 international, 2 national, 5 alphanumeric …
    pub ton: u8,
    /// Numbering plan indicator (SMPP 3.4 §5.2.6): 0 unknown, 1 E.164 …
    pub npi: u8,
    /// The value's octets, without any terminator.
    pub value: AddressBytes,
}

impl Address {
    /// An address from its parts; the octets are copied.
    #[must_use]
    pub fn new(ton: u8, npi: u8, value: &[u8]) -> Self {
        Self { ton, npi, value: AddressBytes::from_slice(value) }
    }

    /// An international E.164 number (TON 1, NPI 1) from its digits.
    #[must_use]
    pub fn international(digits: &str) -> Self {
        Self::new(1, 1, digits.as_bytes())
    }

    /// Whether there is no value at all (SMPP's NULL address).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The value for people and plugins: octets that are not UTF-8 appear as replacement characters.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.value)
    }

    /// The value with all but the first four and last two characters hidden: the only form that may be logged.
    #[must_use]
    pub fn masked(&self) -> String {
        crate::number_display::mask(&self.text())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.ton, self.npi, self.masked())
    }
}
