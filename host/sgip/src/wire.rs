//! Fields on the wire: unsigned numbers in network order, text of fixed width padded with NUL on the right.

use crate::{Sequence, pdu::SgipCommand};
use bytes::{Bytes, BytesMut};

/// Octets of a header (SGIP 1.2 §4.2.2).
pub const HEADER_LENGTH: usize = 20;

/// The longest PDU that we send (SGIP 1.2 §4). Longer ones are accepted, since a Submit to a hundred users is longer.
pub const MAX_PDU: usize = 2048;

/// The header of every PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Octets of the whole PDU.
    pub length: u32,
    /// The raw command id; bit 31 set in answers.
    pub command: u32,
    /// The sequence.
    pub sequence: Sequence,
}

impl Header {
    /// Decodes a header; `None` if it is incomplete.
    #[must_use]
    pub fn peek(octets: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(octets.get(..HEADER_LENGTH)?);
        Some(Self {
            length: reader.u32().ok()?,
            command: reader.u32().ok()?,
            sequence: reader.sequence().ok()?,
        })
    }
}

/// A PDU cannot be decoded. Its connection is closed without an answer (SGIP 1.2 §3.7.2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The command id is unknown.
    #[error("unknown command id {0:#010x}")]
    Unknown(u32),
    /// The body is shorter than its fields.
    #[error("{command:?}: the body ends within {field}")]
    Short {
        /// The command.
        command: SgipCommand,
        /// The field in which it ended.
        field: &'static str,
    },
    /// The body is longer than its fields.
    #[error("{command:?}: {octets} octets too many")]
    Long {
        /// The command.
        command: SgipCommand,
        /// The number of octets too many.
        octets: usize,
    },
}

/// The body ended too early.
pub(crate) struct EndOfBody;

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], EndOfBody> {
        let (part, rest) = self.rest.split_at_checked(count).ok_or(EndOfBody)?;
        self.rest = rest;
        Ok(part)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], EndOfBody> {
        self.take(N)?.try_into().map_err(|_| EndOfBody)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, EndOfBody> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, EndOfBody> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn sequence(&mut self) -> Result<Sequence, EndOfBody> {
        Ok(Sequence::from_octets(self.array()?))
    }

    /// Reads text of this width, up to the first NUL.
    pub(crate) fn text(&mut self, width: usize) -> Result<Bytes, EndOfBody> {
        let field = self.take(width)?;
        let end = field.iter().position(|octet| *octet == 0).unwrap_or(width);
        Ok(Bytes::copy_from_slice(&field[..end]))
    }
}

pub(crate) trait Write {
    fn u8(&mut self, value: u8);
    fn u32(&mut self, value: u32);
    fn raw(&mut self, octets: &[u8]);
    /// Writes text into a field of this width. Callers must make sure that it fits; longer text is cut.
    fn text(&mut self, text: &[u8], width: usize);
}

impl Write for BytesMut {
    fn u8(&mut self, value: u8) {
        self.extend_from_slice(&[value]);
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn raw(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }

    fn text(&mut self, text: &[u8], width: usize) {
        let text = text.get(..width).unwrap_or(text);
        self.extend_from_slice(text);
        self.resize(self.len() + width - text.len(), 0);
    }
}
