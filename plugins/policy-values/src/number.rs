/// The digits of an address without a leading plus sign. `None` if it has other characters, or no digits.
#[must_use]
pub fn digits_of(address: &str) -> Option<&str> {
    let digits = address.strip_prefix('+').unwrap_or(address);
    (!digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit())).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_digits() {
        assert_eq!(digits_of("+8613"), Some("8613"));
        assert_eq!(digits_of("8613"), Some("8613"));
        for other in ["", "+", "++86", "ACME", "86 13", "８６"] {
            assert_eq!(digits_of(other), None, "{other:?}");
        }
    }
}
