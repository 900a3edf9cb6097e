//! A fake of the admin API, for tests of its clients.
//!
//! It answers with prepared responses; as a fake appliance, also with that appliance's contents. All answers are built
//! from the types of the API and are checked against the API document.

mod appliance;
pub mod fixtures;

use crate::api_document::{fixture, media_type};
use admin::{Problem, ProblemKind};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use appliance::CSRF;

/// The maximum length of a request and of a checked answer, in octets.
const MAX_BODY: usize = 64 << 20;

/// A request that the API received.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// Method and path.
    pub line: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

#[derive(Debug, Clone)]
struct PreparedAnswer {
    request_line: String,
    status: u16,
    /// The content type; `None` without a body.
    media_type: Option<String>,
    body: Bytes,
    /// The connection is closed after this many octets of the body.
    cut: Option<usize>,
}

#[derive(Debug, Default)]
struct FakeApiState {
    answers: Mutex<Vec<PreparedAnswer>>,
    requests: Mutex<Vec<RecordedRequest>>,
    /// The requests whose answers were checked: method, path and status.
    checked: Mutex<HashSet<String>>,
}

/// The fake API. Without prepared answers, it answers everything with 404.
#[derive(Debug, Default, Clone)]
pub struct FakeApi {
    state: Arc<FakeApiState>,
    /// The numbers of peers and accounts of the appliance.
    appliance: Option<(usize, usize)>,
}

#[allow(clippy::panic, clippy::expect_used, reason = "a wrong fixture is a wrong test")]
impl FakeApi {
    /// The API of an appliance with this number of peers and accounts.
    ///
    /// A client logs in with the token `test-token`, or as `admin`, `operator`, `viewer` or `account` with `password`. A bearer
    /// token is the root token.
    #[must_use]
    pub fn appliance(peers: usize, accounts: usize) -> Self {
        Self { state: Arc::default(), appliance: Some((peers, accounts)) }
    }

    /// Prepares a JSON answer to `METHOD PATH`, null for one without a body. Several answers to one request are sent in order; the
    /// last one repeats.
    ///
    /// # Panics
    /// If the answer does not conform to the API document.
    #[must_use]
    #[track_caller]
    pub fn with(self, request_line: &str, status: u16, body: &impl Serialize) -> Self {
        let (method, path) = method_and_path(request_line);
        let body = serde_json::to_value(body).expect("an answer is JSON");
        let body = fixture(method, path, status, body);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.push(request_line, status, body, None)
    }

    /// Prepares a refusal.
    ///
    /// # Panics
    /// As [`FakeApi::with`].
    #[must_use]
    #[track_caller]
    pub fn refusing(self, request_line: &str, problem: &Problem) -> Self {
        self.with(request_line, problem.status, problem)
    }

    /// Prepares a file as an answer. With `cut`, the connection is closed after this many octets of it.
    ///
    /// # Panics
    /// If the operation does not answer a file.
    #[must_use]
    #[track_caller]
    pub fn with_file(self, request_line: &str, body: Vec<u8>, cut: Option<usize>) -> Self {
        let (method, path) = method_and_path(request_line);
        let kind = media_type(method, path, 200).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(kind.is_some_and(|kind| !kind.contains("json")), "{request_line} does not answer a file");
        self.push(request_line, 200, body, cut)
    }

    #[track_caller]
    fn push(self, request_line: &str, status: u16, body: Vec<u8>, cut: Option<usize>) -> Self {
        let (method, path) = method_and_path(request_line);
        self.state.answers.lock().push(PreparedAnswer {
            request_line: request_line.to_owned(),
            status,
            media_type: media_type(method, path, status).unwrap_or_else(|error| panic!("{error:#}")),
            body: body.into(),
            cut,
        });
        self
    }

    /// The received requests, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.requests.lock().clone()
    }

    /// The routes, for a client in the same process.
    pub fn router(&self) -> Router {
        let routes =
            self.appliance.map_or_else(Router::new, |(peers, accounts)| appliance::routes(peers, accounts));
        routes
            .fallback(|| async { Problem::new(ProblemKind::NotFound, "no such path") })
            .layer(middleware::from_fn_with_state(self.state.clone(), check_answer))
            .layer(middleware::from_fn_with_state(self.state.clone(), answer_prepared))
    }

    /// Starts a server, which runs until the process ends; returns its URL.
    ///
    /// # Panics
    /// If the server cannot be started.
    #[must_use]
    pub fn start(&self) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener.local_addr().expect("a bound address");
        let router = self.router();
        std::thread::spawn(move || -> io::Result<()> {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener)?, router).await })
        });
        format!("http://{address}")
    }
}

#[track_caller]
#[allow(clippy::expect_used, reason = "a wrong fixture is a wrong test")]
fn method_and_path(request_line: &str) -> (&str, &str) {
    request_line.split_once(' ').expect("a request line is `METHOD PATH`")
}

/// Records a request and returns its prepared answer, if there is one.
async fn answer_prepared(State(api): State<Arc<FakeApiState>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY).await else { return StatusCode::BAD_REQUEST.into_response() };
    let line = format!("{} {}", parts.method, parts.uri);
    let headers = parts.headers.iter();
    let headers = headers
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    api.requests.lock().push(RecordedRequest {
        line: line.clone(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    let prepared = take_answer(&mut api.answers.lock(), &line);
    if let Some(answer) = prepared {
        return answer.into_response();
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}

/// The next answer to a request. The last one stays.
fn take_answer(answers: &mut Vec<PreparedAnswer>, line: &str) -> Option<PreparedAnswer> {
    let fits = |answer: &PreparedAnswer| answer.request_line == line;
    let first = answers.iter().position(fits)?;
    let is_last = answers.iter().filter(|answer| fits(answer)).count() == 1;
    Some(if is_last { answers.get(first)?.clone() } else { answers.remove(first) })
}

impl IntoResponse for PreparedAnswer {
    fn into_response(self) -> Response {
        let length = self.body.len();
        let mut answer = match self.cut {
            None => Body::from(self.body).into_response(),
            Some(cut) => {
                let begun = self.body.slice(..cut.min(length));
                let begun = stream::iter([Ok::<_, io::Error>(begun)]);
                // The server sends the octets up to here, then the connection breaks.
                let broken = stream::once(async {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Err(io::ErrorKind::ConnectionAborted.into())
                });
                let body = Body::from_stream(begun.chain(broken));
                ([(header::CONTENT_LENGTH, length)], body).into_response()
            }
        };
        *answer.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        if let Some(media_type) = self.media_type.and_then(|media_type| media_type.parse().ok()) {
            answer.headers_mut().insert(header::CONTENT_TYPE, media_type);
        }
        answer
    }
}

/// Checks the answers of the appliance against the API document: the first one to each request, because lists are long and clients
/// ask often.
///
/// # Panics
/// If an answer does not conform.
async fn check_answer(State(api): State<Arc<FakeApiState>>, request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().to_string());
    let response = next.run(request).await;
    let status = response.status().as_u16();
    if !api.checked.lock().insert(format!("{method} {uri} {status}")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let content = serde_json::from_slice(&body).unwrap_or_default();
    let _ = fixture(method.as_str(), &uri, status, content);
    Response::from_parts(parts, Body::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    #[should_panic(expected = "/skipped: is missing")]
    fn an_answer_that_does_not_conform_fails_the_test() {
        let _ = FakeApi::default().with("POST /v1/uncertain/settle", 200, &json!({ "settled": 1 }));
    }
}
