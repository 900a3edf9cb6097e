//! Arbitrary octets as a batch: either refused with an offset within them, or decoded; a decoded batch survives an
//! encoding round trip. The records of messages that are found without decoding are within the octets.
#![no_main]

use codec::{decode_batch, encode_batch, message_records};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    match message_records(octets) {
        Err(error) => assert!(error.offset <= octets.len() && !error.what.is_empty(), "{error}"),
        Ok(found) => assert!(found.iter().all(|found| octets.get(found.octets.clone()).is_some())),
    }
    match decode_batch(octets) {
        Err(error) => assert!(error.offset <= octets.len() && !error.what.is_empty(), "{error}"),
        Ok(read) => {
            let mut written = Vec::new();
            encode_batch(&mut written, &read);
            assert_eq!(decode_batch(&written), Ok(read));
        }
    }
});
