//! TLVs of SMPP 3.4 §5.3.2, as stored with a message: two octets tag, two octets length, value.

/// The TLVs in these octets, in order, up to the first truncated one.
pub fn tlvs(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (tag, after) = rest.split_first_chunk::<2>()?;
        let (length, after) = after.split_first_chunk::<2>()?;
        let (value, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some((u16::from_be_bytes(*tag), value))
    })
}

/// The tag that is written as four hexadecimal digits.
#[must_use]
pub fn parse_tlv_tag(digits: &str) -> Option<u16> {
    // Rust's parser accepts a plus sign.
    let is_tag = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_tag { u16::from_str_radix(digits, 16).ok() } else { None }
}

/// Appends a TLV. Octets beyond the longest value, 65,535, are left out.
pub fn put_tlv(out: &mut Vec<u8>, tag: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    out.extend_from_slice(&tag.to_be_bytes());
    out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_four_hexadecimal_digits() {
        assert_eq!((parse_tlv_tag("1401"), parse_tlv_tag("020e")), (Some(0x1401), Some(0x020e)));
        assert!(["", "14", "014010", "wxyz", "+140"].iter().all(|text| parse_tlv_tag(text).is_none()));
    }

    #[test]
    fn tlvs_are_read_back_up_to_the_first_that_is_cut_short() {
        let mut octets = Vec::new();
        put_tlv(&mut octets, 0x0204, &[0, 9]);
        put_tlv(&mut octets, 0x1501, b"");
        let both = [(0x0204, &[0, 9][..]), (0x1501, &[])];
        assert_eq!(tlvs(&octets).collect::<Vec<_>>(), both);
        for cut in 0..octets.len() {
            let read: Vec<_> = tlvs(&octets[..cut]).collect();
            assert_eq!(read, both[..usize::from(cut >= 6)], "{cut}");
        }
    }
}
