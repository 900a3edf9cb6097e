//! Verdicts and legs, in the layout of the store or of the archive.
//!
//! Verdict: 1 kind: 0 forward (count, legs), 1 hold (8 until), 2 reject (1 reason), 3 quarantine, 4 drop (1 the state in the
//! submitter's DLR). Leg: peer, 1 rank, weight, cost, 1 flags (bit 0 longest wait, 1 source, 2 destination, 3 to be
//! resolved, 4 IMSI), then the flagged fields: ms, address, address, IMSI.

use crate::pace::{put_pace, read_pace};
use crate::{Cursor, RecordError, put_leb128, put_long, put_short, put_text};
use model::{
    Address, AddressBytes, DroppedAs, Imsi, Leg, MessageChanges, RejectReason, ScreenVerdict, Timestamp,
    Verdict,
};
use std::time::Duration;

/// The encoding of numbers and lengths.
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

    /// Writes octets of any length, with their length.
    fn put_long(out: &mut Vec<u8>, octets: &[u8]) {
        Self::put_octets(out, octets);
    }

    /// Reads octets of any length.
    ///
    /// # Errors
    /// The octets end before, or are invalid.
    fn long<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RecordError> {
        Self::octets(cursor)
    }

    /// Writes a text with its length.
    fn put_text(out: &mut Vec<u8>, text: &str) {
        Self::put_octets(out, text.as_bytes());
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The octets end before, or are no UTF-8.
    fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, RecordError> {
        std::str::from_utf8(Self::octets(cursor)?).map_err(|_| cursor.damaged("text is not UTF-8"))
    }

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

/// Numbers in their full width, little-endian; lengths in one octet, for texts in two and for long octets in four.
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

    fn put_long(out: &mut Vec<u8>, octets: &[u8]) {
        put_long(out, octets);
    }

    fn long<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RecordError> {
        cursor.long()
    }

    fn put_text(out: &mut Vec<u8>, text: &str) {
        put_text(out, text);
    }

    fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, RecordError> {
        cursor.text()
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
        Verdict::Quarantine => out.push(3),
        Verdict::Drop(shown) => out.extend_from_slice(&[4, *shown as u8]),
        Verdict::AwaitLookup => out.push(5),
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
        2 => Verdict::Reject(reject_reason(cursor)?),
        3 => Verdict::Quarantine,
        4 => Verdict::Drop(dropped_as(cursor)?),
        5 => Verdict::AwaitLookup,
        _ => return Err(cursor.damaged("unknown verdict")),
    })
}

fn reject_reason(cursor: &mut Cursor<'_>) -> Result<RejectReason, RecordError> {
    RejectReason::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown reason"))
}

fn dropped_as(cursor: &mut Cursor<'_>) -> Result<DroppedAs, RecordError> {
    DroppedAs::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown state of a dropped message"))
}

/// Writes the verdict of the screens: 0 pass, 2 reject (1 reason), 3 quarantine, 4 drop (1 the state in the submitter's
/// DLR).
pub fn put_screen_verdict(out: &mut Vec<u8>, verdict: ScreenVerdict) {
    match verdict {
        ScreenVerdict::Pass => out.push(0),
        ScreenVerdict::Reject(reason) => out.extend_from_slice(&[2, reason as u8]),
        ScreenVerdict::Quarantine => out.push(3),
        ScreenVerdict::Drop(shown) => out.extend_from_slice(&[4, shown as u8]),
    }
}

/// Reads the verdict of the screens.
///
/// # Errors
/// The octets are no such verdict.
pub fn screen_verdict(cursor: &mut Cursor<'_>) -> Result<ScreenVerdict, RecordError> {
    Ok(match cursor.u8()? {
        0 => ScreenVerdict::Pass,
        2 => ScreenVerdict::Reject(reject_reason(cursor)?),
        3 => ScreenVerdict::Quarantine,
        4 => ScreenVerdict::Drop(dropped_as(cursor)?),
        _ => return Err(cursor.damaged("unknown verdict of a screen")),
    })
}

/// Writes changes of a message: the number of TLVs, each 2 tag, 1 whether it is set, value if so; the number of attributes,
/// each name and value; then pace buckets and send windows, see the module `pace`.
pub fn put_changes<L: Layout>(out: &mut Vec<u8>, changes: &MessageChanges) {
    let count = put_count::<L>(out, changes.tlvs.len());
    for (tag, value) in changes.tlvs.iter().take(count) {
        out.extend_from_slice(&tag.to_le_bytes());
        out.push(u8::from(value.is_some()));
        if let Some(value) = value {
            L::put_long(out, value);
        }
    }
    let count = put_count::<L>(out, changes.attributes.len());
    for (name, value) in changes.attributes.iter().take(count) {
        L::put_text(out, name);
        L::put_text(out, value);
    }
    put_pace::<L>(out, changes);
}

/// Writes the number of entries of a list; returns the number of entries that fit.
pub(crate) fn put_count<L: Layout>(out: &mut Vec<u8>, entries: usize) -> usize {
    let count = u16::try_from(entries).unwrap_or(u16::MAX);
    L::put_number(out, u64::from(count), 2);
    usize::from(count)
}

/// Reads changes of a message.
///
/// # Errors
/// The octets are no changes.
pub fn changes<L: Layout>(cursor: &mut Cursor<'_>) -> Result<MessageChanges, RecordError> {
    let mut changes = MessageChanges::default();
    for _ in 0..L::number(cursor, 2)? {
        let (tag, is_set) = (cursor.u16()?, cursor.u8()?);
        let value = if is_set == 0 { None } else { Some(L::long(cursor)?.into()) };
        changes.tlvs.push((tag, value));
    }
    for _ in 0..L::number(cursor, 2)? {
        changes.attributes.push((L::text(cursor)?.into(), L::text(cursor)?.into()));
    }
    read_pace::<L>(cursor, &mut changes)?;
    Ok(changes)
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
