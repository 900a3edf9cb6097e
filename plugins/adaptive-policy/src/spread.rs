/// A number from 0 to 9,999 that spreads messages evenly: a hash of the parts of a message.
#[must_use]
pub fn spread(parts: &[&[u8]]) -> u32 {
    // FNV-1a, with a NUL after each part.
    let octets = parts.iter().flat_map(|part| part.iter().copied().chain([0]));
    let hash = octets.fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The low bits of FNV depend on the low bits of its input only: mix them (the finaliser of MurmurHash3).
    let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    u32::try_from((mixed ^ mixed >> 33) % 10_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_even_and_repeatable() {
        let mut buckets = [0_u32; 50];
        for number in 0..50_000_u32 {
            let destination = format!("4915{number:08}");
            let hit = spread(&[b"shop", destination.as_bytes()]);
            assert_eq!(hit, spread(&[b"shop", destination.as_bytes()]));
            buckets[hit as usize / 200] += 1;
        }
        assert!(buckets.iter().all(|count| (800..1_200).contains(count)), "{buckets:?}");
        assert_ne!(spread(&[b"ab", b"c"]), spread(&[b"a", b"bc"]));
    }
}
