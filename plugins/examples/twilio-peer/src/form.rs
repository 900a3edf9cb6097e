//! Forms (application/x-www-form-urlencoded).

/// Encodes all but unreserved characters (RFC 3986 §2.3).
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            escaped.push(char::from(octet));
        } else {
            escaped.push_str(&format!("%{octet:02X}"));
        }
    }
    escaped
}

fn decode(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let hex = |octet: &u8| char::from(*octet).to_digit(16);
        match (first, after) {
            (b'+', _) => octets.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    octets.push((high * 16 + low) as u8);
                    rest = after;
                }
                _ => octets.push(b'%'),
            },
            _ => octets.push(*first),
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

/// The fields of a form, in its order.
pub(crate) fn parse(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}
