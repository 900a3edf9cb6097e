//! Asking the API, in process.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::extract::multipart::MultipartError;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::SocketAddr;
use tower::ServiceExt as _;

/// The header in which a session's changes say that they come from our own page.
pub(crate) const CSRF: &str = "switchyard-csrf";
/// What requests show that nobody has asked for just now.
const WATCHING: &str = "switchyard-watching";

/// What is read of an answer at most: a document with 10,000 accounts is some megabytes.
const LONGEST: usize = 256 << 20;

/// Everything but letters, digits and what a path or a query never reads as something else.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as one part of a path, or a value of a query.
pub(crate) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// A path with those parameters that have a value.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut whole = path.to_owned();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        whole.push(if whole.contains('?') { '&' } else { '?' });
        whole.push_str(name);
        whole.push('=');
        whole.push_str(&part(value));
    }
    whole
}

/// One thing that is wrong with a document, as the API says it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Misplaced {
    #[serde(default)]
    pub(crate) pointer: String,
    #[serde(default)]
    pub(crate) what: String,
    #[serde(default, deserialize_with = "in_words")]
    pub(crate) allowed: String,
}

/// What is allowed may be a text, or a list of them.
fn in_words<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        Value::Array(all) => all
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

/// The API's no.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    pub(crate) problems: Vec<Misplaced>,
    /// Seconds after which it may be tried again.
    pub(crate) retry_after: Option<String>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    problems: Vec<Misplaced>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), problems: Vec::new(), retry_after: None }
    }

    /// What the visitor has sent cannot be right.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    fn of(answer: &Answer) -> Self {
        let retry_after = answer.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (detail, problems) = match serde_json::from_slice(&answer.body) {
            Ok(Told { title, detail, problems }) => {
                (if detail.is_empty() { title } else { detail }, problems)
            }
            Err(_) => (String::from_utf8_lossy(&answer.body).into_owned(), Vec::new()),
        };
        Self { status: answer.status, detail, problems, retry_after }
    }
}

/// A form with files that cannot be read.
impl From<MultipartError> for Refusal {
    fn from(error: MultipartError) -> Self {
        Self::new(error.status(), error.body_text())
    }
}

/// The API's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Its body, read; nothing was said where a body is empty.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let body: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(body).map_err(|error| {
            tracing::error!(%error, "the API has answered the console with what it does not understand");
            let detail = format!("the console does not understand the API's answer: {error}");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        })
    }

    /// One of its headers.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Who asks: what the API needs to know of the visitor.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) api: Router,
    /// All of the visitor's cookies, as they came.
    pub(crate) cookies: Vec<HeaderValue>,
    pub(crate) address: Option<SocketAddr>,
    /// A page goes on showing what it shows, and nobody has asked for anything: the session is not used by that.
    pub(crate) watching: bool,
}

/// What is sent along with a request.
#[derive(Default)]
pub(crate) struct Sent<'a> {
    pub(crate) csrf: &'a str,
    pub(crate) body: Body,
    pub(crate) media_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl<'a> Sent<'a> {
    pub(crate) fn json(csrf: &'a str, body: &Value) -> Self {
        Self { csrf, body: body.to_string().into(), media_type: "application/json", headers: Vec::new() }
    }
}

impl Asker {
    /// Asks the API. Whatever is no success is a refusal.
    pub(crate) async fn ask(&self, method: Method, path: &str, sent: Sent<'_>) -> Result<Answer, Refusal> {
        let mut request = Request::builder().method(method).uri(path);
        for cookie in &self.cookies {
            request = request.header(header::COOKIE, cookie);
        }
        if self.watching {
            request = request.header(WATCHING, "1");
        }
        if !sent.csrf.is_empty() {
            request = request.header(CSRF, sent.csrf);
        }
        if !sent.media_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, sent.media_type);
        }
        for (name, value) in sent.headers {
            request = request.header(name, value);
        }
        if let Some(address) = self.address {
            request = request.extension(ConnectInfo(address));
        }
        let request = request
            .body(sent.body)
            .map_err(|error| Refusal::bad(format!("this cannot be asked: {error}")))?;
        let answered = match self.api.clone().oneshot(request).await {
            Ok(answered) => answered,
            Err(never) => match never {},
        };
        let (parts, body) = answered.into_parts();
        let body = axum::body::to_bytes(body, LONGEST).await.map_err(|error| {
            Refusal::new(StatusCode::BAD_GATEWAY, format!("the API's answer broke off: {error}"))
        })?;
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        if answer.status.is_success() { Ok(answer) } else { Err(Refusal::of(&answer)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_path_stays_one_part_of_it() {
        assert_eq!(part("a/b?c=d&e#f g"), "a%2Fb%3Fc%3Dd%26e%23f%20g");
        assert_eq!(part("../users"), "..%2Fusers");
        assert_eq!(with_query("/v1/x", &[("a", ""), ("b", "1 2"), ("c", "3")]), "/v1/x?b=1%202&c=3");
    }

    #[test]
    fn a_refusal_is_read_whatever_it_looks_like() {
        let answer = |body: &'static str| Answer {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        let told = Refusal::of(&answer(
            r#"{"title":"refused","status":422,"detail":"2 things","problems":[{"pointer":"/peer/0","what":"x","allowed":["a","b"]}]}"#,
        ));
        assert_eq!((told.detail.as_str(), told.problems[0].allowed.as_str()), ("2 things", "a, b"));
        assert_eq!(Refusal::of(&answer("gone fishing")).detail, "gone fishing");
        assert_eq!(Refusal::of(&answer(r#"{"title":"refused"}"#)).detail, "refused");
    }
}
