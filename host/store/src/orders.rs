//! The octets of admins' orders about waiting messages. As in `record`, all numbers are little-endian and every record
//! begins with its format version.

use crate::RecordError;
use crate::cursor::{Cursor, put_short, put_text};
use crate::record::{FORMAT, is_known};
use model::{AddressBytes, MessageId, Order, OrderId, OrderKind, OrderState, PeerId, Scope, Timestamp};
use std::time::Duration;

/// On disk, table `orders` (from format 5 on), key the order's number, value:
/// * 1: format; 1: kind (1 suspend, 2 drain, 3 rebind, 4 cancel, 5 purge)
/// * 1: state (1 standing, 2 undo window, 3 under way, 4 done, 5 undone)
/// * 1: flags: bit 0 peer, 1 account, 2 prefix, 3 older than, 4 to, 5 undo until
/// * 8: at (ms since the epoch); 8: all messages it may end have smaller ids; 8: messages touched
/// * what is flagged: 4 peer; 4 account; prefix: 1 length, octets; 8 older than (s); 4 to; 8 undo until
/// * who, why: each 2 length, UTF-8
pub fn encode_order(out: &mut Vec<u8>, order: &Order) {
    let scope = &order.scope;
    let flags = u8::from(scope.peer.is_some())
        | u8::from(scope.account.is_some()) << 1
        | u8::from(scope.prefix.is_some()) << 2
        | u8::from(scope.older_than.is_some()) << 3
        | u8::from(order.to.is_some()) << 4
        | u8::from(order.undo_until.is_some()) << 5;
    out.extend_from_slice(&[FORMAT, order.kind as u8, order.state as u8, flags]);
    for number in [order.at.0, order.upto.0, order.touched] {
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
    if let Some(to) = order.to {
        out.extend_from_slice(&to.0.to_le_bytes());
    }
    if let Some(until) = order.undo_until {
        out.extend_from_slice(&until.0.to_le_bytes());
    }
    put_text(out, &order.by);
    put_text(out, &order.why);
}

/// Reads what [`encode_order`] wrote.
///
/// # Errors
/// When the octets are no such record.
pub fn decode_order(id: u32, octets: &[u8]) -> Result<Order, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let kind = cursor.u8()?;
    let kind = OrderKind::from_octet(kind).ok_or_else(|| cursor.damaged("unknown kind of order"))?;
    let state = cursor.u8()?;
    let state = OrderState::from_octet(state).ok_or_else(|| cursor.damaged("unknown state of an order"))?;
    let flags = cursor.u8()?;
    let flagged = |bit: u8| flags & (1 << bit) != 0;
    let (at, upto, touched) = (Timestamp(cursor.u64()?), MessageId(cursor.u64()?), cursor.u64()?);
    let scope = Scope {
        peer: if flagged(0) { Some(PeerId(cursor.u32()?)) } else { None },
        account: if flagged(1) { Some(PeerId(cursor.u32()?)) } else { None },
        prefix: if flagged(2) { Some(AddressBytes::from_slice(cursor.short()?)) } else { None },
        older_than: if flagged(3) { Some(Duration::from_secs(cursor.u64()?)) } else { None },
    };
    Ok(Order {
        id: OrderId(id),
        kind,
        scope,
        to: if flagged(4) { Some(PeerId(cursor.u32()?)) } else { None },
        undo_until: if flagged(5) { Some(Timestamp(cursor.u64()?)) } else { None },
        by: cursor.text()?.into(),
        why: cursor.text()?.into(),
        at,
        upto,
        state,
        touched,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_reads_as_written_and_is_refused_wherever_it_is_cut_off() {
        for bits in 0..64_u32 {
            let given = |bit: u32| bits & (1 << bit) != 0;
            let order = Order {
                id: OrderId(bits + 1),
                kind: OrderKind::ALL[bits as usize % 5],
                scope: Scope {
                    peer: given(0).then_some(PeerId(7)),
                    account: given(1).then_some(PeerId(8)),
                    prefix: given(2).then(|| AddressBytes::from_slice(b"4179")),
                    older_than: given(3).then_some(Duration::from_secs(u64::MAX)),
                },
                to: given(4).then_some(PeerId(9)),
                by: "ada".into(),
                why: "Wartung bei ihnen".into(),
                at: Timestamp(1_795_000_000_000),
                upto: MessageId(12),
                undo_until: given(5).then_some(Timestamp(u64::MAX)),
                state: OrderState::ALL[bits as usize % 5],
                touched: u64::from(bits),
            };
            let mut octets = Vec::new();
            encode_order(&mut octets, &order);
            assert_eq!(decode_order(order.id.0, &octets), Ok(order));
            for cut in 0..octets.len() {
                assert!(decode_order(1, &octets[..cut]).is_err(), "cut at {cut}");
            }
            octets[0] = FORMAT + 1;
            assert!(decode_order(1, &octets).is_err());
        }
    }
}
