use crate::Error;
use reqwest::Url;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A place that a plugin may ask: scheme, host and port, and the beginning of the path.
///
/// The path ends at a border of segments: `https://hlr.example/v1` grants `/v1` and `/v1/imsi` and not `/v10`;
/// `https://hlr.example/v1/` grants what is below it only. Without a path all is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// With no query, no fragment and no user.
    place: Url,
}

impl Grant {
    /// Reads a grant, as `https://host[:port][/path/prefix]`.
    ///
    /// # Errors
    /// What is no such place, or would be another than it seems to be.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |what| Error::Grant { grant: text.to_owned(), what };
        let place = url(text).map_err(wrong)?;
        if place.query().is_some() || place.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        Ok(Self { place })
    }

    /// Whether a URL that [`url`] has read is at this place.
    pub(super) fn allows(&self, url: &Url) -> bool {
        let same = self.place.scheme() == url.scheme()
            && self.place.host() == url.host()
            && self.place.port_or_known_default() == url.port_or_known_default();
        let prefix = self.place.path();
        same && url
            .path()
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
    }
}

impl FromStr for Grant {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

/// Reads a URL that means to every server what it means to us: host in lower case, "." and ".." resolved, and none of the
/// tricks by which a path is longer to one than to the other.
pub(super) fn url(text: &str) -> Result<Url, &'static str> {
    if text.bytes().any(|c| c.is_ascii_control() || matches!(c, b' ' | b'\\')) {
        return Err("a space, a backslash or a control character has no place in a URL");
    }
    let url = Url::parse(text).map_err(|_| "it is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its scheme is neither http nor https");
    }
    // Url would take "https:host" and "https:///host" for "https://host".
    let after = text.get(url.scheme().len()..).unwrap_or_default();
    if after.strip_prefix("://").is_none_or(|rest| rest.starts_with('/')) {
        return Err("after the scheme come two slashes and a host");
    }
    let authority = after.get(3..).unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return Err("a user or a password has no place in it: use a header");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it has no host");
    }
    if !url.path().split('/').all(is_plain) {
        return Err("its path hides a slash, a dot segment, a control character or no UTF-8 in an encoding");
    }
    Ok(url)
}

/// Whether a segment of a path is the same however often a server decodes it.
fn is_plain(segment: &str) -> bool {
    let mut octets = Cow::Borrowed(segment.as_bytes());
    // Each round makes it shorter; who encodes more often than that hides something.
    for _ in 0..4 {
        if octets.iter().any(|c| matches!(c, b'/' | b'\\') || c.is_ascii_control()) {
            return false;
        }
        // An overlong form of a dot or a slash is one to a server that does not look closely.
        if std::str::from_utf8(&octets).is_err() {
            return false;
        }
        // Some servers cut parameters off first: "..;x" is ".." to them.
        let name = octets.split(|c| *c == b';').next().unwrap_or_default();
        if matches!(name, b"." | b"..") {
            return false;
        }
        match decoded(&octets) {
            Some(less) => octets = Cow::Owned(less),
            None => return true,
        }
    }
    false
}

/// With each "%xx" replaced by its octet; `None`: there is none.
fn decoded(octets: &[u8]) -> Option<Vec<u8>> {
    let digit = |octet: Option<&u8>| char::from(*octet?).to_digit(16);
    let (mut out, mut rest) = (Vec::with_capacity(octets.len()), octets);
    while let Some((first, after)) = rest.split_first() {
        match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    (out.len() < octets.len()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allows(grant: &str, text: &str) -> bool {
        let grant = Grant::parse(grant).unwrap();
        url(text).is_ok_and(|url| grant.allows(&url))
    }

    #[test]
    fn what_is_at_the_place_is_allowed() {
        for text in [
            "https://hlr.example:8443/v1",
            "https://hlr.example:8443/v1/",
            "https://HLR.Example:8443/v1/imsi?number=49#x",
            "https://hlr.example:8443/v1/a%20b/100%25",
            "https://hlr.example:8443/x/../v1/imsi",
            "https://hlr.example:8443/v1?next=https://user@elsewhere.example/../",
        ] {
            assert!(allows("https://hlr.example:8443/v1", text), "{text}");
        }
        assert!(allows("https://hlr.example", "https://hlr.example:443/any"));
        assert!(allows("http://127.0.0.1/", "http://127.0.0.1:80"));
        assert!(allows("http://[::1]:80/a/", "http://[0:0:0:0:0:0:0:1]/a/b"));
    }

    #[test]
    fn what_is_not_at_the_place_is_refused() {
        for text in [
            "http://hlr.example:8443/v1",
            "https://hlr.example/v1",
            "https://hlr.example:8444/v1",
            "https://hlr.example.:8443/v1",
            "https://hlr.example.evil:8443/v1",
            "https://evil.hlr.example:8443/v1",
            "https://hlr.example:8443@evil/v1",
            "https://hlr.example:8443\\@evil/v1",
            "https://evil\\@hlr.example:8443/v1",
            "https://user@hlr.example:8443/v1",
            "https://@hlr.example:8443/v1",
            "https://hlr.example:8443/",
            "https://hlr.example:8443/v10",
            "https://hlr.example:8443/V1",
            "https://hlr.example:8443/v1/../admin",
            "https://hlr.example:8443/v1/..",
            "https://hlr.example:8443/v1/%2e%2e/admin",
            "https://hlr.example:8443/v1/.%2E/admin",
            "https://hlr.example:8443/v1/..%2fadmin",
            "https://hlr.example:8443/v1/%252e%252e/admin",
            "https://hlr.example:8443/v1/%25252e%25252e/admin",
            "https://hlr.example:8443/v1/..;/admin",
            "https://hlr.example:8443/v1/..%5cadmin",
            "https://hlr.example:8443/v1/%c0%ae%c0%ae/admin",
            "https://hlr.example:8443/v1/a%c0%afb",
            "https://hlr.example:8443/v1/..\\admin",
            "https://hlr.example:8443/v1/a%00b",
            "https://hlr.example:8443/v1/a%0d%0ab",
            "https://hlr.example:8443/%761/x",
            "https://hlr.exa\nmple:8443/v1",
            " https://hlr.example:8443/v1",
            "https:hlr.example:8443/v1",
            "https:///hlr.example:8443/v1",
            "//hlr.example:8443/v1",
            "file:///v1",
            "",
        ] {
            assert!(!allows("https://hlr.example:8443/v1", text), "{text}");
        }
        assert!(!allows("https://hlr.example/v1/", "https://hlr.example/v1"));
        assert!(!allows("http://127.0.0.1", "http://localhost"));
    }

    #[test]
    fn a_grant_that_is_no_place_is_refused() {
        for (grant, what) in [
            ("hlr.example", "it is no URL"),
            ("ftp://hlr.example", "neither http nor https"),
            ("https://user:secret@hlr.example", "a user or a password"),
            ("https://hlr.example/?a", "a query or a fragment"),
            ("https://hlr.example/#a", "a query or a fragment"),
            ("https://*.example /", "a space"),
            ("https://hlr.example/a%2fb", "hides a slash"),
        ] {
            let refused = Grant::parse(grant).unwrap_err().to_string();
            assert!(refused.contains(what) && refused.contains(grant), "{refused}");
        }
        assert_eq!(Grant::parse("HTTPS://Hlr.Example:443").unwrap().to_string(), "https://hlr.example/");
    }

    proptest! {
        /// What is allowed is read again by rules that are no more than text.
        #[test]
        fn no_other_place_is_ever_allowed(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "https", "http", ":", "//", "/", "\\", "@", "hlr.example", "evil.example", ":8443", ":443", ".",
                    "..", "%2e", "%2f", "%5c", "%25", "v1", "?", "#", ";", "\t", " ", "[", "]", "x", "%", "\u{ff0f}",
                    "\u{3002}", "https://hlr.example:8443/v1", "https://hlr.example:8443",
                ]),
                0..10,
            ),
        ) {
            let grant = Grant::parse("https://hlr.example:8443/v1").unwrap();
            let text = parts.concat();
            if let Ok(url) = url(&text) && grant.allows(&url) {
                let rest = url.as_str().strip_prefix("https://hlr.example:8443/v1").unwrap();
                prop_assert!(rest.is_empty() || rest.starts_with(['/', '?', '#']), "{}", url);
                let path = rest.split(['?', '#']).next().unwrap().to_ascii_lowercase();
                for trick in ["..", "%2e%2e", "%2f", "%5c", "\\"] {
                    prop_assert!(!path.split('/').any(|segment| segment == trick), "{}", url);
                }
                prop_assert!(!path.contains("%2f") && !path.contains("%5c"), "{}", url);
            }
        }
    }
}
