//! Requests to the console, in the session of a role of the fake API.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use tower::ServiceExt as _;

pub(crate) struct PageResponse {
    pub(crate) status: StatusCode,
    pub(crate) location: String,
    pub(crate) cookies: Vec<String>,
    pub(crate) text: String,
}

/// Sends a request with the session of a role, and a form if it is not empty. Every page has its security headers.
pub(crate) async fn request(
    console: &Router,
    method: Method,
    path: &str,
    role: &str,
    form: &str,
) -> PageResponse {
    let cookies = format!("switchyard-session={role}");
    let mut request = Request::builder().method(method).uri(path);
    if !role.is_empty() {
        request = request.header(header::COOKIE, cookies);
    }
    if !form.is_empty() {
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    let answer = console.clone().oneshot(request.body(Body::from(form.to_owned())).unwrap()).await.unwrap();
    let header =
        |name: &str| answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    if header("content-type").starts_with("text/html") {
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
    }
    let (status, location) = (answer.status(), header("location"));
    let cookies = answer
        .headers()
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|one| one.to_str().unwrap().to_owned())
        .collect();
    let text = axum::body::to_bytes(answer.into_body(), 64 << 20).await.unwrap();
    PageResponse { status, location, cookies, text: String::from_utf8(text.to_vec()).unwrap() }
}

/// Gets a page.
pub(crate) async fn get(console: &Router, path: &str, role: &str) -> PageResponse {
    request(console, Method::GET, path, role, "").await
}

/// Sends a form with the CSRF token.
pub(crate) async fn post_form(console: &Router, path: &str, role: &str, form: &str) -> PageResponse {
    request(console, Method::POST, path, role, &format!("csrf=test%2Bcsrf%3D1&{form}")).await
}
