use crate::Error;
use reqwest::Url;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A granted URL prefix: scheme, host, port and path prefix.
///
/// The path prefix ends at a segment boundary: `https://hlr.example/v1` grants `/v1` and `/v1/imsi` but not `/v10`;
/// `https://hlr.example/v1/` grants only the paths below it. Without a path, all paths are granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// Without query, fragment or user.
    prefix: Url,
}

impl HttpGrant {
    /// Parses a grant of the form `https://host[:port][/path/prefix]`.
    ///
    /// # Errors
    /// The text is not a URL prefix, or is ambiguous.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |what| Error::HttpGrant { grant: text.to_owned(), what };
        let prefix = url(text).map_err(wrong)?;
        if prefix.query().is_some() || prefix.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        Ok(Self { prefix })
    }

    /// Whether the grant covers a URL that [`url`] has parsed.
    pub(super) fn allows(&self, url: &Url) -> bool {
        let same = self.prefix.scheme() == url.scheme()
            && self.prefix.host() == url.host()
            && self.prefix.port_or_known_default() == url.port_or_known_default();
        let path_prefix = self.prefix.path();
        same && url
            .path()
            .strip_prefix(path_prefix)
            .is_some_and(|rest| rest.is_empty() || path_prefix.ends_with('/') || rest.starts_with('/'))
    }
}

impl FromStr for HttpGrant {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for HttpGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.prefix.fmt(f)
    }
}

/// Parses a URL that every server interprets in the same way: host in lower case, "." and ".." resolved, and no path
/// that servers may normalize differently.
pub(super) fn url(text: &str) -> Result<Url, &'static str> {
    if text.bytes().any(|c| c.is_ascii_control() || matches!(c, b' ' | b'\\')) {
        return Err("a URL must not have spaces, backslashes or control characters");
    }
    let url = Url::parse(text).map_err(|_| "it is not a URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its scheme is neither http nor https");
    }
    // `Url` would accept "https:host" and "https:///host" for "https://host".
    let after = text.get(url.scheme().len()..).unwrap_or_default();
    if after.strip_prefix("://").is_none_or(|rest| rest.starts_with('/')) {
        return Err("the scheme must be followed by two slashes and a host");
    }
    let authority = after.get(3..).unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return Err("it must not have a user or a password: use a header");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it has no host");
    }
    if !url.path().split('/').all(is_canonical) {
        return Err("its path encodes a slash, a dot segment, a control character or invalid UTF-8");
    }
    Ok(url)
}

/// Whether a path segment stays the same however often a server decodes it.
fn is_canonical(segment: &str) -> bool {
    let mut octets = Cow::Borrowed(segment.as_bytes());
    // Each round makes it shorter. More rounds of encoding than this are suspicious.
    for _ in 0..4 {
        if octets.iter().any(|c| matches!(c, b'/' | b'\\') || c.is_ascii_control()) {
            return false;
        }
        // A lenient server may decode an overlong form of a dot or a slash.
        if std::str::from_utf8(&octets).is_err() {
            return false;
        }
        // Some servers remove parameters first: "..;x" is ".." to them.
        let name = octets.split(|c| *c == b';').next().unwrap_or_default();
        if matches!(name, b"." | b"..") {
            return false;
        }
        match percent_decode(&octets) {
            Some(less) => octets = Cow::Owned(less),
            None => return true,
        }
    }
    false
}

/// Replaces each "%xx" with its octet; `None` if there is none.
fn percent_decode(octets: &[u8]) -> Option<Vec<u8>> {
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
        let grant = HttpGrant::parse(grant).unwrap();
        url(text).is_ok_and(|url| grant.allows(&url))
    }

    #[test]
    fn urls_below_the_prefix_are_allowed() {
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
    fn urls_outside_the_prefix_are_refused() {
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
    fn an_invalid_grant_is_refused() {
        for (grant, what) in [
            ("hlr.example", "it is not a URL"),
            ("ftp://hlr.example", "neither http nor https"),
            ("https://user:secret@hlr.example", "a user or a password"),
            ("https://hlr.example/?a", "a query or a fragment"),
            ("https://hlr.example/#a", "a query or a fragment"),
            ("https://*.example /", "spaces"),
            ("https://hlr.example/a%2fb", "encodes a slash"),
        ] {
            let refused = HttpGrant::parse(grant).unwrap_err().to_string();
            assert!(refused.contains(what) && refused.contains(grant), "{refused}");
        }
        assert_eq!(HttpGrant::parse("HTTPS://Hlr.Example:443").unwrap().to_string(), "https://hlr.example/");
    }

    proptest! {
        /// Every allowed URL is checked again by rules on its plain text.
        #[test]
        fn no_url_outside_the_prefix_is_allowed(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "https", "http", ":", "//", "/", "\\", "@", "hlr.example", "evil.example", ":8443", ":443", ".",
                    "..", "%2e", "%2f", "%5c", "%25", "v1", "?", "#", ";", "\t", " ", "[", "]", "x", "%", "\u{ff0f}",
                    "\u{3002}", "https://hlr.example:8443/v1", "https://hlr.example:8443",
                ]),
                0..10,
            ),
        ) {
            let grant = HttpGrant::parse("https://hlr.example:8443/v1").unwrap();
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
