//! Messages and what is told of them.

use super::RESERVE;
use crate::Sequence;
use crate::wire::{Ended, Reader, Write};
use bytes::{Bytes, BytesMut};

/// Width of every number.
const NUMBER: usize = 21;

/// A message for subscribers (SGIP 1.2 §4.2.3.3). Octets are as on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Submit {
    /// The SP's access number: what the handset shows.
    pub sp_number: Bytes,
    /// Who pays: a number with 86; empty: each user; 21 zeros: the SP.
    pub charge_number: Bytes,
    /// The users, with 86; 1 to 100.
    pub users: Vec<Bytes>,
    /// The SP's corporation code, five digits.
    pub corp_id: Bytes,
    /// The service, at most ten octets, the SP's choice.
    pub service_type: Bytes,
    /// 0 to 4 (SGIP 1.2 §5.3).
    pub fee_type: u8,
    /// In fen, as digits.
    pub fee_value: Bytes,
    /// Credit given to the user, in fen, as digits.
    pub given_value: Bytes,
    /// 0 receivable, 1 received.
    pub agent_flag: u8,
    /// 0 first MT caused by an MO, 1 later one, 2 not caused by an MO, 3 feedback of the system.
    pub mo_related: u8,
    /// 0 (low) to 9 (high).
    pub priority: u8,
    /// `yymmddhhmmss032+`, or empty.
    pub expire_time: Bytes,
    /// `yymmddhhmmss032+`, or empty: at once.
    pub schedule_time: Bytes,
    /// 0 report failure only, 1 always, 2 never, 3 monthly fee record, not for the handset.
    pub report_flag: u8,
    /// TP-PID.
    pub tp_pid: u8,
    /// 1: the content begins with a user data header. Some write 0x40.
    pub tp_udhi: u8,
    /// See [`crate::text::Coding`].
    pub coding: u8,
    /// 0: a short message.
    pub message_type: u8,
    /// The content, its user data header included.
    pub content: Bytes,
    /// Kept as it came; later systems carry the LinkID here.
    pub reserve: [u8; RESERVE],
}

impl Submit {
    /// How many users a Submit may name (SGIP 1.2 §4.2.3.3).
    pub const MAX_USERS: usize = 100;

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.sp_number, NUMBER);
        out.text(&self.charge_number, NUMBER);
        let users = self.users.get(..255).unwrap_or(&self.users);
        out.u8(u8::try_from(users.len()).unwrap_or(u8::MAX));
        for user in users {
            out.text(user, NUMBER);
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

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        let (sp_number, charge_number) = (reader.text(NUMBER)?, reader.text(NUMBER)?);
        let count = usize::from(reader.u8()?);
        let mut users = Vec::with_capacity(count.min(reader.left() / NUMBER));
        for _ in 0..count {
            users.push(reader.text(NUMBER)?);
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
            content: content(reader)?,
            reserve: reader.array()?,
        })
    }
}

/// Content after its length, which is believed only as far as there are octets.
fn content(reader: &mut Reader<'_>) -> Result<Bytes, Ended> {
    let length = reader.u32()?;
    Ok(Bytes::copy_from_slice(reader.take(usize::try_from(length).map_err(|_| Ended)?)?))
}

/// A message from a subscriber (SGIP 1.2 §4.2.3.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deliver {
    /// The subscriber, with 86.
    pub user: Bytes,
    /// The access number that it wrote to.
    pub sp_number: Bytes,
    /// TP-PID.
    pub tp_pid: u8,
    /// As in [`Submit::tp_udhi`].
    pub tp_udhi: u8,
    /// As in [`Submit::coding`].
    pub coding: u8,
    /// As in [`Submit::content`].
    pub content: Bytes,
    /// As in [`Submit::reserve`].
    pub reserve: [u8; RESERVE],
}

impl Deliver {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.user, NUMBER);
        out.text(&self.sp_number, NUMBER);
        out.raw(&[self.tp_pid, self.tp_udhi, self.coding]);
        out.u32(u32::try_from(self.content.len()).unwrap_or(u32::MAX));
        out.raw(&self.content);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(Self {
            user: reader.text(NUMBER)?,
            sp_number: reader.text(NUMBER)?,
            tp_pid: reader.u8()?,
            tp_udhi: reader.u8()?,
            coding: reader.u8()?,
            content: content(reader)?,
            reserve: reader.array()?,
        })
    }
}

/// What became of a Submit for one user (SGIP 1.2 §4.2.3.5).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The sequence of the Submit; the Report's own is in its header.
    pub submit: Sequence,
    /// 0 about a Submit, 1 about a forwarded Deliver.
    pub report_type: u8,
    /// The user, with 86.
    pub user: Bytes,
    /// 0 sent, 1 waiting, 2 failed.
    pub state: u8,
    /// Why it failed; 0 otherwise.
    pub error: u8,
    /// Kept as it came.
    pub reserve: [u8; RESERVE],
}

impl Report {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.raw(&self.submit.octets());
        out.u8(self.report_type);
        out.text(&self.user, NUMBER);
        out.raw(&[self.state, self.error]);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(Self {
            submit: reader.sequence()?,
            report_type: reader.u8()?,
            user: reader.text(NUMBER)?,
            state: reader.u8()?,
            error: reader.u8()?,
            reserve: reader.array()?,
        })
    }
}

/// A subscriber's state has changed (SGIP 1.2 §4.3.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserReport {
    /// The SP's access number.
    pub sp_number: Bytes,
    /// The user, with 86.
    pub user: Bytes,
    /// 0 account closed, 1 suspended for debt, 2 back to normal.
    pub condition: u8,
    /// Kept as it came.
    pub reserve: [u8; RESERVE],
}

impl UserReport {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.sp_number, NUMBER);
        out.text(&self.user, NUMBER);
        out.u8(self.condition);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(Self {
            sp_number: reader.text(NUMBER)?,
            user: reader.text(NUMBER)?,
            condition: reader.u8()?,
            reserve: reader.array()?,
        })
    }
}
