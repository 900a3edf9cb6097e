//! Orphan DLRs: the encoding of table `parked`. All numbers are little-endian and every record begins
//! with its format version.

use crate::format::begin;
use crate::{FORMAT, RecordError, put_short};
use model::{AddressBytes, Dlr, DlrState, OrphanDlrRecord, PeerId, PeerMessageId, Timestamp};

/// On disk, table `parked`, value: 1 format, 4 peer, 8 at, 1 state, 1 flags (bit 0 intermediate, 1 network error, 2
/// done date), 2 error, 3 network error if flagged, 8 done if flagged, then id, from, to: each 1 length, octets.
pub fn encode_orphan_dlr(out: &mut Vec<u8>, record: &OrphanDlrRecord) {
    let dlr = &record.dlr;
    out.push(FORMAT);
    out.extend_from_slice(&record.peer.0.to_le_bytes());
    out.extend_from_slice(&record.at.0.to_le_bytes());
    let flags = u8::from(dlr.intermediate)
        | u8::from(dlr.network_error.is_some()) << 1
        | u8::from(dlr.done_at.is_some()) << 2;
    out.extend_from_slice(&[dlr.state as u8, flags]);
    out.extend_from_slice(&dlr.error.to_le_bytes());
    out.extend_from_slice(dlr.network_error.as_ref().map_or(&[][..], |code| code));
    if let Some(done) = dlr.done_at {
        out.extend_from_slice(&done.0.to_le_bytes());
    }
    put_short(out, &dlr.id.0);
    put_short(out, &dlr.from);
    put_short(out, &dlr.to);
}

/// Decodes the output of [`encode_orphan_dlr`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_orphan_dlr(number: u64, octets: &[u8]) -> Result<OrphanDlrRecord, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let (peer, at) = (PeerId(cursor.u32()?), Timestamp(cursor.u64()?));
    let state = cursor.u8()?;
    let state = DlrState::from_octet(state).ok_or_else(|| cursor.damaged("unknown DLR state"))?;
    let flags = cursor.u8()?;
    let error = cursor.u16()?;
    let network_error = if flags & 2 != 0 { Some([cursor.u8()?, cursor.u8()?, cursor.u8()?]) } else { None };
    let done_at = if flags & 4 != 0 { Some(Timestamp(cursor.u64()?)) } else { None };
    let id = PeerMessageId(AddressBytes::from_slice(cursor.short()?));
    let (from, to) = (AddressBytes::from_slice(cursor.short()?), AddressBytes::from_slice(cursor.short()?));
    let dlr = Dlr { id, state, intermediate: flags & 1 != 0, error, network_error, done_at, from, to };
    Ok(OrphanDlrRecord { number, peer, at, dlr })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let record = OrphanDlrRecord {
            number: 8,
            peer: PeerId(2),
            at: Timestamp(4),
            dlr: Dlr {
                id: PeerMessageId::new(&[0, 255, 3]),
                state: DlrState::Undeliverable,
                intermediate: true,
                error: 29,
                network_error: Some([1, 2, 3]),
                done_at: Some(Timestamp(77)),
                from: AddressBytes::from_slice(b"13012345678"),
                to: AddressBytes::from_slice(b"10655"),
            },
        };
        let mut octets = Vec::new();
        encode_orphan_dlr(&mut octets, &record);
        assert_eq!(decode_orphan_dlr(8, &octets), Ok(record));
        for cut in 0..octets.len() {
            assert!(decode_orphan_dlr(8, &octets[..cut]).is_err());
        }
    }
}
