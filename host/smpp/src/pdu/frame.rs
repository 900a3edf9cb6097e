use super::Header;
use crate::wire::HEADER_LENGTH;
use bytes::{Bytes, BytesMut};

/// What stands at the front of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Not enough octets for a PDU yet.
    Incomplete,
    /// A PDU, cut out of the stream: its header and its body.
    Whole(Header, Bytes),
    /// A length that no PDU may have. Where the next one begins cannot be known: the stream is lost.
    Impossible(Header),
}

impl Frame {
    /// Cuts the PDU at the front out of `input`, if it is whole. `limit` is the longest PDU that is taken, in octets; a
    /// longer one is seen at its header, before anything of its body is kept.
    pub fn cut(input: &mut BytesMut, limit: u32) -> Self {
        let Some(header) = Header::decode(input) else { return Self::Incomplete };
        let length = header.length as usize;
        if length < HEADER_LENGTH || header.length > limit {
            return Self::Impossible(header);
        }
        if input.len() < length {
            return Self::Incomplete;
        }
        let mut pdu = input.split_to(length).freeze();
        Self::Whole(header, pdu.split_off(HEADER_LENGTH))
    }
}
