use crate::CommandStatus;
use crate::wire::HEADER_LENGTH;
use bytes::{BufMut, BytesMut};

/// An SMPP command_id (34 §5.1.2.1); unknown values are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CommandId(pub u32);

impl CommandId {
    /// generic_nack.
    pub const GENERIC_NACK: Self = Self(0x8000_0000);
    /// bind_receiver.
    pub const BIND_RECEIVER: Self = Self(0x01);
    /// bind_transmitter.
    pub const BIND_TRANSMITTER: Self = Self(0x02);
    /// query_sm.
    pub const QUERY_SM: Self = Self(0x03);
    /// submit_sm.
    pub const SUBMIT_SM: Self = Self(0x04);
    /// deliver_sm.
    pub const DELIVER_SM: Self = Self(0x05);
    /// unbind.
    pub const UNBIND: Self = Self(0x06);
    /// replace_sm.
    pub const REPLACE_SM: Self = Self(0x07);
    /// cancel_sm.
    pub const CANCEL_SM: Self = Self(0x08);
    /// bind_transceiver.
    pub const BIND_TRANSCEIVER: Self = Self(0x09);
    /// outbind.
    pub const OUTBIND: Self = Self(0x0B);
    /// enquire_link.
    pub const ENQUIRE_LINK: Self = Self(0x15);
    /// submit_multi.
    pub const SUBMIT_MULTI: Self = Self(0x21);
    /// alert_notification.
    pub const ALERT_NOTIFICATION: Self = Self(0x102);
    /// data_sm.
    pub const DATA_SM: Self = Self(0x103);
    /// broadcast_sm.
    pub const BROADCAST_SM: Self = Self(0x111);
    /// query_broadcast_sm.
    pub const QUERY_BROADCAST_SM: Self = Self(0x112);
    /// cancel_broadcast_sm.
    pub const CANCEL_BROADCAST_SM: Self = Self(0x113);

    /// Whether this is a response (bit 31).
    #[must_use]
    pub fn is_response(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }

    /// The response to this request.
    #[must_use]
    pub fn response(self) -> Self {
        Self(self.0 | 0x8000_0000)
    }

    /// The request of this response.
    #[must_use]
    pub fn request(self) -> Self {
        Self(self.0 & 0x7FFF_FFFF)
    }

    /// Whether this is a request of the specification.
    #[must_use]
    pub fn is_known_request(self) -> bool {
        matches!(self.0, 0x01..=0x09 | 0x0B | 0x15 | 0x21 | 0x102 | 0x103 | 0x111..=0x113)
    }
}

/// A PDU header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Octets of the whole PDU.
    pub length: u32,
    /// The command.
    pub command: CommandId,
    /// The status; only set in responses.
    pub status: CommandStatus,
    /// The sequence number, which a response echoes.
    pub sequence: u32,
}

impl Header {
    /// Decodes a header; `None` if it is incomplete.
    #[must_use]
    #[inline]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; HEADER_LENGTH] = octets.get(..HEADER_LENGTH)?.try_into().ok()?;
        let word =
            |at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        Some(Self {
            length: word(0),
            command: CommandId(word(4)),
            status: CommandStatus(word(8)),
            sequence: word(12),
        })
    }

    #[inline]
    pub(crate) fn put(out: &mut BytesMut, command: CommandId, status: CommandStatus, sequence: u32) -> usize {
        let start = out.len();
        out.put_u32(0);
        out.put_u32(command.0);
        out.put_u32(status.0);
        out.put_u32(sequence);
        start
    }

    #[inline]
    pub(crate) fn close(out: &mut BytesMut, start: usize) {
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        if let Some(field) = out.get_mut(start..start + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
}
