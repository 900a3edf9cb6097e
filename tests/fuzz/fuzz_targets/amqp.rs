//! Arbitrary octets from an AMQP server: refused, incomplete, or a frame that is not longer than the input.
#![no_main]

use events::decode_amqp_frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let mut rest = octets;
    while let Ok(Some((_, used))) = decode_amqp_frame(rest) {
        assert!((1..=rest.len()).contains(&used));
        rest = &rest[used..];
    }
});
