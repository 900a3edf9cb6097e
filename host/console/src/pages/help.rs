//! The manual: its contents, and one page.

use crate::api_caller::ApiError;
use crate::layout::page;
use crate::manual;
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

pub(crate) async fn contents(context: RequestContext) -> Response {
    let body = html! {
        h1 { "Help" }
        p.lead { "The manual of this version." }
        @for (title, pages) in manual::contents() {
            section.card {
                h2 { (title) }
                ul { @for (title, path) in pages { li { a href=(path) { (title) } } } }
            }
        }
    };
    page(&context, "Help", NavItem::Help, Ok(body))
}

pub(crate) async fn show(context: RequestContext, Path(path): Path<String>) -> Response {
    let Some(found) = manual::find(&path) else {
        let error = ApiError::new(StatusCode::NOT_FOUND, "The manual has no such page.");
        return page(&context, "Help", NavItem::Help, Err(error));
    };
    let body = html! {
        p { a href="/help" { "All pages" } }
        div.manual { (manual::render(found)) }
    };
    page(&context, manual::title(found.1), NavItem::Help, Ok(body))
}
