//! Report: the state of a Submit for one user; UserReport: the state of a subscriber.

use super::{NUMBER_WIDTH, RESERVE};
use crate::Sequence;
use crate::wire::{EndOfBody, Reader, Write};
use bytes::{Bytes, BytesMut};

/// Report: the state of a Submit for one user (SGIP 1.2 §4.2.3.5).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The sequence of the Submit; the Report's own sequence is in its header.
    pub submit: Sequence,
    /// 0 about a Submit, 1 about a forwarded Deliver.
    pub report_type: u8,
    /// The user's number, with 86.
    pub user: Bytes,
    /// 0 sent, 1 waiting, 2 failed.
    pub state: u8,
    /// The error code of a failure; 0 otherwise.
    pub error: u8,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

impl Report {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.raw(&self.submit.octets());
        out.u8(self.report_type);
        out.text(&self.user, NUMBER_WIDTH);
        out.raw(&[self.state, self.error]);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self {
            submit: reader.sequence()?,
            report_type: reader.u8()?,
            user: reader.text(NUMBER_WIDTH)?,
            state: reader.u8()?,
            error: reader.u8()?,
            reserve: reader.array()?,
        })
    }
}

/// UserReport: a subscriber's state has changed (SGIP 1.2 §4.3.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserReport {
    /// The SP's access number.
    pub sp_number: Bytes,
    /// The user's number, with 86.
    pub user: Bytes,
    /// 0 account closed, 1 suspended for debt, 2 back to normal.
    pub condition: u8,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

impl UserReport {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.sp_number, NUMBER_WIDTH);
        out.text(&self.user, NUMBER_WIDTH);
        out.u8(self.condition);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self {
            sp_number: reader.text(NUMBER_WIDTH)?,
            user: reader.text(NUMBER_WIDTH)?,
            condition: reader.u8()?,
            reserve: reader.array()?,
        })
    }
}
