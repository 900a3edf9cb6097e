//! The encoding of queue actions. All numbers are little-endian and every record begins with its
//! format version.

use crate::format::begin;
use crate::{FORMAT, RecordError, put_short, put_text};
use model::{
    AddressBytes, MessageId, PeerId, QueueAction, QueueActionId, QueueActionKind, QueueActionScope,
    QueueActionState, Timestamp,
};
use std::time::Duration;

/// On disk, table `orders` (from format 5 on), key: the id of the queue action, value:
/// * 1: format; 1: kind (1 suspend, 2 drain, 3 reroute, 4 cancel, 5 purge)
/// * 1: state (1 standing, 2 undo window, 3 under way, 4 done, 5 undone)
/// * 1: flags: bit 0 peer, 1 account, 2 prefix, 3 older than, 4 to, 5 undo until
/// * 8: at (ms since the epoch); 8: messages with smaller ids may be cancelled; 8: messages affected
/// * the flagged fields: 4 peer; 4 account; prefix: 1 length, octets; 8 older than (s); 4 to; 8 undo until
/// * admin, reason: each 2 length, UTF-8
pub fn encode_queue_action(out: &mut Vec<u8>, action: &QueueAction) {
    let scope = &action.scope;
    let flags = u8::from(scope.peer.is_some())
        | u8::from(scope.account.is_some()) << 1
        | u8::from(scope.prefix.is_some()) << 2
        | u8::from(scope.older_than.is_some()) << 3
        | u8::from(action.to.is_some()) << 4
        | u8::from(action.undo_until.is_some()) << 5;
    out.extend_from_slice(&[FORMAT, action.kind as u8, action.state as u8, flags]);
    for number in [action.at.0, action.before_id.0, action.affected] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for peer in [scope.peer, scope.account].into_iter().flatten() {
        out.extend_from_slice(&peer.0.to_le_bytes());
    }
    if let Some(prefix) = &scope.prefix {
        put_short(out, prefix);
    }
    if let Some(age) = scope.older_than {
        out.extend_from_slice(&age.as_secs().to_le_bytes());
    }
    if let Some(to) = action.to {
        out.extend_from_slice(&to.0.to_le_bytes());
    }
    if let Some(until) = action.undo_until {
        out.extend_from_slice(&until.0.to_le_bytes());
    }
    put_text(out, &action.by);
    put_text(out, &action.reason);
}

/// Decodes the output of [`encode_queue_action`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_queue_action(id: QueueActionId, octets: &[u8]) -> Result<QueueAction, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let kind = cursor.u8()?;
    let kind = QueueActionKind::from_octet(kind).ok_or_else(|| cursor.damaged("unknown kind of order"))?;
    let state = cursor.u8()?;
    let state =
        QueueActionState::from_octet(state).ok_or_else(|| cursor.damaged("unknown state of an order"))?;
    let flags = cursor.u8()?;
    let flagged = |bit: u8| flags & (1 << bit) != 0;
    let (at, before_id, affected) = (Timestamp(cursor.u64()?), MessageId(cursor.u64()?), cursor.u64()?);
    let scope = QueueActionScope {
        peer: if flagged(0) { Some(PeerId(cursor.u32()?)) } else { None },
        account: if flagged(1) { Some(PeerId(cursor.u32()?)) } else { None },
        prefix: if flagged(2) { Some(AddressBytes::from_slice(cursor.short()?)) } else { None },
        older_than: if flagged(3) { Some(Duration::from_secs(cursor.u64()?)) } else { None },
    };
    Ok(QueueAction {
        id,
        kind,
        scope,
        to: if flagged(4) { Some(PeerId(cursor.u32()?)) } else { None },
        undo_until: if flagged(5) { Some(Timestamp(cursor.u64()?)) } else { None },
        by: cursor.text()?.into(),
        reason: cursor.text()?.into(),
        at,
        before_id,
        state,
        affected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_truncated_ones_are_refused() {
        for bits in 0..64_u32 {
            let given = |bit: u32| bits & (1 << bit) != 0;
            let action = QueueAction {
                id: QueueActionId(bits + 1),
                kind: QueueActionKind::ALL[bits as usize % 5],
                scope: QueueActionScope {
                    peer: given(0).then_some(PeerId(7)),
                    account: given(1).then_some(PeerId(8)),
                    prefix: given(2).then(|| AddressBytes::from_slice(b"4179")),
                    older_than: given(3).then_some(Duration::from_secs(u64::MAX)),
                },
                to: given(4).then_some(PeerId(9)),
                by: "ada".into(),
                reason: "Wartung bei ihnen".into(),
                at: Timestamp(1_795_000_000_000),
                before_id: MessageId(12),
                undo_until: given(5).then_some(Timestamp(u64::MAX)),
                state: QueueActionState::ALL[bits as usize % 5],
                affected: u64::from(bits),
            };
            let mut octets = Vec::new();
            encode_queue_action(&mut octets, &action);
            assert_eq!(decode_queue_action(action.id, &octets), Ok(action));
            for cut in 0..octets.len() {
                assert!(decode_queue_action(QueueActionId(1), &octets[..cut]).is_err(), "cut at {cut}");
            }
            octets[0] = FORMAT + 1;
            assert!(decode_queue_action(QueueActionId(1), &octets).is_err());
        }
    }
}
