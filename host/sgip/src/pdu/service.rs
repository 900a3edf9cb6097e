//! Login, tracing and the check of a subscriber.

use super::RESERVE;
use crate::wire::{Ended, Reader, Write};
use crate::{ResultCode, Sequence};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// Who connects to whom (SGIP 1.2 §4.2.3.1).
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
    /// Who connects to whom.
    pub login_type: LoginType,
    /// At most 16 octets.
    pub name: Bytes,
    /// At most 16 octets, in the clear.
    pub password: Bytes,
    /// Kept as it came.
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

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(Self {
            login_type: LoginType(reader.u8()?),
            name: reader.text(16)?,
            password: reader.text(16)?,
            reserve: reader.array()?,
        })
    }
}

/// Where is a message? (SGIP 1.2 §4.4)
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The sequence of its Submit.
    pub submit: Sequence,
    /// Its user.
    pub user: Bytes,
    /// Kept as it came.
    pub reserve: [u8; RESERVE],
}

impl Trace {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.raw(&self.submit.octets());
        out.text(&self.user, 21);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(Self { submit: reader.sequence()?, user: reader.text(21)?, reserve: reader.array()? })
    }
}

/// One node that a traced message has passed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceHop {
    /// 0 received, 1 waiting, otherwise an error.
    pub result: ResultCode,
    /// The node: six octets in 1.2, ten in 1.3.
    pub node: Bytes,
    /// `yymmddhhmmss`.
    pub received: Bytes,
    /// `yymmddhhmmss`.
    pub sent: Bytes,
    /// Kept as it came.
    pub reserve: [u8; RESERVE],
}

/// The answer to [`Trace`] (SGIP 1.2 §4.4, SGIP 1.3 §4.4.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceAnswer {
    /// The nodes.
    pub hops: Vec<TraceHop>,
    /// With node numbers of ten octets, as 1.3 has them.
    pub wide: bool,
}

impl TraceAnswer {
    fn hop(wide: bool) -> usize {
        if wide { 51 } else { 47 }
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let hops = self.hops.get(..255).unwrap_or(&self.hops);
        out.u8(u8::try_from(hops.len()).unwrap_or(u8::MAX));
        for hop in hops {
            out.u8(hop.result.0);
            out.text(&hop.node, if self.wide { 10 } else { 6 });
            out.text(&hop.received, 16);
            out.text(&hop.sent, 16);
            out.raw(&hop.reserve);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        let count = usize::from(reader.u8()?);
        // The version is not in the PDU; its length tells.
        let wide = count > 0 && reader.left() == count * Self::hop(true);
        let mut hops = Vec::with_capacity(count.min(reader.left() / Self::hop(wide)));
        for _ in 0..count {
            hops.push(TraceHop {
                result: ResultCode(reader.u8()?),
                node: reader.text(if wide { 10 } else { 6 })?,
                received: reader.text(16)?,
                sent: reader.text(16)?,
                reserve: reader.array()?,
            });
        }
        Ok(Self { hops, wide })
    }
}

/// May a subscriber be charged? (SGIP 1.2 §4.3.1)
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CheckUser {
    /// Login at the billing centre.
    pub name: Bytes,
    /// Its password.
    pub password: Bytes,
    /// The subscriber.
    pub user: Bytes,
    /// Kept as it came.
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

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
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
    /// How it went.
    pub result: ResultCode,
    /// 0 closed, 1 suspended for debt, 2 normal.
    pub status: u8,
    /// Kept as it came.
    pub reserve: [u8; RESERVE],
}

impl CheckUserAnswer {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.raw(&[self.result.0, self.status]);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(Self { result: ResultCode(reader.u8()?), status: reader.u8()?, reserve: reader.array()? })
    }
}
