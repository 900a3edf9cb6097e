//! Septets packed into octets, the first in the lowest bits (3GPP TS 23.038 §6.1.2.1).

/// Octets needed for this many septets.
#[must_use]
pub fn octets_for(septets: usize) -> usize {
    (septets * 7).div_ceil(8)
}

/// Septets that a header of this many octets occupies, including fill bits (3GPP TS 23.040 §9.2.3.24).
#[must_use]
pub fn septets_for(octets: usize) -> usize {
    (octets * 8).div_ceil(7)
}

/// Appends septets, given one per octet, from bit `start` of `out`; the bits before `start` must exist. The high bit of
/// each octet is ignored; bits after the last septet are zero.
pub(crate) fn pack_at(out: &mut Vec<u8>, start: usize, septets: impl IntoIterator<Item = u8>) {
    let mut at = start;
    for septet in septets {
        let shifted = u16::from(septet & 0x7F) << (at % 8);
        let [low, high] = shifted.to_le_bytes();
        let place = at / 8;
        if out.len() <= place {
            out.resize(place + 1, 0);
        }
        if let Some(octet) = out.get_mut(place) {
            *octet |= low;
        }
        at += 7;
        if at.div_ceil(8) > place + 1 {
            out.push(high);
        }
    }
}

/// Packs septets, given one per octet.
#[must_use]
pub fn pack(septets: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets_for(septets.len()));
    pack_at(&mut out, 0, septets.iter().copied());
    out
}

/// Unpacks `count` septets from bit `start`, one per octet; fewer if the octets end earlier.
#[must_use]
pub fn unpack(octets: &[u8], start: usize, count: usize) -> Vec<u8> {
    let room = (octets.len() * 8).saturating_sub(start) / 7;
    let septet = |number: usize| {
        let at = start + number * 7;
        let octet = |place: usize| u16::from(octets.get(place).copied().unwrap_or(0));
        let both = octet(at / 8) | octet(at / 8 + 1) << 8;
        (both >> (at % 8)) as u8 & 0x7F
    };
    (0..count.min(room)).map(septet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellohello_test_vector() {
        assert_eq!(pack(b"hellohello"), [0xE8, 0x32, 0x9B, 0xFD, 0x46, 0x97, 0xD9, 0xEC, 0x37]);
        assert_eq!(unpack(&[0xE8, 0x32, 0x9B, 0xFD, 0x46, 0x97, 0xD9, 0xEC, 0x37], 0, 10), b"hellohello");
    }

    #[test]
    fn seven_and_eight_septets_take_seven_octets() {
        assert_eq!((octets_for(7), octets_for(8), octets_for(160), octets_for(153)), (7, 7, 140, 134));
        assert_eq!((septets_for(6), septets_for(7), septets_for(0)), (7, 8, 0));
        assert_eq!(pack(b"1234567\0"), pack(b"1234567"));
        assert_eq!(unpack(&pack(b"1234567"), 0, 7), b"1234567");
        assert_eq!(unpack(&pack(b"1234567"), 0, 8), b"1234567\0");
    }

    #[test]
    fn packing_at_any_bit_offset_round_trips() {
        for start in 0..16 {
            for count in 0..40_u8 {
                let septets: Vec<u8> = (0..count).map(|each| each.wrapping_mul(37) & 0x7F).collect();
                let mut out = vec![0xFF; start / 8];
                if start % 8 > 0 {
                    out.push(0);
                }
                pack_at(&mut out, start, septets.iter().copied());
                assert_eq!(out.len(), (start + usize::from(count) * 7).div_ceil(8));
                assert_eq!(unpack(&out, start, septets.len()), septets);
            }
        }
    }

    #[test]
    fn unpacking_stops_at_the_end() {
        assert_eq!(unpack(&[0xFF], 0, usize::MAX), [0x7F]);
        assert!(unpack(&[], 9, 5).is_empty());
    }
}
