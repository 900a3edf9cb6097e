//! Comparison of HTTP requests.

use api::RequestDifference;
use capabilities::FetchRequest;
use std::collections::BTreeMap;

/// Maximum length of a value in a report, in characters.
const MAX_VALUE_CHARS: usize = 1_000;

fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// Headers by name in lower case; values of one name are joined.
fn headers(request: &FetchRequest) -> BTreeMap<String, String> {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &request.headers {
        let joined = headers.entry(name.to_ascii_lowercase()).or_default();
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(value);
    }
    headers
}

/// The parts in which the first requests differ, and the number of requests if that differs.
pub(super) fn request_differences(
    live: &[FetchRequest],
    candidate: &[FetchRequest],
) -> Vec<RequestDifference> {
    let mut differences = Vec::new();
    let mut add = |part: String, live: Option<&str>, candidate: Option<&str>| {
        if live != candidate {
            let (live, candidate) = (live.map(shown), candidate.map(shown));
            differences.push(RequestDifference { part, live, candidate });
        }
    };
    let counts = (live.len().to_string(), candidate.len().to_string());
    add("number of requests".to_owned(), Some(&counts.0), Some(&counts.1));
    if let (Some(live), Some(candidate)) = (live.first(), candidate.first()) {
        add("method".to_owned(), Some(&live.method), Some(&candidate.method));
        add("url".to_owned(), Some(&live.url), Some(&candidate.url));
        let (live_headers, candidate_headers) = (headers(live), headers(candidate));
        let more = candidate_headers.keys().filter(|name| !live_headers.contains_key(*name));
        for name in live_headers.keys().chain(more) {
            let values = (live_headers.get(name), candidate_headers.get(name));
            add(format!("header {name}"), values.0.map(String::as_str), values.1.map(String::as_str));
        }
        if live.body != candidate.body {
            let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
            add("body".to_owned(), Some(&text(&live.body)), Some(&text(&candidate.body)));
        }
    }
    differences
}

/// Names of the differing parts; reports group differences by this text.
pub(super) fn described_parts(differences: &[RequestDifference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let parts: Vec<&str> = differences.iter().map(|difference| difference.part.as_str()).collect();
    format!("; another request: {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, headers: &[(&str, &str)], body: &str) -> FetchRequest {
        FetchRequest {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let live = request("https://a/1", &[("X-One", "1"), ("Accept", "a"), ("accept", "b")], "to=49");
        assert_eq!(request_differences(std::slice::from_ref(&live), std::slice::from_ref(&live)), []);
        let other = request("https://a/2", &[("x-one", "1"), ("ACCEPT", "a, b"), ("x-two", "2")], "to=%2B49");
        let differences = request_differences(std::slice::from_ref(&live), &[other.clone(), other]);
        let difference = |part: &str, live: Option<&str>, candidate: Option<&str>| RequestDifference {
            part: part.to_owned(),
            live: live.map(str::to_owned),
            candidate: candidate.map(str::to_owned),
        };
        let expected = [
            difference("number of requests", Some("1"), Some("2")),
            difference("url", Some("https://a/1"), Some("https://a/2")),
            difference("header x-two", None, Some("2")),
            difference("body", Some("to=49"), Some("to=%2B49")),
        ];
        assert_eq!(differences, expected);
        assert_eq!(
            described_parts(&differences),
            "; another request: number of requests, url, header x-two, body"
        );
        let none = request_differences(&[live], &[]);
        assert_eq!(none, [difference("number of requests", Some("1"), Some("0"))]);
    }

    #[test]
    fn long_values_are_cut() {
        let long = request("https://a", &[], &"ä".repeat(5_000));
        let [difference] = &request_differences(&[long], &[request("https://a", &[], "")])[..] else {
            panic!("one difference");
        };
        assert_eq!(difference.live.as_ref().map(|text| text.chars().count()), Some(MAX_VALUE_CHARS + 2));
    }
}
