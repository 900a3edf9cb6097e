/// Octets as hexadecimal digits, in lower case.
#[must_use]
pub fn hex(octets: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    octets.iter().flat_map(|octet| [digit(octet >> 4), digit(*octet)]).collect()
}

/// The octets of hexadecimal digits in either case; `None` for other text.
#[must_use]
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_round_trip() {
        let octets: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(from_hex(&hex(&octets)), Some(octets));
        assert_eq!((hex(&[]), hex(b"\x0f\xa0")), (String::new(), "0fa0".to_owned()));
        assert_eq!(from_hex("0FA0"), Some(vec![0x0f, 0xa0]));
        for wrong in ["0", "0x", "é0", "+1"] {
            assert_eq!(from_hex(wrong), None);
        }
    }
}
