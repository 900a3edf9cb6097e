//! Arbitrary octets from a NATS server: refused, incomplete, or a message that is not longer than the input.
#![no_main]

use events::decode_nats_message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let mut rest = octets;
    while let Ok(Some((_, used))) = decode_nats_message(rest) {
        assert!((1..=rest.len()).contains(&used));
        rest = &rest[used..];
    }
});
