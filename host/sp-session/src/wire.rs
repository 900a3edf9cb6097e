//! Fields on the wire: unsigned numbers in network order, texts of fixed width.

use bytes::{Bytes, BytesMut};

/// Octets of a header: total length, command id, sequence id (CMPP 3.0 §8.3, SMGP 3.0.3 §5.2.1).
pub const HEADER_LENGTH: usize = 12;

/// The header of every PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Octets of the whole PDU, this header included.
    pub length: u32,
    /// The command id; bit 31 is set in answers.
    pub command: u32,
    /// The sequence id; an answer has that of its request.
    pub sequence: u32,
}

impl Header {
    /// Decodes a header; `None` if it is incomplete.
    #[must_use]
    pub fn peek(octets: &[u8]) -> Option<Self> {
        let mut reader = PduReader::new(octets.get(..HEADER_LENGTH)?);
        let (Ok(length), Ok(command), Ok(sequence)) = (reader.u32("l"), reader.u32("c"), reader.u32("s"))
        else {
            return None;
        };
        Some(Self { length, command, sequence })
    }
}

/// A PDU cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The command id is unknown: the connection is closed.
    #[error("unknown command id {0:#010x}")]
    Unknown(u32),
    /// The body ends too early: the connection is closed.
    #[error("the body ends within {field}")]
    Short {
        /// The field in which it ends.
        field: &'static str,
    },
    /// The PDU is whole and its content wrong: it is answered with this status.
    #[error("status {0}")]
    Invalid(u32),
}

/// A PDU cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A text is longer than its field.
    #[error("{field} has {octets} octets, and its field has {width}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Octets of the text.
        octets: usize,
        /// Octets of the field.
        width: usize,
    },
    /// More numbers, or more octets of text, than the count field can express.
    #[error("{field}: more than {limit}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Reads the fields of a body, in their order.
#[derive(Clone, Debug)]
pub struct PduReader<'a> {
    rest: &'a [u8],
}

impl<'a> PduReader<'a> {
    /// Starts at the first octet of a body.
    #[must_use]
    pub fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    /// The octets that are not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Octets that are not read yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Reads `count` octets.
    ///
    /// # Errors
    /// If the body ends before.
    pub fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let (part, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Short { field })?;
        self.rest = rest;
        Ok(part)
    }

    /// Reads an array of octets.
    ///
    /// # Errors
    /// If the body ends before.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        self.take(N, field)?.try_into().map_err(|_| DecodeError::Short { field })
    }

    /// Reads a number of one octet.
    ///
    /// # Errors
    /// If the body ends before.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Reads a number of four octets.
    ///
    /// # Errors
    /// If the body ends before.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    /// Reads a number of eight octets.
    ///
    /// # Errors
    /// If the body ends before.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(field)?))
    }

    /// Reads a text: up to the first NUL, without the spaces at its end. Octets after the NUL are ignored.
    ///
    /// # Errors
    /// If the body ends before the field does.
    pub fn text(&mut self, width: usize, field: &'static str) -> Result<Bytes, DecodeError> {
        let octets = self.take(width, field)?;
        Ok(Bytes::copy_from_slice(text_of(octets)))
    }

    /// Reads the last text of a body, which some peers omit or truncate.
    pub fn last_text(&mut self, width: usize) -> Bytes {
        let octets = self.rest.get(..width).unwrap_or(self.rest);
        self.rest = &self.rest[octets.len()..];
        Bytes::copy_from_slice(text_of(octets))
    }
}

fn text_of(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|octet| *octet == 0).unwrap_or(field.len());
    field[..end].trim_ascii_end()
}

/// Writes the fields of a body, in their order. The first text that does not fit its field is remembered.
#[derive(Debug)]
pub struct PduWriter<'a> {
    out: &'a mut BytesMut,
    start: usize,
    error: Option<FieldError>,
}

impl<'a> PduWriter<'a> {
    /// Starts a PDU at the end of `out`.
    pub fn new(out: &'a mut BytesMut, command: u32, sequence: u32) -> Self {
        let start = out.len();
        let mut writer = Self { out, start, error: None };
        writer.u32(0).u32(command).u32(sequence);
        writer
    }

    /// Writes a number of one octet.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.octets(&[value])
    }

    /// Writes a number of four octets.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.octets(&value.to_be_bytes())
    }

    /// Writes a number of eight octets.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.octets(&value.to_be_bytes())
    }

    /// Writes octets as they are.
    pub fn octets(&mut self, octets: &[u8]) -> &mut Self {
        self.out.extend_from_slice(octets);
        self
    }

    /// Writes a text, padded with NULs on the right. If it does not fit, [`finish`](Self::finish) fails.
    pub fn text(&mut self, text: &[u8], width: usize, field: &'static str) -> &mut Self {
        if text.len() > width {
            self.fail(FieldError::TooLong { field, octets: text.len(), width });
            return self;
        }
        self.out.extend_from_slice(text);
        self.out.resize(self.out.len() + width - text.len(), 0);
        self
    }

    /// Writes a count of one octet.
    pub fn count(&mut self, count: usize, limit: usize, field: &'static str) -> &mut Self {
        match u8::try_from(count) {
            Ok(octet) if count <= limit => self.u8(octet),
            _ => {
                self.fail(FieldError::TooMany { field, limit });
                self
            }
        }
    }

    fn fail(&mut self, error: FieldError) {
        self.error.get_or_insert(error);
    }

    /// Ends the PDU by writing its length.
    ///
    /// # Errors
    /// If a field did not fit; `out` is then unchanged.
    pub fn finish(self) -> Result<(), FieldError> {
        if let Some(error) = self.error {
            self.out.truncate(self.start);
            return Err(error);
        }
        let length = u32::try_from(self.out.len() - self.start).unwrap_or(u32::MAX);
        if let Some(field) = self.out.get_mut(self.start..self.start + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_07_a_text_ends_with_its_first_nul_and_without_spaces() {
        let text = |octets: &[u8]| PduReader::new(octets).text(octets.len(), "text").unwrap();
        assert_eq!(text(b"full"), "full");
        assert_eq!(text(b"\0rest"), "");
        assert_eq!(text(b"ab\0garbage"), "ab");
        assert_eq!(text(b"ab  \0\0"), "ab");
        assert_eq!(text(&[0xC4, 0xE3, 0]), &[0xC4, 0xE3][..]);
        assert_eq!(PduReader::new(b"abc").text(4, "text"), Err(DecodeError::Short { field: "text" }));
        assert_eq!(PduReader::new(b"abc").last_text(8), "abc");
    }

    #[test]
    fn check_08_a_text_that_is_too_long_is_not_cut() {
        let mut out = BytesMut::from(&b"before"[..]);
        let mut writer = PduWriter::new(&mut out, 4, 1);
        writer.text(b"1234567890123456789012", 21, "Dest_terminal_Id");
        let error = FieldError::TooLong { field: "Dest_terminal_Id", octets: 22, width: 21 };
        assert_eq!(writer.finish(), Err(error));
        assert_eq!(out, "before");
    }
}
