//! The octets of what is written down beside messages: submission keys and parked receipts. As in `record`, all numbers
//! are little-endian and every record begins with its format version.

use crate::RecordError;
use crate::cursor::{Cursor, put_short};
use crate::record::{FORMAT, is_known};
use engine::{KeyRecord, ParkedRecord};
use model::{
    AddressBytes, MessageId, PeerId, PeerMessageId, Receipt, ReceiptState, Refusal, RejectReason,
    SubmissionKey, Timestamp,
};

/// On disk, table `keys`, value: 1 format, 4 origin, 8 digest, 8 at, key: 1 length, octets; 2 count, then per message
/// 1 kind (0: accepted, 8 id; otherwise a refusal's octet, and for 3 its reason's).
pub fn encode_key(out: &mut Vec<u8>, record: &KeyRecord) {
    out.push(FORMAT);
    out.extend_from_slice(&record.origin.0.to_le_bytes());
    out.extend_from_slice(&record.key.digest.to_le_bytes());
    out.extend_from_slice(&record.at.0.to_le_bytes());
    put_short(out, &record.key.octets);
    let results = record.results.get(..usize::from(u16::MAX)).unwrap_or(&record.results);
    out.extend_from_slice(&(results.len() as u16).to_le_bytes());
    for result in results {
        match result {
            Ok(id) => {
                out.push(0);
                out.extend_from_slice(&id.0.to_le_bytes());
            }
            Err(refusal) => {
                let (octet, reason) = refusal_octets(*refusal);
                out.push(octet);
                out.extend(reason);
            }
        }
    }
}

fn refusal_octets(refusal: Refusal) -> (u8, Option<u8>) {
    match refusal {
        Refusal::QueueFull => (1, None),
        Refusal::Throttled => (2, None),
        Refusal::Rejected(reason) => (3, Some(reason as u8)),
        Refusal::BadSchedule => (4, None),
        Refusal::Expired => (5, None),
        Refusal::UnknownMessage => (6, None),
        Refusal::WrongState => (7, None),
        Refusal::Internal => (8, None),
        Refusal::ShuttingDown => (9, None),
        Refusal::KeyReused => (10, None),
        // Never an answer that is remembered.
        Refusal::KeysFull { .. } => (2, None),
    }
}

/// Reads what [`encode_key`] wrote.
///
/// # Errors
/// When the octets are no such record.
pub fn decode_key(serial: u64, octets: &[u8]) -> Result<KeyRecord, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let (origin, digest, at) = (PeerId(cursor.u32()?), cursor.u64()?, Timestamp(cursor.u64()?));
    let key = SubmissionKey { octets: cursor.short()?.into(), digest, required: true, lifetime: None };
    let count = cursor.u16()?;
    let mut results = Vec::with_capacity(usize::from(count.min(64)));
    for _ in 0..count {
        results.push(match cursor.u8()? {
            0 => Ok(MessageId(cursor.u64()?)),
            1 => Err(Refusal::QueueFull),
            2 => Err(Refusal::Throttled),
            3 => {
                let reason = cursor.u8()?;
                let reason =
                    RejectReason::from_octet(reason).ok_or_else(|| cursor.damaged("unknown reason"))?;
                Err(Refusal::Rejected(reason))
            }
            4 => Err(Refusal::BadSchedule),
            5 => Err(Refusal::Expired),
            6 => Err(Refusal::UnknownMessage),
            7 => Err(Refusal::WrongState),
            8 => Err(Refusal::Internal),
            9 => Err(Refusal::ShuttingDown),
            10 => Err(Refusal::KeyReused),
            _ => return Err(cursor.damaged("unknown refusal")),
        });
    }
    Ok(KeyRecord { serial, origin, key, at, results })
}

/// On disk, table `parked`, value: 1 format, 4 peer, 8 at, 1 state, 1 flags (bit 0 intermediate, 1 network error, 2 done
/// date), 2 error, 3 network error if flagged, 8 done if flagged, then id, from, to: each 1 length, octets.
pub fn encode_parked(out: &mut Vec<u8>, record: &ParkedRecord) {
    let receipt = &record.receipt;
    out.push(FORMAT);
    out.extend_from_slice(&record.peer.0.to_le_bytes());
    out.extend_from_slice(&record.at.0.to_le_bytes());
    let flags = u8::from(receipt.intermediate)
        | u8::from(receipt.network_error.is_some()) << 1
        | u8::from(receipt.done_at.is_some()) << 2;
    out.extend_from_slice(&[receipt.state as u8, flags]);
    out.extend_from_slice(&receipt.error.to_le_bytes());
    out.extend_from_slice(receipt.network_error.as_ref().map_or(&[][..], |code| code));
    if let Some(done) = receipt.done_at {
        out.extend_from_slice(&done.0.to_le_bytes());
    }
    put_short(out, &receipt.id.0);
    put_short(out, &receipt.from);
    put_short(out, &receipt.to);
}

/// Reads what [`encode_parked`] wrote.
///
/// # Errors
/// When the octets are no such record.
pub fn decode_parked(number: u64, octets: &[u8]) -> Result<ParkedRecord, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let (peer, at) = (PeerId(cursor.u32()?), Timestamp(cursor.u64()?));
    let state = cursor.u8()?;
    let state = ReceiptState::from_octet(state).ok_or_else(|| cursor.damaged("unknown receipt state"))?;
    let flags = cursor.u8()?;
    let error = cursor.u16()?;
    let network_error = if flags & 2 != 0 { Some([cursor.u8()?, cursor.u8()?, cursor.u8()?]) } else { None };
    let done_at = if flags & 4 != 0 { Some(Timestamp(cursor.u64()?)) } else { None };
    let id = PeerMessageId(AddressBytes::from_slice(cursor.short()?));
    let (from, to) = (AddressBytes::from_slice(cursor.short()?), AddressBytes::from_slice(cursor.short()?));
    let receipt =
        Receipt { id, state, intermediate: flags & 1 != 0, error, network_error, done_at, from, to };
    Ok(ParkedRecord { number, peer, at, receipt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_as_written() {
        let record = KeyRecord {
            serial: 7,
            origin: PeerId(3),
            key: SubmissionKey {
                octets: [1, 2, 3].as_slice().into(),
                digest: u64::MAX,
                required: true,
                lifetime: None,
            },
            at: Timestamp(9),
            results: vec![
                Ok(MessageId(5)),
                Err(Refusal::Rejected(RejectReason::OptedOut)),
                Err(Refusal::QueueFull),
            ],
        };
        let mut octets = Vec::new();
        encode_key(&mut octets, &record);
        assert_eq!(decode_key(7, &octets), Ok(record));
        for cut in 0..octets.len() {
            assert!(decode_key(7, &octets[..cut]).is_err());
        }
        let record = ParkedRecord {
            number: 8,
            peer: PeerId(2),
            at: Timestamp(4),
            receipt: Receipt {
                id: PeerMessageId::new(&[0, 255, 3]),
                state: ReceiptState::Undeliverable,
                intermediate: true,
                error: 29,
                network_error: Some([1, 2, 3]),
                done_at: Some(Timestamp(77)),
                from: AddressBytes::from_slice(b"13012345678"),
                to: AddressBytes::from_slice(b"10655"),
            },
        };
        let mut octets = Vec::new();
        encode_parked(&mut octets, &record);
        assert_eq!(decode_parked(8, &octets), Ok(record));
        for cut in 0..octets.len() {
            assert!(decode_parked(8, &octets[..cut]).is_err());
        }
    }
}
