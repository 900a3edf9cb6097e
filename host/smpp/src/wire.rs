use crate::CommandStatus;
use bytes::{BufMut, Bytes, BytesMut};

/// Octets in a PDU header: length, command id, status, sequence number (34 §3.2).
pub const HEADER_LENGTH: usize = 16;

/// A body that cannot be decoded or encoded, with the status for the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} ({status})")]
pub struct BodyError {
    /// The status to answer; for a body of ours, the status that a peer would answer.
    pub status: CommandStatus,
    /// The error, for the log. It never contains message text or numbers.
    pub what: &'static str,
}

impl BodyError {
    pub(crate) fn new(status: CommandStatus, what: &'static str) -> Self {
        Self { status, what }
    }
}

/// Reads the fields of one body; never reads beyond it.
pub(crate) struct Reader {
    body: Bytes,
}

impl Reader {
    pub(crate) fn new(body: Bytes) -> Self {
        Self { body }
    }

    pub(crate) fn rest(self) -> Bytes {
        self.body
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, BodyError> {
        let octet = *self.body.first().ok_or(SHORT)?;
        bytes::Buf::advance(&mut self.body, 1);
        Ok(octet)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BodyError> {
        let octets: [u8; 4] = self.body.get(..4).and_then(|octets| octets.try_into().ok()).ok_or(SHORT)?;
        bytes::Buf::advance(&mut self.body, 4);
        Ok(u32::from_be_bytes(octets))
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<Bytes, BodyError> {
        if count > self.body.len() {
            return Err(SHORT);
        }
        Ok(self.body.split_to(count))
    }

    /// The length of the next C-octet string, without its NUL. Looks no further than `limit`.
    #[inline]
    fn c_length(&self, limit: usize, status: CommandStatus, what: &'static str) -> Result<usize, BodyError> {
        let field = self.body.get(..limit).unwrap_or(&self.body);
        match field.iter().position(|octet| *octet == 0) {
            Some(length) => Ok(length),
            None if field.len() < limit => Err(NO_NUL),
            None => Err(BodyError::new(status, what)),
        }
    }

    /// Reads a C-octet string of any length, whose NUL may be missing at the end of the body.
    pub(crate) fn lenient_c_string(&mut self) -> Bytes {
        let end = self.body.iter().position(|octet| *octet == 0);
        let value = self.body.split_to(end.unwrap_or(self.body.len()));
        bytes::Buf::advance(&mut self.body, usize::from(end.is_some()));
        value
    }

    /// Reads a C-octet string of at most `limit` octets, including the NUL.
    #[inline]
    pub(crate) fn c_string(
        &mut self,
        limit: usize,
        status: CommandStatus,
        what: &'static str,
    ) -> Result<Bytes, BodyError> {
        let length = self.c_length(limit, status, what)?;
        let value = if length == 0 { Bytes::new() } else { self.body.slice(..length) };
        bytes::Buf::advance(&mut self.body, length + 1);
        Ok(value)
    }

    #[inline]
    pub(crate) fn address(
        &mut self,
        limit: usize,
        status: CommandStatus,
        what: &'static str,
    ) -> Result<model::Address, BodyError> {
        let ton = self.u8()?;
        let npi = self.u8()?;
        let length = self.c_length(limit, status, what)?;
        let address = model::Address::new(ton, npi, self.body.get(..length).unwrap_or_default());
        bytes::Buf::advance(&mut self.body, length + 1);
        Ok(address)
    }
}

const SHORT: BodyError =
    BodyError { status: CommandStatus::RINVCMDLEN, what: "the body ends before its last field" };
const NO_NUL: BodyError =
    BodyError { status: CommandStatus::RINVCMDLEN, what: "a string has no end inside the PDU" };

/// Writes a C-octet string, cut to the length of the field, so that the PDU is always valid. [`fits`] checks that
/// nothing has to be cut.
#[inline]
pub(crate) fn put_c_string(out: &mut BytesMut, value: &[u8], limit: usize) {
    let end = value.iter().position(|octet| *octet == 0).unwrap_or(value.len()).min(limit - 1);
    out.put_slice(value.get(..end).unwrap_or_default());
    out.put_u8(0);
}

#[inline]
pub(crate) fn put_address(out: &mut BytesMut, address: &model::Address, limit: usize) {
    out.put_u8(address.ton);
    out.put_u8(address.npi);
    put_c_string(out, &address.value, limit);
}

/// Checks that a C-octet string fits its field.
pub(crate) fn fits(
    value: &[u8],
    limit: usize,
    status: CommandStatus,
    what: &'static str,
) -> Result<(), BodyError> {
    if value.len() < limit && !value.contains(&0) { Ok(()) } else { Err(BodyError::new(status, what)) }
}

/// Checks that a time fits its field: it is empty, or has 16 characters (34 §7.1.1).
pub(crate) fn fits_time(value: &[u8], status: CommandStatus, what: &'static str) -> Result<(), BodyError> {
    if value.is_empty() || (value.len() == 16 && !value.contains(&0)) {
        Ok(())
    } else {
        Err(BodyError::new(status, what))
    }
}
