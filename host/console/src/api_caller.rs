//! Calls the API in process.

use api::{FieldProblem, Problem};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::extract::multipart::MultipartError;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use tower::ServiceExt as _;

/// The header with the CSRF token of a session.
pub(crate) const CSRF: &str = "switchyard-csrf";
/// The header of requests from live updates: they do not extend the session.
const LIVE_HEADER: &str = "switchyard-watching";

/// The maximum length of a response, in octets: a document with 10,000 accounts is some megabytes.
const MAX_RESPONSE_LENGTH: usize = 256 << 20;

/// The characters that are percent-encoded.
const SEGMENT_CHARS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes a text as a path segment or a query value.
pub(crate) fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT_CHARS).to_string()
}

/// A path with query parameters; parameters without a value are left out.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut path_and_query = path.to_owned();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        path_and_query.push(if path_and_query.contains('?') { '&' } else { '?' });
        path_and_query.push_str(name);
        path_and_query.push('=');
        path_and_query.push_str(&encode_segment(value));
    }
    path_and_query
}

/// An error response of the API.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    pub(crate) problems: Vec<FieldProblem>,
    /// The seconds after which the request can be retried.
    pub(crate) retry_after: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), problems: Vec::new(), retry_after: None }
    }

    /// A form that is not valid.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    fn from_response(answer: &ApiResponse) -> Self {
        let retry_after = answer.headers.get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (detail, problems) = match serde_json::from_slice(&answer.body) {
            Ok(Problem { detail, problems, .. }) => (detail, problems),
            Err(_) => (String::from_utf8_lossy(&answer.body).into_owned(), Vec::new()),
        };
        Self { status: answer.status, detail, problems, retry_after }
    }
}

/// A multipart form that cannot be read.
impl From<MultipartError> for ApiError {
    fn from(error: MultipartError) -> Self {
        Self::new(error.status(), error.body_text())
    }
}

/// A response of the API.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ApiResponse {
    /// Parses the body; an empty body is null.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let body: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(body).map_err(|error| {
            tracing::error!(%error, "the console cannot parse an answer of the API");
            let detail = format!("the console cannot parse the API's answer: {error}");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        })
    }
}

/// Parts of the API that are about the node itself, or about what all partitions share.
const PARTITION_INDEPENDENT: [&str; 14] = [
    "appliance",
    "audit",
    "backup",
    "cluster",
    "configuration",
    "hooks",
    "log",
    "plugins",
    "replays",
    "sessions",
    "tables",
    "tokens",
    "users",
    "whoami",
];

/// Whether the answer to a request depends on the partition. The id of a message names its partition.
fn depends_on_partition(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let mut segments = path.trim_start_matches("/v1/").split('/');
    let area = segments.next().unwrap_or_default();
    let is_message = area == "messages" && segments.next().is_some();
    !is_message && !PARTITION_INDEPENDENT.contains(&area)
}

/// Calls the API with the cookies and the address of a user.
#[derive(Clone)]
pub(crate) struct ApiCaller {
    pub(crate) api: Router,
    /// All cookies of the request.
    pub(crate) cookies: Vec<HeaderValue>,
    pub(crate) address: Option<SocketAddr>,
    /// Whether this is a live update: it does not extend the session.
    pub(crate) is_live_update: bool,
    /// The partition that the user has chosen; `None`: that of the node.
    pub(crate) partition: Option<u8>,
}

/// The body and headers of a request.
#[derive(Default)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) csrf: &'a str,
    pub(crate) body: Body,
    pub(crate) media_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl<'a> ApiRequest<'a> {
    pub(crate) fn json(csrf: &'a str, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { csrf, body: body.into(), media_type: "application/json", headers: Vec::new() }
    }
}

impl ApiCaller {
    /// Calls the API. A response without a success status is an error.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        api_request: ApiRequest<'_>,
    ) -> Result<ApiResponse, ApiError> {
        let mut request = Request::builder().method(method).uri(path);
        for cookie in &self.cookies {
            request = request.header(header::COOKIE, cookie);
        }
        if self.is_live_update {
            request = request.header(LIVE_HEADER, "1");
        }
        if let Some(partition) = self.partition.filter(|_| depends_on_partition(path)) {
            request = request.header("partition", u16::from(partition));
        }
        if !api_request.csrf.is_empty() {
            request = request.header(CSRF, api_request.csrf);
        }
        if !api_request.media_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, api_request.media_type);
        }
        for (name, value) in api_request.headers {
            request = request.header(name, value);
        }
        if let Some(address) = self.address {
            request = request.extension(ConnectInfo(address));
        }
        let request = request
            .body(api_request.body)
            .map_err(|error| ApiError::bad_request(format!("the request is not valid: {error}")))?;
        let response = match self.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, MAX_RESPONSE_LENGTH).await.map_err(|error| {
            ApiError::new(StatusCode::BAD_GATEWAY, format!("the API's answer is incomplete: {error}"))
        })?;
        let answer = ApiResponse { status: parts.status, headers: parts.headers, body };
        if answer.status.is_success() { Ok(answer) } else { Err(ApiError::from_response(&answer)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_segments_are_encoded() {
        assert_eq!(encode_segment("a/b?c=d&e#f g"), "a%2Fb%3Fc%3Dd%26e%23f%20g");
        assert_eq!(encode_segment("../users"), "..%2Fusers");
        assert_eq!(with_query("/v1/x", &[("a", ""), ("b", "1 2"), ("c", "3")]), "/v1/x?b=1%202&c=3");
    }

    #[test]
    fn shared_parts_of_the_api_do_not_depend_on_the_partition() {
        for path in ["/v1/queues", "/v1/messages?limit=5", "/v1/messages", "/v1/pools/a", "/v1/status"] {
            assert!(depends_on_partition(path), "{path}");
        }
        for path in
            ["/v1/messages/1000000001?body=true", "/v1/whoami", "/v1/hooks/router/activate", "/v1/users?x=1"]
        {
            assert!(!depends_on_partition(path), "{path}");
        }
    }

    #[test]
    fn any_error_response_is_parsed() {
        let answer = |body: &'static str| ApiResponse {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        let error = ApiError::from_response(&answer(
            r#"{"title":"refused","status":422,"detail":"2 things","problems":[{"pointer":"/peer/0","what":"x","allowed":"a, b"}]}"#,
        ));
        assert_eq!((error.detail.as_str(), error.problems[0].allowed.as_deref()), ("2 things", Some("a, b")));
        assert_eq!(ApiError::from_response(&answer("gone fishing")).detail, "gone fishing");
    }
}
