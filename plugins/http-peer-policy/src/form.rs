//! Forms (application/x-www-form-urlencoded, URL standard §5), and percent-encoding.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Encodes all but unreserved characters (RFC 3986 §2.3).
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            escaped.push(char::from(octet));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{octet:02X}");
        }
    }
    escaped
}

/// Decodes a name or a value of a form. Malformed escapes stay as they are.
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

/// A form or a query as an object. Of fields with the same name, the first counts.
pub(crate) fn parse(text: &str) -> Value {
    let mut fields = Map::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        fields.entry(decode(name)).or_insert_with(|| Value::String(decode(value)));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn forms_are_decoded() {
        let parsed = parse("a=1+2%2b&b=%C3%BC&a=3&c&=x&d=%zz%4");
        assert_eq!(parsed, json!({ "a": "1 2+", "b": "ü", "c": "", "": "x", "d": "%zz%4" }));
        assert_eq!(parse(""), json!({}));
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_decoded(name in "\\PC{0,12}", value in "\\PC{0,40}") {
            let parsed = parse(&format!("{}={}", escape(&name), escape(&value)));
            prop_assert_eq!(parsed, json!({ name: value }));
        }

        #[test]
        fn any_text_is_decoded(text in ".{0,60}") {
            parse(&text);
        }
    }
}
