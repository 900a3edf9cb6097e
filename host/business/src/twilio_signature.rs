//! The signature of Twilio's requests (Twilio's documentation, "Validating requests").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use reqwest::Url;
use sha1::Sha1;
use std::collections::BTreeSet;

/// The header that carries the signature.
pub(crate) const HEADER: &str = "X-Twilio-Signature";

/// Base64 of the HMAC-SHA1, with the secret as key, over the URL and the sorted names and values of the form's fields.
pub(crate) fn signature(secret: &str, url: &Url, form: Option<&str>) -> String {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(secret.as_bytes()) else { return String::new() };
    // The URL as the receiver sees it: credentials are sent in a header, and a fragment is not sent.
    let mut seen = url.clone();
    seen.set_fragment(None);
    // Both are possible for the URLs of requests.
    let _ = (seen.set_username(""), seen.set_password(None));
    mac.update(seen.as_str().as_bytes());
    seen.set_query(form);
    // A field with the same value twice is signed once.
    let fields: BTreeSet<_> = seen.query_pairs().collect();
    for (name, value) in &fields {
        mac.update(name.as_bytes());
        mac.update(value.as_bytes());
    }
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Twilio's documentation, whose signature PyPI `twilio` tests too.
    #[test]
    fn signs_url_and_form() {
        let url = Url::parse("https://mycompany.com/myapp.php?foo=1&bar=2").unwrap();
        let form = "To=%2B18005551212&Digits=1234&From=%2B14158675309&Caller=%2B14158675309&CallSid=CA1234567890ABCDE";
        let expected = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";
        assert_eq!(signature("12345", &url, Some(form)), expected);
        assert_ne!(signature("12346", &url, Some(form)), expected);
        let with_more = Url::parse("https://user:word@mycompany.com/myapp.php?foo=1&bar=2#rest").unwrap();
        assert_eq!(signature("12345", &with_more, Some(form)), signature("12345", &url, Some(form)));
        assert_ne!(signature("12345", &url, None), signature("12345", &url, Some(form)));
    }
}
