//! Verdicts and legs, in the layout of the store or of the archive.
//!
//! Verdict: 1 kind: 0 forward (count, legs), 1 hold (8 until), 2 reject (1 reason). Leg: peer, 1 rank, weight, cost, 1
//! flags (bit 0 longest wait, 1 source, 2 destination, 3 to be resolved, 4 IMSI), then the flagged fields: ms, address,
//! address, IMSI.

use crate::{Cursor, RecordError, put_leb128, put_short};
use model::{Address, AddressBytes, Imsi, Leg, RejectReason, Timestamp, Verdict};
use std::time::Duration;

/// How numbers and lengths are written.
pub trait Layout {
    /// Whether the IMSI of a resolved leg is written.
    const WITH_IMSI: bool;

    /// Writes a number, which has at most `width` octets.
    fn put_number(out: &mut Vec<u8>, number: u64, width: usize);

    /// Reads a number.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    fn number(cursor: &mut Cursor<'_>, width: usize) -> Result<u64, RecordError>;

    /// Writes octets with their length.
    fn put_octets(out: &mut Vec<u8>, octets: &[u8]);

    /// Reads octets with their length.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    fn octets<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RecordError>;

    /// Writes 1 TON, 1 NPI, the value with its length.
    fn put_address(out: &mut Vec<u8>, address: &Address) {
        out.extend_from_slice(&[address.ton, address.npi]);
        Self::put_octets(out, &address.value);
    }

    /// Reads an address.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    fn address(cursor: &mut Cursor<'_>) -> Result<Address, RecordError> {
        let (ton, npi) = (cursor.u8()?, cursor.u8()?);
        Ok(Address { ton, npi, value: AddressBytes::from_slice(Self::octets(cursor)?) })
    }
}

/// Numbers in their full width, little-endian; lengths of one octet.
#[derive(Debug, Clone, Copy)]
pub struct FixedLayout;

impl Layout for FixedLayout {
    const WITH_IMSI: bool = true;

    fn put_number(out: &mut Vec<u8>, number: u64, width: usize) {
        let octets = number.to_le_bytes();
        out.extend_from_slice(octets.get(..width).unwrap_or(&octets));
    }

    fn number(cursor: &mut Cursor<'_>, width: usize) -> Result<u64, RecordError> {
        let mut octets = [0; 8];
        for (octet, read) in octets.iter_mut().zip(cursor.take(width)?) {
            *octet = *read;
        }
        Ok(u64::from_le_bytes(octets))
    }

    fn put_octets(out: &mut Vec<u8>, octets: &[u8]) {
        put_short(out, octets);
    }

    fn octets<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RecordError> {
        cursor.short()
    }
}

/// Numbers and lengths as LEB128.
#[derive(Debug, Clone, Copy)]
pub struct CompactLayout;

impl Layout for CompactLayout {
    const WITH_IMSI: bool = false;

    fn put_number(out: &mut Vec<u8>, number: u64, _width: usize) {
        put_leb128(out, number);
    }

    fn number(cursor: &mut Cursor<'_>, _width: usize) -> Result<u64, RecordError> {
        cursor.leb128()
    }

    fn put_octets(out: &mut Vec<u8>, octets: &[u8]) {
        put_leb128(out, octets.len() as u64);
        out.extend_from_slice(octets);
    }

    fn octets<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RecordError> {
        let length =
            usize::try_from(cursor.leb128()?).map_err(|_| cursor.damaged("a length is impossible"))?;
        cursor.take(length)
    }
}

/// Writes a verdict.
pub fn put_verdict<L: Layout, P>(
    out: &mut Vec<u8>,
    verdict: &Verdict<P>,
    put_peer: impl Fn(&mut Vec<u8>, &P),
) {
    match verdict {
        Verdict::Forward(legs) => {
            let legs = legs.get(..255).unwrap_or(legs);
            out.push(0);
            L::put_number(out, legs.len() as u64, 1);
            for leg in legs {
                put_peer(out, &leg.peer);
                put_leg::<L, P>(out, leg);
            }
        }
        Verdict::Hold(until) => {
            out.push(1);
            out.extend_from_slice(&until.0.to_le_bytes());
        }
        Verdict::Reject(reason) => out.extend_from_slice(&[2, *reason as u8]),
    }
}

fn put_leg<L: Layout, P>(out: &mut Vec<u8>, leg: &Leg<P>) {
    let imsi = leg.imsi.as_ref().filter(|_| L::WITH_IMSI);
    out.push(leg.rank);
    L::put_number(out, u64::from(leg.weight), 2);
    L::put_number(out, u64::from(leg.cost), 4);
    out.push(
        u8::from(leg.longest_wait.is_some())
            | u8::from(leg.source.is_some()) << 1
            | u8::from(leg.destination.is_some()) << 2
            | u8::from(leg.resolve) << 3
            | u8::from(imsi.is_some()) << 4,
    );
    if let Some(wait) = leg.longest_wait {
        L::put_number(out, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), 8);
    }
    for address in [&leg.source, &leg.destination].into_iter().flatten() {
        L::put_address(out, address);
    }
    if let Some(imsi) = imsi {
        L::put_octets(out, &imsi.0);
    }
}

/// Reads a verdict.
///
/// # Errors
/// The octets are no verdict.
pub fn verdict<L: Layout, P>(
    cursor: &mut Cursor<'_>,
    mut peer: impl FnMut(&mut Cursor<'_>) -> Result<P, RecordError>,
) -> Result<Verdict<P>, RecordError> {
    Ok(match cursor.u8()? {
        0 => {
            let count = L::number(cursor, 1)?;
            let mut legs = Vec::with_capacity(count.min(16) as usize);
            for _ in 0..count {
                let peer = peer(cursor)?;
                legs.push(leg::<L, P>(cursor, peer)?);
            }
            Verdict::Forward(legs)
        }
        1 => Verdict::Hold(Timestamp(cursor.u64()?)),
        2 => {
            let reason = cursor.u8()?;
            Verdict::Reject(RejectReason::from_octet(reason).ok_or_else(|| cursor.damaged("unknown reason"))?)
        }
        _ => return Err(cursor.damaged("unknown verdict")),
    })
}

fn leg<L: Layout, P>(cursor: &mut Cursor<'_>, peer: P) -> Result<Leg<P>, RecordError> {
    let rank = cursor.u8()?;
    let (weight, cost) = (L::number(cursor, 2)?, L::number(cursor, 4)?);
    let weight = u16::try_from(weight).map_err(|_| cursor.damaged("weight too large"))?;
    let cost = u32::try_from(cost).map_err(|_| cursor.damaged("cost too large"))?;
    let flags = cursor.u8()?;
    let flagged = |bit: u8| flags & 1 << bit != 0;
    Ok(Leg {
        peer,
        rank,
        weight,
        cost,
        longest_wait: if flagged(0) { Some(Duration::from_millis(L::number(cursor, 8)?)) } else { None },
        source: if flagged(1) { Some(L::address(cursor)?) } else { None },
        destination: if flagged(2) { Some(L::address(cursor)?) } else { None },
        resolve: flagged(3),
        imsi: if L::WITH_IMSI && flagged(4) {
            Some(Imsi(AddressBytes::from_slice(L::octets(cursor)?)))
        } else {
            None
        },
    })
}
