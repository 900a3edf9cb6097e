//! Bind: the login (SGIP 1.2 §4.2.3.1).

use super::RESERVE;
use crate::wire::{EndOfBody, Reader, Write};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// The direction of a login (SGIP 1.2 §4.2.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LoginType(pub u8);

impl LoginType {
    /// An SP to a gateway: Submit.
    pub const SP: Self = Self(1);
    /// A gateway to an SP: Deliver, Report.
    pub const GATEWAY: Self = Self(2);
    /// Between gateways.
    pub const FORWARD: Self = Self(3);
    /// For tests: Trace.
    pub const TEST: Self = Self(11);
}

impl fmt::Debug for LoginType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "login type {}", self.0)
    }
}

/// A login (SGIP 1.2 §4.2.3.1).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bind {
    /// The direction.
    pub login_type: LoginType,
    /// The login name; at most 16 octets.
    pub name: Bytes,
    /// The password; at most 16 octets, in the clear.
    pub password: Bytes,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

impl fmt::Debug for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bind")
            .field("login_type", &self.login_type)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Bind {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.u8(self.login_type.0);
        out.text(&self.name, 16);
        out.text(&self.password, 16);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self {
            login_type: LoginType(reader.u8()?),
            name: reader.text(16)?,
            password: reader.text(16)?,
            reserve: reader.array()?,
        })
    }
}
