//! The encoding of ledger accounts, balance operations and settlements. All numbers are little-endian
//! and every record begins with its format version.

use crate::format::begin;
use crate::{Cursor, FORMAT, RecordError, put_short, put_text};
use model::{Balance, LedgerChange, LedgerOperation, MessageId, OperationRecord, Settlement, Timestamp};

/// On disk, table `ledger`, key the account's name, value: 1 format, then as `put_balance`.
pub fn encode_balance(out: &mut Vec<u8>, balance: &Balance) {
    out.push(FORMAT);
    put_balance(out, balance);
}

/// 8 balance, 8 reserved, 8 captured, 8 funded, 8 credit; balance and funded are signed.
fn put_balance(out: &mut Vec<u8>, balance: &Balance) {
    out.extend_from_slice(&balance.balance.to_le_bytes());
    out.extend_from_slice(&balance.reserved.to_le_bytes());
    out.extend_from_slice(&balance.captured.to_le_bytes());
    out.extend_from_slice(&balance.funded.to_le_bytes());
    out.extend_from_slice(&balance.credit.to_le_bytes());
}

fn balance(cursor: &mut Cursor<'_>) -> Result<Balance, RecordError> {
    Ok(Balance {
        balance: cursor.i64()?,
        reserved: cursor.u64()?,
        captured: cursor.u64()?,
        funded: cursor.i64()?,
        credit: cursor.u64()?,
    })
}

fn name<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, RecordError> {
    let octets = cursor.short()?;
    std::str::from_utf8(octets).map_err(|_| cursor.damaged("text is not UTF-8"))
}

/// Decodes the output of [`encode_balance`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_balance(octets: &[u8]) -> Result<Balance, RecordError> {
    balance(&mut begin(octets)?.0)
}

/// On disk, table `ledger_operations`, key the serial number, value: 1 format, 8 at, key, account: each 1 length,
/// UTF-8; 1 kind (0 limit: 8 credit; 1 fund: 8 amount, signed), actor, reason: each 2 length, UTF-8; the account
/// afterwards as in `ledger`.
pub fn encode_operation(out: &mut Vec<u8>, record: &OperationRecord) {
    let operation = &record.operation;
    out.push(FORMAT);
    out.extend_from_slice(&record.at.0.to_le_bytes());
    put_short(out, operation.key.as_bytes());
    put_short(out, operation.account.as_bytes());
    match operation.change {
        LedgerChange::Limit { credit } => {
            out.push(0);
            out.extend_from_slice(&credit.to_le_bytes());
        }
        LedgerChange::Fund { amount } => {
            out.push(1);
            out.extend_from_slice(&amount.to_le_bytes());
        }
    }
    put_text(out, &operation.actor);
    put_text(out, &operation.reason);
    put_balance(out, &record.balance);
}

/// Decodes the output of [`encode_operation`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_operation(serial: u64, octets: &[u8]) -> Result<OperationRecord, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let at = Timestamp(cursor.u64()?);
    let (key, account) = (name(&mut cursor)?.into(), name(&mut cursor)?.into());
    let change = match cursor.u8()? {
        0 => LedgerChange::Limit { credit: cursor.u64()? },
        1 => LedgerChange::Fund { amount: cursor.i64()? },
        _ => return Err(cursor.damaged("unknown change")),
    };
    let (actor, reason) = (cursor.text()?.into(), cursor.text()?.into());
    let operation = LedgerOperation { key, account, change, actor, reason };
    Ok(OperationRecord { serial, operation, at, balance: balance(&mut cursor)? })
}

/// On disk, table `settlements`, key the serial number, value: 1 format, 8 message, 8 amount, 1 whether captured, 8 at,
/// account: 1 length, UTF-8.
pub fn encode_settlement(out: &mut Vec<u8>, settlement: &Settlement) {
    out.push(FORMAT);
    out.extend_from_slice(&settlement.message.0.to_le_bytes());
    out.extend_from_slice(&settlement.amount.to_le_bytes());
    out.push(u8::from(settlement.captured));
    out.extend_from_slice(&settlement.at.0.to_le_bytes());
    put_short(out, settlement.account.as_bytes());
}

/// Decodes the output of [`encode_settlement`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_settlement(serial: u64, octets: &[u8]) -> Result<Settlement, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let (message, amount) = (MessageId(cursor.u64()?), cursor.u64()?);
    let captured = cursor.u8()? != 0;
    let at = Timestamp(cursor.u64()?);
    Ok(Settlement { serial, message, account: name(&mut cursor)?.into(), amount, captured, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_BALANCE: Balance =
        Balance { balance: -5, reserved: 7, captured: u64::MAX, funded: i64::MIN, credit: 9 };

    /// Checks that a record round-trips, and that every truncation is refused.
    fn round_trip<T: PartialEq + std::fmt::Debug>(
        written: &T,
        encode: impl Fn(&mut Vec<u8>, &T),
        decode: impl Fn(&[u8]) -> Result<T, RecordError>,
    ) {
        let mut octets = Vec::new();
        encode(&mut octets, written);
        assert_eq!(decode(&octets).as_ref(), Ok(written));
        for cut in 0..octets.len() {
            assert!(decode(&octets[..cut]).is_err(), "cut at {cut}");
        }
        octets[0] = FORMAT + 1;
        assert!(decode(&octets).is_err());
    }

    #[test]
    fn records_round_trip() {
        round_trip(&SAMPLE_BALANCE, encode_balance, decode_balance);
        for change in [LedgerChange::Limit { credit: u64::MAX }, LedgerChange::Fund { amount: -3 }] {
            let operation = LedgerOperation {
                key: "invoice 7".into(),
                account: "acme".into(),
                change,
                actor: "admin".into(),
                reason: "Überweisung".into(),
            };
            let record = OperationRecord { serial: 3, operation, at: Timestamp(4), balance: SAMPLE_BALANCE };
            round_trip(&record, encode_operation, |octets| decode_operation(3, octets));
        }
        let settlement = Settlement {
            serial: 8,
            message: MessageId(9),
            account: "acme".into(),
            amount: 10,
            captured: true,
            at: Timestamp(11),
        };
        round_trip(&settlement, encode_settlement, |octets| decode_settlement(8, octets));
    }
}
