//! Front ends: plugins that serve the HTTP API of another product.

use crate::bindings::front_end::exports::switchyard::hooks::translation;

pub use crate::bindings::router::switchyard::hooks::types::HttpHeader as Header;
#[doc(hidden)]
pub use translation::Guest;
pub use translation::{
    Accepted, Coding, Content, Credentials, DlrPush, DlrSignature, DlrWords, Outcome, Reading, Refusal,
    RefusalReason, Request, Response, Submission, SubmissionResult, Submit, WantedReceipts,
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
        dlr_push: None,
    }
}

impl Default for DlrWords {
    /// No words: no DLR is pushed.
    fn default() -> Self {
        Self {
            enroute: None,
            delivered: None,
            expired: None,
            deleted: None,
            undeliverable: None,
            accepted: None,
            unknown: None,
            rejected: None,
        }
    }
}

/// Escapes braces in a literal text for a template of a [`DlrPush`].
#[must_use]
pub fn literal(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
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
    fn braces_are_literal() {
        assert_eq!(literal("a{b}?c"), "a{{b}}?c");
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
