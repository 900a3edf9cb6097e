//! Submit: an SP submits a message for up to a hundred users.

use super::{NUMBER_WIDTH, RESERVE};
use crate::wire::{EndOfBody, Reader, Write};
use bytes::{Bytes, BytesMut};

/// Submit: a message for subscribers (SGIP 1.2 §4.2.3.3). Octets are as on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Submit {
    /// The SP's access number, which the handset shows.
    pub sp_number: Bytes,
    /// The payer: a number with 86; empty: each user; 21 zeros: the SP.
    pub charge_number: Bytes,
    /// The users' numbers, with 86; 1 to 100.
    pub users: Vec<Bytes>,
    /// The SP's corporation code, five digits.
    pub corp_id: Bytes,
    /// The service, at most ten octets, chosen by the SP.
    pub service_type: Bytes,
    /// 0 to 4 (SGIP 1.2 §5.3).
    pub fee_type: u8,
    /// The fee in fen, as digits.
    pub fee_value: Bytes,
    /// Credit given to the user, in fen, as digits.
    pub given_value: Bytes,
    /// Whether the fee is 0 receivable or 1 received.
    pub agent_flag: u8,
    /// 0 first MT caused by an MO, 1 later MT caused by an MO, 2 MT without an MO, 3 feedback of the system.
    pub mo_related: u8,
    /// 0 (low) to 9 (high).
    pub priority: u8,
    /// `yymmddhhmmss032+`, or empty.
    pub expire_time: Bytes,
    /// `yymmddhhmmss032+`, or empty: immediately.
    pub schedule_time: Bytes,
    /// Requested Reports: 0 on failure only, 1 always, 2 never; 3: a monthly fee record that is not for the handset.
    pub report_flag: u8,
    /// TP-PID.
    pub tp_pid: u8,
    /// 1: the content begins with a UDH. Some peers write 0x40.
    pub tp_udhi: u8,
    /// The coding; see [`crate::text::Coding`].
    pub coding: u8,
    /// 0: a short message.
    pub message_type: u8,
    /// The content, including its UDH.
    pub content: Bytes,
    /// Preserved; later systems carry the LinkID here.
    pub reserve: [u8; RESERVE],
}

impl Submit {
    /// Maximum number of users in a Submit (SGIP 1.2 §4.2.3.3).
    pub const MAX_USERS: usize = 100;

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.sp_number, NUMBER_WIDTH);
        out.text(&self.charge_number, NUMBER_WIDTH);
        let users = self.users.get(..255).unwrap_or(&self.users);
        out.u8(u8::try_from(users.len()).unwrap_or(u8::MAX));
        for user in users {
            out.text(user, NUMBER_WIDTH);
        }
        out.text(&self.corp_id, 5);
        out.text(&self.service_type, 10);
        out.u8(self.fee_type);
        out.text(&self.fee_value, 6);
        out.text(&self.given_value, 6);
        out.raw(&[self.agent_flag, self.mo_related, self.priority]);
        out.text(&self.expire_time, 16);
        out.text(&self.schedule_time, 16);
        out.raw(&[self.report_flag, self.tp_pid, self.tp_udhi, self.coding, self.message_type]);
        out.u32(u32::try_from(self.content.len()).unwrap_or(u32::MAX));
        out.raw(&self.content);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        let (sp_number, charge_number) = (reader.text(NUMBER_WIDTH)?, reader.text(NUMBER_WIDTH)?);
        let count = usize::from(reader.u8()?);
        let mut users = Vec::with_capacity(count.min(reader.remaining() / NUMBER_WIDTH));
        for _ in 0..count {
            users.push(reader.text(NUMBER_WIDTH)?);
        }
        Ok(Self {
            sp_number,
            charge_number,
            users,
            corp_id: reader.text(5)?,
            service_type: reader.text(10)?,
            fee_type: reader.u8()?,
            fee_value: reader.text(6)?,
            given_value: reader.text(6)?,
            agent_flag: reader.u8()?,
            mo_related: reader.u8()?,
            priority: reader.u8()?,
            expire_time: reader.text(16)?,
            schedule_time: reader.text(16)?,
            report_flag: reader.u8()?,
            tp_pid: reader.u8()?,
            tp_udhi: reader.u8()?,
            coding: reader.u8()?,
            message_type: reader.u8()?,
            content: super::read_content(reader)?,
            reserve: reader.array()?,
        })
    }
}
