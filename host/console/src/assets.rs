//! What pages refer to: a style sheet, a script and a sign, all from here.

use axum::http::header;
use axum::response::{IntoResponse, Response};

fn asset(media_type: &'static str, text: &'static str) -> Response {
    // They change with the binary only; a visitor has them anew within minutes.
    let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, text).into_response()
}

pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../assets/console.css"))
}

pub(crate) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/console.js"))
}

pub(crate) async fn sign() -> Response {
    asset("image/svg+xml", include_str!("../assets/sign.svg"))
}
