//! Idempotency keys: the encoding of table `keys`. All numbers are little-endian and every record
//! begins with its format version.

use crate::format::begin;
use crate::{FORMAT, RecordError, put_short};
use model::{IdempotencyKey, IdempotencyKeyRecord, MessageId, PeerId, Refusal, RejectReason, Timestamp};

/// On disk, table `keys`, value: 1 format, 4 origin, 8 digest, 8 at, key: 1 length, octets; 2 count, then per message
/// 1 kind (0: accepted, 8 id; otherwise a refusal's octet, and for 3 its reason's).
pub fn encode_idempotency_key(out: &mut Vec<u8>, record: &IdempotencyKeyRecord) {
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
        Refusal::QuotaExceeded => (11, None),
        // This answer is never stored.
        Refusal::KeysFull { .. } => (2, None),
    }
}

/// Decodes the output of [`encode_idempotency_key`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_idempotency_key(serial: u64, octets: &[u8]) -> Result<IdempotencyKeyRecord, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let (origin, digest, at) = (PeerId(cursor.u32()?), cursor.u64()?, Timestamp(cursor.u64()?));
    let key = IdempotencyKey { octets: cursor.short()?.into(), digest, required: true, lifetime: None };
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
            11 => Err(Refusal::QuotaExceeded),
            _ => return Err(cursor.damaged("unknown refusal")),
        });
    }
    Ok(IdempotencyKeyRecord { serial, origin, key, at, results })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let record = IdempotencyKeyRecord {
            serial: 7,
            origin: PeerId(3),
            key: IdempotencyKey {
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
        encode_idempotency_key(&mut octets, &record);
        assert_eq!(decode_idempotency_key(7, &octets), Ok(record));
        for cut in 0..octets.len() {
            assert!(decode_idempotency_key(7, &octets[..cut]).is_err());
        }
    }
}
