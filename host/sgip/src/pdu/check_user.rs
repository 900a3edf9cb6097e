//! CheckUser: the check of a subscriber.

use super::RESERVE;
use crate::ResultCode;
use crate::wire::{EndOfBody, Reader, Write};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// CheckUser: whether a subscriber may be charged (SGIP 1.2 §4.3.1).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CheckUser {
    /// The login name at the billing centre.
    pub name: Bytes,
    /// The password.
    pub password: Bytes,
    /// The subscriber.
    pub user: Bytes,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

impl fmt::Debug for CheckUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckUser").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CheckUser {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.text(&self.name, 16);
        out.text(&self.password, 16);
        out.text(&self.user, 21);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self {
            name: reader.text(16)?,
            password: reader.text(16)?,
            user: reader.text(21)?,
            reserve: reader.array()?,
        })
    }
}

/// The answer to [`CheckUser`] (SGIP 1.2 §4.3.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckUserAnswer {
    /// The result.
    pub result: ResultCode,
    /// 0 closed, 1 suspended for debt, 2 normal.
    pub status: u8,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

impl CheckUserAnswer {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.raw(&[self.result.0, self.status]);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self { result: ResultCode(reader.u8()?), status: reader.u8()?, reserve: reader.array()? })
    }
}
