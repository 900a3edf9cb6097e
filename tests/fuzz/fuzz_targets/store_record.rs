//! Any octets as a record of the store, the first one says of which table: refused, or read; and what is read is written as
//! something that reads as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{MessageId, PoolId};
use std::fmt::Debug;
use store::RecordError;
use store::ledger::{decode_key, decode_parked, encode_key, encode_parked};
use store::money::{
    decode_balance, decode_operation, decode_settlement, encode_balance, encode_operation, encode_settlement,
};
use store::pools::{
    decode_journal, decode_number, decode_pool, encode_journal, encode_number, encode_pool,
};
use store::record::{
    Decoder, decode_final, decode_handed, decode_progress, encode_final, encode_handed, encode_message,
    encode_progress,
};

const ID: MessageId = MessageId(7);

fn again<T: PartialEq + Debug>(
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
    match table % 12 {
        0 => {
            // In `finished`, another record follows: where the first one ends counts.
            let whole = |octets: &[u8]| Decoder::new().message(ID, octets);
            let Ok((message, end)) = whole(octets) else { return };
            assert!(end <= octets.len());
            assert_eq!(whole(&octets[..end]), Ok((message.clone(), end)));
            let mut written = Vec::new();
            encode_message(&mut written, &message);
            let own = written.len();
            written.extend_from_slice(octets);
            assert_eq!(whole(&written), Ok((message, own)));
            // A disk that breaks off is seen wherever it does.
            let cut = octets.iter().fold(0, |sum, octet| (sum + usize::from(*octet)) % own);
            assert!(whole(&written[..cut]).is_err(), "cut at {cut} of {own}");
        }
        1 => again(octets, decode_progress, |out, progress| encode_progress(out, progress)),
        2 => again(octets, decode_final, |out, ended| encode_final(out, ended)),
        3 => again(octets, decode_handed, |out, handed| encode_handed(out, handed)),
        4 => again(octets, |octets| decode_key(7, octets), encode_key),
        5 => again(octets, |octets| decode_parked(7, octets), encode_parked),
        6 => again(octets, decode_balance, encode_balance),
        7 => again(octets, |octets| decode_operation(7, octets), encode_operation),
        8 => again(octets, |octets| decode_settlement(7, octets), encode_settlement),
        9 => again(octets, |octets| decode_pool(PoolId(7), octets), encode_pool),
        10 => again(octets, decode_number, encode_number),
        _ => again(octets, decode_journal, |out, (serial, entries)| encode_journal(out, *serial, entries)),
    }
});
