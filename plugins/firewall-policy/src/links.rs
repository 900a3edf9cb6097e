//! Domains of the links in a text.

use crate::fold::fold;
use crate::punycode;
use std::collections::HashSet;

/// Maximum number of labels of a domain that are compared, counted from its end.
const MAX_LABELS: usize = 10;

/// The domain of a link, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Domain {
    /// As written, without user, port and trailing dot.
    pub(crate) written: String,
    /// With its punycode decoded.
    pub(crate) unicode: String,
}

impl Domain {
    /// The domain of a link with or without a scheme. `None` if there is none.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        // Browsers treat a backslash as a slash.
        let authority = rest.split(['/', '\\', '?', '#']).next()?;
        let host = authority.rsplit('@').next()?;
        let host = host.split(':').next()?;
        let written = host.trim_end_matches('.').to_lowercase();
        if written.is_empty() {
            return None;
        }
        let unicode = to_unicode(&written);
        Some(Self { written, unicode })
    }

    /// Whether a list has the domain or one of its parent domains.
    pub(crate) fn is_within(&self, has: impl Fn(&str) -> bool) -> bool {
        above(&self.written).any(&has) || (self.unicode != self.written && above(&self.unicode).any(&has))
    }

    /// The same for a list of unwanted domains: a domain that looks like a listed one counts too.
    pub(crate) fn resembles_listed(&self, has: impl Fn(&str) -> bool) -> bool {
        if self.is_within(&has) {
            return true;
        }
        let folded = fold(&self.unicode);
        folded != self.unicode && above(&folded).any(has)
    }
}

/// A domain and its parent domains, longest first.
fn above(domain: &str) -> impl Iterator<Item = &str> {
    let labels = domain.split('.').count();
    let skipped = labels.saturating_sub(MAX_LABELS);
    let starts = std::iter::once(0).chain(domain.match_indices('.').map(|(at, _)| at + 1));
    starts.skip(skipped).filter_map(|start| domain.get(start..)).filter(|rest| !rest.is_empty())
}

fn to_unicode(domain: &str) -> String {
    if !domain.contains("xn--") {
        return domain.to_owned();
    }
    let labels: Vec<String> = domain
        .split('.')
        .map(|label| match label.strip_prefix("xn--").and_then(punycode::decode) {
            // A browser does not treat an ASCII name in punycode as that name.
            Some(decoded) if !decoded.is_ascii() => decoded.to_lowercase(),
            _ => label.to_owned(),
        })
        .collect();
    labels.join(".")
}

/// Reads the domains of a rule.
///
/// # Errors
/// The correction.
pub(crate) fn read_domains(key: &str, domains: &[String]) -> Result<HashSet<String>, String> {
    let read = domains.iter().map(|text| match Domain::of(text) {
        Some(domain) if domain.written == text.to_lowercase() => Ok(domain.unicode),
        _ => Err(format!(
            "`{key}` has {text:?}; write a domain such as \"example.com\", without scheme, path and port"
        )),
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(url: &str) -> Option<String> {
        Domain::of(url).map(|domain| domain.written)
    }

    #[test]
    fn the_domain_of_a_link() {
        for (url, domain) in [
            ("bit.example/x", "bit.example"),
            ("HTTPS://WWW.Example.COM:8443/a?b#c", "www.example.com"),
            ("http://bank.example@evil.example/", "evil.example"),
            ("http://evil.example\\@bank.example/", "evil.example"),
            ("http://user:word@evil.example:80", "evil.example"),
            ("www.example.com.", "www.example.com"),
            ("http://evil.example?x=http://bank.example/", "evil.example"),
        ] {
            assert_eq!(written(url).as_deref(), Some(domain), "{url}");
        }
        assert_eq!(written("http:///path"), None);
    }

    #[test]
    fn a_domain_is_within_those_above_it() {
        let within = |url: &str| Domain::of(url).unwrap().is_within(|domain| domain == "example.com");
        assert!(within("a.b.example.com/x") && within("Example.com"));
        assert!(!within("notexample.com") && !within("example.com.evil.example") && !within("com.example"));
        let long = format!("{}example.com", "a.".repeat(300));
        assert!(within(&long));
    }

    #[test]
    fn lookalikes_count_only_as_unwanted() {
        // Cyrillic a, unencoded and in punycode.
        for url in ["http://exаmple.com/", "http://xn--exmple-4nf.com/"] {
            let domain = Domain::of(url).unwrap();
            assert_eq!(domain.unicode, "exаmple.com", "{url}");
            assert!(domain.resembles_listed(|domain| domain == "example.com"), "{url}");
            assert!(!domain.is_within(|domain| domain == "example.com"), "{url}");
        }
        // ASCII in punycode is another name.
        let fake = Domain::of("http://xn--example-.com/").unwrap();
        assert!(!fake.is_within(|domain| domain == "example.com"));
    }

    #[test]
    fn a_list_has_domains_only() {
        let read = |text: &str| read_domains("domains", &[text.to_owned()]);
        assert!(read("Bücher.example").unwrap().contains("bücher.example"));
        assert!(read("xn--bcher-kva.example").unwrap().contains("bücher.example"));
        assert!(read("zip").is_ok(), "a top-level domain");
        for wrong in ["", "http://a.example", "a.example/x", "a.example:80", "a.example."] {
            assert!(read(wrong).unwrap_err().contains("without scheme"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_domain_or_none(text in "\\PC{0,60}") {
            if let Some(domain) = Domain::of(&text) {
                prop_assert!(!domain.written.is_empty());
                prop_assert!(!domain.resembles_listed(|_| false));
            }
        }
    }
}
