//! The assets of pages: a style sheet, scripts, a logo and a font.
//!
//! The font is Inter with weights of 400 to 700 and the characters of Western European languages, and digits of one width: a subset
//! of `inter-latin-wght-normal.woff2` of npm `@fontsource-variable/inter` 5.3.0 by PyPI `fonttools`
//! (`varLib.instancer … wght=400:700`, then the mapping of `tnum` in GSUB reduced to the digits, so that hyphens and parentheses in
//! texts keep their width, then `pyftsubset --layout-features=kern,tnum --no-hinting
//! --flavor=woff2`). Its license has to be in each copy.

use axum::http::header;
use axum::response::{IntoResponse, Response};

fn asset(media_type: &'static str, content: impl IntoResponse) -> Response {
    // Assets change only with the binary; browsers fetch them again within minutes.
    let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, content).into_response()
}

pub(crate) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("../assets/console.css"))
}

pub(crate) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/console.js"))
}

pub(crate) async fn document_editor() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/document-editor.js"))
}

pub(crate) async fn logo() -> Response {
    asset("image/svg+xml", include_str!("../assets/logo.svg"))
}

pub(crate) async fn font() -> Response {
    asset("font/woff2", include_bytes!("../assets/inter.woff2").as_slice())
}

pub(crate) async fn font_license() -> Response {
    asset("text/plain; charset=utf-8", include_str!("../assets/inter-LICENSE.txt"))
}
