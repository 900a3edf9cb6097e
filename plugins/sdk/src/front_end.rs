//! Front ends: plugins that serve the HTTP API of another product.

use crate::bindings::front_end::exports::switchyard::hooks::translation;

#[doc(hidden)]
pub use translation::Guest;
pub use translation::{
    Accepted, Coding, Content, Credentials, Header, Outcome, Reading, Refusal, RefusalReason, Request,
    Response, Submission, SubmissionResult, Submit, WantedReceipts,
};

/// A front end. It may use [`log`](crate::log), [`clock`](crate::clock) and [`tables`](crate::tables).
pub trait FrontEnd: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Reads a request. Anybody may send one.
    fn read(&self, request: &Request) -> Reading;

    /// Writes the response to a request whose submissions have this outcome.
    fn reply(&self, request: &Request, outcome: &Outcome) -> Response;
}

/// A text for a number, without receipts, with the account's defaults.
#[must_use]
pub fn submission(destination: impl Into<String>, content: Content) -> Submission {
    Submission {
        source: None,
        destination: destination.into(),
        content,
        coding: Coding::Automatic,
        user_data_header: None,
        message_class: None,
        priority: None,
        validity: None,
        schedule: None,
        receipts: WantedReceipts::None,
        reference: None,
        tlvs: Vec::new(),
    }
}

/// A response with this content type and body.
#[must_use]
pub fn response(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Response {
    let header = Header { name: "content-type".to_owned(), value: content_type.to_owned() };
    Response { status, headers: vec![header], body: body.into() }
}

/// The first header of this name, in lower case.
#[must_use]
pub fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|header| header.name == name).map(|header| header.value.as_str())
}

/// The parameters of a request (application/x-www-form-urlencoded), decoded to octets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form(Vec<(String, Vec<u8>)>);

impl Form {
    /// Those of the query, and those of the body if that is a form.
    #[must_use]
    pub fn of(request: &Request) -> Self {
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

    /// Reads parameters.
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

    /// The first parameter of this name.
    #[must_use]
    pub fn octets(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// The first parameter of this name, as text; octets outside UTF-8 appear as replacement characters.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.octets(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }
}

/// Decodes percent signs and plus signs. A percent sign without two digits stands for itself.
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

/// The characters of octets in a character set, by its IANA name: UTF-8, US-ASCII, ISO-8859-1 or UTF-16BE. `None`: another set,
/// or the octets do not fit.
#[must_use]
pub fn decode_text(octets: &[u8], charset: &str) -> Option<String> {
    match charset.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => String::from_utf8(octets.to_vec()).ok(),
        "US-ASCII" | "ASCII" => octets.is_ascii().then(|| octets.iter().copied().map(char::from).collect()),
        "ISO-8859-1" | "LATIN1" | "LATIN-1" => Some(octets.iter().copied().map(char::from).collect()),
        "UTF-16BE" | "UCS-2" | "UCS-2BE" if octets.len().is_multiple_of(2) => {
            let units: Vec<u16> =
                octets.chunks_exact(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair[1])).collect();
            String::from_utf16(&units).ok()
        }
        _ => None,
    }
}

/// A text as a string of JSON, with its quotation marks.
#[must_use]
pub fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// Exports a type as the plugin's front end.
#[macro_export]
macro_rules! export_front_end {
    ($front_end:ty) => {
        const _: () = {
            $crate::__configured_guest!($front_end, FrontEnd, FrontEndGuest, |cell| {
                fn read(request: $crate::front_end::Request) -> $crate::front_end::Reading {
                    PLUGIN.with(|cell| $crate::FrontEnd::read(cell.get(), &request))
                }
                fn reply(
                    request: $crate::front_end::Request,
                    outcome: $crate::front_end::Outcome,
                ) -> $crate::front_end::Response {
                    PLUGIN.with(|cell| $crate::FrontEnd::reply(cell.get(), &request, &outcome))
                }
            });
            $crate::bindings::front_end::export_front_end_component!(
                Exported with_types_in $crate::bindings::front_end
            );
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_to_octets() {
        let form = Form::read(b"to=%2b49+1&&text=%E4%zz&empty=&flag&to=2");
        assert_eq!(form.text("to").as_deref(), Some("+49 1"));
        assert_eq!(form.octets("text"), Some(&b"\xe4%zz"[..]));
        assert_eq!(
            (form.octets("empty"), form.octets("flag"), form.octets("none")),
            (Some(&[][..]), Some(&[][..]), None)
        );
    }

    #[test]
    fn character_sets() {
        assert_eq!(decode_text(b"\xe4", "iso-8859-1").as_deref(), Some("ä"));
        assert_eq!(decode_text(b"\xe4", "UTF-8"), None);
        assert_eq!(decode_text(b"\x4f\x60", "UTF-16BE").as_deref(), Some("你"));
        assert_eq!((decode_text(b"\x4f", "UTF-16BE"), decode_text(b"a", "KOI8-R")), (None, None));
    }

    #[test]
    fn json_strings_are_escaped() {
        assert_eq!(json_string("a\"b\\\n你"), r#""a\"b\\\u000a你""#);
    }
}
