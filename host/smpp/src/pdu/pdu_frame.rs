use super::Header;
use crate::wire::HEADER_LENGTH;
use bytes::{Bytes, BytesMut};

/// The PDU at the front of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PduFrame {
    /// The PDU is incomplete.
    Incomplete,
    /// A complete PDU: its header and its body.
    Complete(Header, Bytes),
    /// A length that no PDU may have. The beginning of the next PDU cannot be known, so the stream is lost.
    InvalidLength(Header),
}

impl PduFrame {
    /// Cuts the PDU at the front out of `input`, if it is complete. `limit` is the longest PDU accepted, in octets; a
    /// longer one is recognized by its header, before its body is stored.
    pub fn cut(input: &mut BytesMut, limit: u32) -> Self {
        let Some(header) = Header::decode(input) else { return Self::Incomplete };
        let length = header.length as usize;
        if length < HEADER_LENGTH || header.length > limit {
            return Self::InvalidLength(header);
        }
        if input.len() < length {
            return Self::Incomplete;
        }
        let mut pdu = input.split_to(length).freeze();
        Self::Complete(header, pdu.split_off(HEADER_LENGTH))
    }
}
