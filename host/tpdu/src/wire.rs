//! Field-by-field reading.

use crate::{Error, Result};

/// A cursor over the remaining octets.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// Reads one octet; `field` names it in the error.
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or(Error::Short(field))?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads `count` octets.
    pub(crate) fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::Short(field))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads `N` octets as an array.
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Error::Short(field))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Two decimal digits from swapped semi-octets; `None` if one is not decimal.
pub(crate) fn decimal(octet: u8) -> Option<u8> {
    let (units, tens) = (octet >> 4, octet & 0x0F);
    (units < 10 && tens < 10).then_some(tens * 10 + units)
}

/// Encodes a number up to 99 in swapped semi-octets.
pub(crate) fn swapped(number: u8) -> u8 {
    debug_assert!(number < 100, "two digits");
    ((number % 10) << 4) | (number / 10 % 10)
}
