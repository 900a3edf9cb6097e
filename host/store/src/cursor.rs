//! Reads and writes the fields of records.

use crate::record::RecordError;
use model::{Address, AddressBytes};

pub(crate) struct Cursor<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn damaged(&self, what: &'static str) -> RecordError {
        RecordError { what, offset: self.at }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let end = self.at.checked_add(count).ok_or_else(|| self.damaged("a length is impossible"))?;
        let part = self.octets.get(self.at..end).ok_or_else(|| self.damaged("the record ends too early"))?;
        self.at = end;
        Ok(part)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let offset = self.at;
        self.take(N)?.try_into().map_err(|_| RecordError { what: "the record ends too early", offset })
    }

    pub(crate) fn u8(&mut self) -> Result<u8, RecordError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, RecordError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, RecordError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, RecordError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn short(&mut self) -> Result<&'a [u8], RecordError> {
        let length = usize::from(self.u8()?);
        self.take(length)
    }

    pub(crate) fn long(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn address(&mut self) -> Result<Address, RecordError> {
        let (ton, npi) = (self.u8()?, self.u8()?);
        Ok(Address { ton, npi, value: AddressBytes::from_slice(self.short()?) })
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, RecordError> {
        let offset = self.at;
        let length = usize::from(self.u16()?);
        std::str::from_utf8(self.take(length)?).map_err(|_| RecordError { what: "text is not UTF-8", offset })
    }
}

pub(crate) fn put_short(out: &mut Vec<u8>, octets: &[u8]) {
    let octets = octets.get(..255).unwrap_or(octets);
    out.push(octets.len() as u8);
    out.extend_from_slice(octets);
}

pub(crate) fn put_long(out: &mut Vec<u8>, octets: &[u8]) {
    out.extend_from_slice(&(octets.len() as u32).to_le_bytes());
    out.extend_from_slice(octets);
}

pub(crate) fn put_address(out: &mut Vec<u8>, address: &Address) {
    out.extend_from_slice(&[address.ton, address.npi]);
    put_short(out, &address.value);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&(end as u16).to_le_bytes());
    out.extend_from_slice(text.get(..end).unwrap_or_default().as_bytes());
}
