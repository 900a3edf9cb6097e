//! Forms (application/x-www-form-urlencoded, URL standard §5), queries, and percent-encoding.

use crate::bindings::router::switchyard::hooks::types::HttpRequest;
use crate::front_end::header;

/// The fields of a form or of a query, in their order: names as text, values as octets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form(Vec<(String, Vec<u8>)>);

impl Form {
    /// The fields of a request's query, and those of its body if that is a form.
    #[must_use]
    pub fn of(request: &HttpRequest) -> Self {
        let mut form = Self::read(request.query.as_bytes());
        let is_form = header(request, "content-type").is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        });
        if is_form {
            form.0.append(&mut Self::read(&request.body).0);
        }
        form
    }

    /// Reads a form, or a query without its question mark.
    #[must_use]
    pub fn read(octets: &[u8]) -> Self {
        let pairs = octets.split(|octet| *octet == b'&').filter(|pair| !pair.is_empty());
        let read = pairs.map(|pair| {
            let equals = pair.iter().position(|octet| *octet == b'=').unwrap_or(pair.len());
            let (name, value) = pair.split_at(equals);
            let name = String::from_utf8_lossy(&percent_decode(name)).into_owned();
            (name, percent_decode(value.get(1..).unwrap_or_default()))
        });
        Self(read.collect())
    }

    /// The value of the first field of this name.
    #[must_use]
    pub fn octets(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// The value of the first field of this name, as text; octets outside UTF-8 appear as replacement characters.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.octets(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// All fields as text, as [`Form::text`] returns it.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        let field =
            |(name, value): &(String, Vec<u8>)| (name.clone(), String::from_utf8_lossy(value).into_owned());
        self.0.iter().map(field).collect()
    }
}

/// Encodes all but unreserved characters (RFC 3986 §2.3), for the value of a field or a part of a URL.
#[must_use]
pub fn percent_encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            encoded.push(char::from(octet));
        } else {
            let digits = [octet >> 4, octet & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            encoded.push('%');
            encoded.extend(digits);
        }
    }
    encoded
}

/// Decodes percent signs and plus signs. A percent sign without two digits stays unchanged.
#[must_use]
pub fn percent_decode(text: &[u8]) -> Vec<u8> {
    let digit = |octet: Option<&u8>| octet.and_then(|octet| char::from(*octet).to_digit(16));
    let mut decoded = Vec::with_capacity(text.len());
    let mut index = 0;
    while let Some(octet) = text.get(index) {
        let escaped = match octet {
            b'%' => digit(text.get(index + 1)).zip(digit(text.get(index + 2))),
            _ => None,
        };
        match escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(escaped) => {
                decoded.push(escaped);
                index += 3;
            }
            None => {
                decoded.push(if *octet == b'+' { b' ' } else { *octet });
                index += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_decoded_to_octets() {
        let form = Form::read(b"to=%2b49+1&&text=%E4%zz%4&empty=&flag&to=2&=x");
        assert_eq!(form.text("to").as_deref(), Some("+49 1"));
        assert_eq!(form.octets("text"), Some(&b"\xe4%zz%4"[..]));
        assert_eq!(
            (form.octets("empty"), form.octets("flag"), form.octets("none")),
            (Some(&[][..]), Some(&[][..]), None)
        );
        let names: Vec<String> = form.fields().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["to", "text", "empty", "flag", "to", ""]);
        assert_eq!(Form::read(b""), Form::default());
    }

    proptest! {
        #[test]
        fn encoded_octets_are_decoded(name in "\\PC{0,12}", value in "\\PC{0,40}") {
            let form = Form::read(format!("{}={}", percent_encode(&name), percent_encode(&value)).as_bytes());
            prop_assert_eq!(form.fields(), [(name, value)]);
        }

        #[test]
        fn any_octets_are_decoded(octets in prop::collection::vec(any::<u8>(), 0..60)) {
            let decoded = percent_decode(&octets);
            prop_assert!(decoded.len() <= octets.len());
            let _ = Form::read(&octets);
        }
    }
}
