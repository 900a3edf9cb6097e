//! Arbitrary text as a grant of a binding, and as a request of its plugin, one per line: an allowed request stays on the granted
//! host and port and below the granted path, however a server decodes escapes and dots.
#![no_main]

use capabilities::{FetchFailure, FetchRequest, HttpGrant, HttpGrants};
use libfuzzer_sys::fuzz_target;
use url::{Host, Url};

fn request(method: &str, url: &str, headers: Vec<(String, String)>) -> FetchRequest {
    FetchRequest { method: method.to_owned(), url: url.to_owned(), headers, body: Vec::new() }
}

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let (Some(grant), Some(url)) = (lines.next(), lines.next()) else { return };
    let method = lines.next().filter(|method| !method.is_empty()).unwrap_or("GET");
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let prefix = match HttpGrant::parse(grant) {
        Ok(prefix) => prefix,
        Err(refused) => return assert!(!refused.to_string().contains(char::is_control)),
    };
    // The displayed grant is itself a valid grant with the same meaning.
    let shown = prefix.to_string();
    assert_eq!(HttpGrant::parse(&shown).ok().as_ref(), Some(&prefix));
    let grants = HttpGrants { prefixes: vec![prefix], ..HttpGrants::default() };
    assert_eq!(grants.check(&request("GET", &shown, Vec::new())), Ok(()));

    let fetch = request(method, url, headers);
    match grants.check(&fetch) {
        Ok(()) => allowed(&Url::parse(&shown).expect("a grant that is no URL"), &fetch),
        Err(FetchFailure::NotAllowed(why)) => assert!(!why.is_empty()),
        Err(other) => panic!("{other}"),
    }
    assert!(HttpGrants::default().check(&fetch).is_err(), "allowed without a grant");
});

fn allowed(prefix: &Url, fetch: &FetchRequest) {
    let url = Url::parse(&fetch.url).expect("a URL that is none");
    let shown = format!("{url} of {prefix}");
    assert_eq!(url.scheme(), prefix.scheme(), "{shown}");
    assert_eq!(url.host(), prefix.host(), "{shown}");
    assert_eq!(url.port_or_known_default(), prefix.port_or_known_default(), "{shown}");
    assert!(url.username().is_empty() && url.password().is_none(), "{shown}");

    // The host, delimited only by RFC 3986 §3.2.
    let rest =
        fetch.url.get(url.scheme().len()..).and_then(|rest| rest.strip_prefix("://")).expect("two slashes");
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!authority.contains(['@', '\\']), "{shown}");
    let plain = authority.is_ascii() && !authority.contains('%');
    if let (Some(Host::Domain(host)), true) = (prefix.host(), plain) {
        let written = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        assert_eq!(written.to_ascii_lowercase(), host, "{shown}");
    }

    // The path, as read by servers that decode repeatedly, merge slashes and cut off parameters.
    let (mut within, mut path) = (prefix.path().as_bytes().to_vec(), url.path().as_bytes().to_vec());
    for times in 0..8 {
        let (border, reached) = (resolved(&within), resolved(&path));
        let (border, reached) = (border.expect("a grant above its root"), reached.expect("above the root"));
        assert!(reached.starts_with(&border), "{shown}, decoded {times} times");
        (within, path) = (decoded(&within), decoded(&path));
    }

    assert!(!fetch.method.eq_ignore_ascii_case("connect") && !fetch.method.eq_ignore_ascii_case("trace"));
    for (name, value) in &fetch.headers {
        let name = name.to_ascii_lowercase();
        let carriage =
            ["host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te"];
        assert!(!carriage.contains(&name.as_str()), "{name}");
        assert!(!name.is_empty() && !name.contains([' ', ':']), "{name:?}");
        assert!(!value.contains(['\r', '\n', '\0']), "{name}: {value:?}");
    }
}

/// The segments after dot segments are resolved; `None` if they lead above the root.
fn resolved(path: &[u8]) -> Option<Vec<&[u8]>> {
    let mut segments = Vec::new();
    for segment in path.split(|c| matches!(c, b'/' | b'\\')) {
        match segment.split(|c| *c == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => {
                segments.pop()?;
            }
            name => segments.push(name),
        }
    }
    Some(segments)
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |octet: u8| char::from(octet).to_digit(16);
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&octet) = path.get(at) {
        let pair = path.get(at + 1).zip(path.get(at + 2)).and_then(|(a, b)| digit(*a).zip(digit(*b)));
        match (octet, pair) {
            (b'%', Some((high, low))) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(octet);
                at += 1;
            }
        }
    }
    out
}
