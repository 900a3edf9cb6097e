//! Trace: the nodes that a message has passed (SGIP 1.2 §4.4).

use super::RESERVE;
use crate::wire::{EndOfBody, Reader, Write};
use crate::{ResultCode, Sequence};
use bytes::{Bytes, BytesMut};

/// Trace: asks for the nodes that a message has passed (SGIP 1.2 §4.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The sequence of the message's Submit.
    pub submit: Sequence,
    /// The user's number.
    pub user: Bytes,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

impl Trace {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.raw(&self.submit.octets());
        out.text(&self.user, 21);
        out.raw(&self.reserve);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(Self { submit: reader.sequence()?, user: reader.text(21)?, reserve: reader.array()? })
    }
}

/// One node that a traced message has passed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceHop {
    /// 0 received, 1 waiting, otherwise an error.
    pub result: ResultCode,
    /// The node number: six octets in 1.2, ten in 1.3.
    pub node: Bytes,
    /// Time of reception, `yymmddhhmmss`.
    pub received: Bytes,
    /// Time of transmission, `yymmddhhmmss`.
    pub sent: Bytes,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

/// The answer to [`Trace`] (SGIP 1.2 §4.4, SGIP 1.3 §4.4.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceAnswer {
    /// The nodes.
    pub hops: Vec<TraceHop>,
    /// Whether node numbers have ten octets, as in 1.3.
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

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        let count = usize::from(reader.u8()?);
        // The version is not in the PDU; the length determines it.
        let wide = count > 0 && reader.remaining() == count * Self::hop(true);
        let mut hops = Vec::with_capacity(count.min(reader.remaining() / Self::hop(wide)));
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
