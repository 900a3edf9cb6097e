//! A fault of a plugin as a case for its author's `cases.toml`.

use crate::api_caller::{ApiError, encode_segment};
use crate::format::version_tag;
use crate::layout::{error_page, page};
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use api::FaultCase;
use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

/// The path of the page with a fault's case.
pub(crate) fn path(hook: &str, id: u64) -> String {
    format!("/plugins/{}/faults/{id}/case", encode_segment(hook))
}

async fn read(context: &RequestContext, hook: &str, id: u64) -> Result<FaultCase, ApiError> {
    context.get(&format!("/v1/hooks/{}/faults/{id}/case", encode_segment(hook))).await
}

pub(crate) async fn show(context: RequestContext, Path((hook, id)): Path<(String, u64)>) -> Response {
    let body = read(&context, &hook, id).await.map(|made| page_body(&hook, id, &made));
    page(&context, "Case of a fault", NavItem::Plugins, body)
}

/// The case as a file.
pub(crate) async fn download(
    context: RequestContext,
    headers: HeaderMap,
    Path((hook, id)): Path<(String, u64)>,
) -> Response {
    match read(&context, &hook, id).await {
        Ok(made) => {
            let attachment = [
                (header::CONTENT_TYPE, "application/toml"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"case.toml\""),
            ];
            (attachment, made.case).into_response()
        }
        Err(error) => error_page(&headers, &error),
    }
}

fn page_body(hook: &str, id: u64, made: &FaultCase) -> Markup {
    html! {
        h1 { "Case of a fault" }
        p.lead {
            "The question at which " (made.plugin) " " (version_tag(&made.version)) " failed, with its policy document, the time and the host's answers. Append it to " code { "cases.toml" } " of the plugin, and run " code { "switchyard plugin test" } "."
        }
        section.card {
            p { "The case contains unmasked numbers and the text of the message. `expect` is the fault: replace it with the answer that you want." }
            p { "On the command line: " code { "switchyard plugin case " (hook) " " (id) " --append cases.toml" } }
            pre tabindex="0" aria-label="The case" { (made.case.trim()) }
            p.actions {
                a.button href=(format!("{}.toml", path(hook, id))) download="case.toml" { "Download" }
                a href=(format!("/plugins/{}", encode_segment(hook))) { "Back to the hook" }
            }
        }
    }
}
