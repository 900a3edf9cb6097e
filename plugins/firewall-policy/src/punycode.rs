//! Punycode (RFC 3492): the ASCII form of labels of international domain names.

/// A label has at most 63 octets (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;

const BASE: u32 = 36;
const THRESHOLD_MIN: u32 = 1;
const THRESHOLD_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;

/// The characters of a label without its prefix `xn--`. `None` if it is invalid.
pub(crate) fn decode(label: &str) -> Option<String> {
    if label.len() > MAX_LABEL || !label.is_ascii() {
        return None;
    }
    let (plain, coded) = label.rsplit_once('-').unwrap_or(("", label));
    let mut decoded: Vec<char> = plain.chars().collect();
    let (mut code, mut bias, mut index) = (128_u32, 72_u32, 0_u32);
    let mut digits = coded.bytes().peekable();
    while digits.peek().is_some() {
        let before = index;
        let mut weight = 1_u32;
        for position in (BASE..).step_by(36) {
            let digit = match digits.next()? {
                letter @ b'a'..=b'z' => letter - b'a',
                letter @ b'A'..=b'Z' => letter - b'A',
                digit @ b'0'..=b'9' => digit - b'0' + 26,
                _ => return None,
            };
            let digit = u32::from(digit);
            index = index.checked_add(digit.checked_mul(weight)?)?;
            let threshold = position.saturating_sub(bias).clamp(THRESHOLD_MIN, THRESHOLD_MAX);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
        }
        let count = u32::try_from(decoded.len()).ok()?.checked_add(1)?;
        bias = adapt(index - before, count, before == 0);
        code = code.checked_add(index / count)?;
        index %= count;
        decoded.insert(usize::try_from(index).ok()?, char::from_u32(code)?);
        index += 1;
    }
    Some(decoded.into_iter().collect())
}

/// RFC 3492 §6.1.
fn adapt(delta: u32, count: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut steps = 0;
    while delta > ((BASE - THRESHOLD_MIN) * THRESHOLD_MAX) / 2 {
        delta /= BASE - THRESHOLD_MIN;
        steps += BASE;
    }
    steps + (BASE - THRESHOLD_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_are_decoded() {
        for (label, text) in [
            ("bcher-kva", "bücher"),
            ("exmple-4nf", "exаmple"),
            ("fiqs8s", "中国"),
            // RFC 3492 §7.1, (B) Chinese and (I) Russian.
            ("ihqwcrb4cv8a8dqg056pqjye", "他们为什么不说中文"),
            ("b1abfaaepdrnnbgefbadotcwatmq2g4l", "почемужеонинеговорятпорусски"),
        ] {
            assert_eq!(decode(label).as_deref(), Some(text), "{label}");
        }
    }

    #[test]
    fn invalid_labels_have_no_characters() {
        for label in ["a b", "99999999", "é", &"a".repeat(64)] {
            assert_eq!(decode(label), None, "{label}");
        }
    }

    proptest! {
        #[test]
        fn any_label_is_decoded_or_refused(label in "[a-z0-9-]{0,63}") {
            let _ = decode(&label);
        }
    }
}
