//! Fields on the wire: unsigned numbers in network order, text of fixed width padded with NUL on the right.

use crate::{Sequence, pdu::Command};
use bytes::{Bytes, BytesMut};

/// Octets of a header (SGIP 1.2 §4.2.2).
pub const HEADER_LENGTH: usize = 20;

/// The longest PDU that is sent (SGIP 1.2 §4). More is taken, since a hundred users and a text are longer than that.
pub const MAX_PDU: usize = 2048;

/// What stands before every body.
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
    /// Reads a header; `None` while it is not all there.
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

/// A PDU that cannot be understood: its connection is closed, without an answer (SGIP 1.2 §3.7.2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The command id is none.
    #[error("unknown command id {0:#010x}")]
    Unknown(u32),
    /// The body is shorter than its fields say.
    #[error("{command:?}: the body ends within {field}")]
    Short {
        /// What it claims to be.
        command: Command,
        /// Where it ended.
        field: &'static str,
    },
    /// The body is longer than its fields say.
    #[error("{command:?}: {octets} octets too many")]
    Long {
        /// What it claims to be.
        command: Command,
        /// How many.
        octets: usize,
    },
}

/// A body ended too early.
pub(crate) struct Ended;

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Ended> {
        let (part, rest) = self.rest.split_at_checked(count).ok_or(Ended)?;
        self.rest = rest;
        Ok(part)
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Ended> {
        self.take(N)?.try_into().map_err(|_| Ended)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Ended> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Ended> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn sequence(&mut self) -> Result<Sequence, Ended> {
        Ok(Sequence::from_octets(self.array()?))
    }

    /// Text of this width: what stands before the first NUL.
    pub(crate) fn text(&mut self, width: usize) -> Result<Bytes, Ended> {
        let field = self.take(width)?;
        let end = field.iter().position(|octet| *octet == 0).unwrap_or(width);
        Ok(Bytes::copy_from_slice(&field[..end]))
    }
}

pub(crate) trait Write {
    fn u8(&mut self, value: u8);
    fn u32(&mut self, value: u32);
    fn raw(&mut self, octets: &[u8]);
    /// Text in a field of this width. Owners see to it that it fits; what does not is cut.
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
