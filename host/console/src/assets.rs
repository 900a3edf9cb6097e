//! The assets of pages: a style sheet, scripts and a logo.

use axum::http::header;
use axum::response::{IntoResponse, Response};

fn asset(media_type: &'static str, text: &'static str) -> Response {
    // Assets change only with the binary; browsers fetch them again within minutes.
    let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, text).into_response()
}

pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../assets/console.css"))
}

pub(crate) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/console.js"))
}

pub(crate) async fn policy_editor() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/policy-editor.js"))
}

pub(crate) async fn logo() -> Response {
    asset("image/svg+xml", include_str!("../assets/logo.svg"))
}
