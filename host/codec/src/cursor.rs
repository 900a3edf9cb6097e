//! Reads and writes the fields of records.

use crate::RecordError;
use model::{Address, AddressBytes};

/// A position in the octets of a record.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first octet.
    #[must_use]
    pub fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// The number of octets read.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether all octets are read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.at >= self.octets.len()
    }

    /// An error at this position.
    #[must_use]
    pub fn damaged(&self, what: &'static str) -> RecordError {
        RecordError { what, offset: self.at }
    }

    /// The next octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let end = self.at.checked_add(count).ok_or_else(|| self.damaged("a length is impossible"))?;
        let part = self.octets.get(self.at..end).ok_or_else(|| self.damaged("the record ends too early"))?;
        self.at = end;
        Ok(part)
    }

    /// An array of octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let offset = self.at;
        self.take(N)?.try_into().map_err(|_| RecordError { what: "the record ends too early", offset })
    }

    /// One octet.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn u8(&mut self) -> Result<u8, RecordError> {
        Ok(self.array::<1>()?[0])
    }

    /// A number of 2 octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn u16(&mut self) -> Result<u16, RecordError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// A number of 4 octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn u32(&mut self) -> Result<u32, RecordError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A number of 8 octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn u64(&mut self) -> Result<u64, RecordError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A signed number of 8 octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A number as LEB128.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn leb128(&mut self) -> Result<u64, RecordError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.u8()?;
            number |= u64::from(octet & 0x7f) << shift;
            if octet & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damaged("unterminated number"))
    }

    /// 1 length, octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn short(&mut self) -> Result<&'a [u8], RecordError> {
        let length = usize::from(self.u8()?);
        self.take(length)
    }

    /// 4 length, octets.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn long(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// 1 TON, 1 NPI, 1 length, value.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn address(&mut self) -> Result<Address, RecordError> {
        let (ton, npi) = (self.u8()?, self.u8()?);
        Ok(Address { ton, npi, value: AddressBytes::from_slice(self.short()?) })
    }

    /// 2 length, UTF-8.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    pub fn text(&mut self) -> Result<&'a str, RecordError> {
        let offset = self.at;
        let length = usize::from(self.u16()?);
        std::str::from_utf8(self.take(length)?).map_err(|_| RecordError { what: "text is not UTF-8", offset })
    }
}

/// Writes 1 length, octets; at most 255.
pub fn put_short(out: &mut Vec<u8>, octets: &[u8]) {
    let octets = octets.get(..255).unwrap_or(octets);
    out.push(octets.len() as u8);
    out.extend_from_slice(octets);
}

/// Writes 4 length, octets.
pub fn put_long(out: &mut Vec<u8>, octets: &[u8]) {
    out.extend_from_slice(&(octets.len() as u32).to_le_bytes());
    out.extend_from_slice(octets);
}

/// Writes 1 TON, 1 NPI, 1 length, value.
pub fn put_address(out: &mut Vec<u8>, address: &Address) {
    out.extend_from_slice(&[address.ton, address.npi]);
    put_short(out, &address.value);
}

/// Writes 2 length, UTF-8; at most 65,535 octets.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&(end as u16).to_le_bytes());
    out.extend_from_slice(text.get(..end).unwrap_or_default().as_bytes());
}

/// Writes a number as LEB128.
pub fn put_leb128(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
