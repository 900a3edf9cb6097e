//! Deliver: a gateway delivers an MO to an SP.

use super::{NUMBER_WIDTH, RESERVE};
use crate::wire::{EndOfBody, Reader, Write};
use bytes::{Bytes, BytesMut};

/// Deliver: a message from a subscriber (SGIP 1.2 §4.2.3.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deliver {
    /// The subscriber's number, with 86.
    pub user: Bytes,
    /// The access number to which it was sent.
    pub sp_number: Bytes,
    /// TP-PID.
    pub tp_pid: u8,
    /// As in [`crate::Submit::tp_udhi`].
    pub tp_udhi: u8,
    /// As in [`crate::Submit::coding`].
    pub coding: u8,
    /// As in [`crate::Submit::content`].
    pub content: Bytes,
    /// As in [`crate::Submit::reserve`].
    pub reserve: [u8; RESERVE],
}

impl Deliver {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.user, NUMBER_WIDTH);
        out.text(&self.sp_number, NUMBER_WIDTH);
        out.raw(&[self.tp_pid, self.tp_udhi, self.coding]);
        out.u32(u32::try_from(self.content.len()).unwrap_or(u32::MAX));
        out.raw(&self.content);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self {
            user: reader.text(NUMBER_WIDTH)?,
            sp_number: reader.text(NUMBER_WIDTH)?,
            tp_pid: reader.u8()?,
            tp_udhi: reader.u8()?,
            coding: reader.u8()?,
            content: super::read_content(reader)?,
            reserve: reader.array()?,
        })
    }
}
