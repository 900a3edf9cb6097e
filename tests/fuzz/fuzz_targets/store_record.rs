//! Arbitrary octets as a record of the store; the first octet selects the table. The record is refused or decoded; a
//! decoded one survives an encoding round trip.
#![no_main]

use codec::{
    RecordDecoder, RecordError, decode_balance, decode_final, decode_idempotency_key, decode_journal,
    decode_number, decode_operation, decode_orphan_dlr, decode_pool, decode_progress, decode_receipt_call,
    decode_settlement, decode_submit_attempts, decode_submit_call, encode_balance, encode_final,
    encode_idempotency_key, encode_journal, encode_message, encode_number, encode_operation,
    encode_orphan_dlr, encode_pool, encode_progress, encode_receipt_call, encode_settlement,
    encode_submit_attempts, encode_submit_call,
};
use libfuzzer_sys::fuzz_target;
use model::{MessageId, PoolId};
use std::fmt::Debug;

const ID: MessageId = MessageId(7);

fn check_round_trip<T: PartialEq + Debug>(
    octets: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, RecordError>,
    encode: impl Fn(&mut Vec<u8>, &T),
) {
    match decode(octets) {
        Err(error) => assert!(error.offset <= octets.len() && !error.what.is_empty(), "{error}"),
        Ok(read) => {
            let mut written = Vec::new();
            encode(&mut written, &read);
            assert_eq!(decode(&written), Ok(read));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&table, octets)) = input.split_first() else { return };
    match table % 14 {
        0 => {
            // In `finished`, another record follows: the end of the first one matters.
            let whole = |octets: &[u8]| RecordDecoder::new().message(ID, octets);
            let Ok((message, end)) = whole(octets) else { return };
            assert!(end <= octets.len());
            assert_eq!(whole(&octets[..end]), Ok((message.clone(), end)));
            let mut written = Vec::new();
            encode_message(&mut written, &message);
            let own = written.len();
            written.extend_from_slice(octets);
            assert_eq!(whole(&written), Ok((message, own)));
            // A truncated record is detected at any length.
            let cut = octets.iter().fold(0, |sum, octet| (sum + usize::from(*octet)) % own);
            assert!(whole(&written[..cut]).is_err(), "cut at {cut} of {own}");
        }
        1 => check_round_trip(octets, decode_progress, |out, progress| encode_progress(out, progress)),
        2 => check_round_trip(octets, decode_final, |out, ended| encode_final(out, ended)),
        3 => check_round_trip(octets, decode_submit_attempts, |out, attempts| {
            encode_submit_attempts(out, attempts)
        }),
        4 => check_round_trip(octets, |octets| decode_idempotency_key(7, octets), encode_idempotency_key),
        5 => check_round_trip(octets, |octets| decode_orphan_dlr(7, octets), encode_orphan_dlr),
        6 => check_round_trip(octets, decode_balance, encode_balance),
        7 => check_round_trip(octets, |octets| decode_operation(7, octets), encode_operation),
        8 => check_round_trip(octets, |octets| decode_settlement(7, octets), encode_settlement),
        9 => check_round_trip(octets, |octets| decode_pool(PoolId(7), octets), encode_pool),
        10 => check_round_trip(octets, decode_number, encode_number),
        11 => check_round_trip(octets, decode_journal, |out, (serial, entries)| {
            encode_journal(out, *serial, entries)
        }),
        12 => check_round_trip(octets, decode_receipt_call, |out, call| {
            out.extend_from_slice(&encode_receipt_call(call));
        }),
        _ => check_round_trip(octets, decode_submit_call, |out, call| {
            out.extend_from_slice(&encode_submit_call(call));
        }),
    }
});
