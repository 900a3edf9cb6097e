//! Messages that a screen has put into quarantine.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::time_tag;
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{next_page_link, table};
use api::{Permission, QuarantinePageView, QuarantineSelection, QuarantinedView};
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &Form::of(query), None).await
}

async fn render(context: &RequestContext, query: &Form, error: Option<&ApiError>) -> Response {
    let (origin, after) = (query.text("origin"), query.text("after"));
    let path = with_query("/v1/quarantine", &[("origin", origin), ("limit", "100"), ("after", after)]);
    let body =
        context.get::<QuarantinePageView>(&path).await.map(|found| page_body(context, &found, origin, error));
    let mut response = page(context, "Quarantine", NavItem::Quarantine, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

fn page_body(
    context: &RequestContext,
    found: &QuarantinePageView,
    origin: &str,
    error: Option<&ApiError>,
) -> Markup {
    let messages = &found.messages;
    let empty = html! { h2 { "No message is in quarantine" } p { "Screens keep messages here until an admin releases or purges them." } };
    html! {
        h1 { "Quarantine" }
        p.lead { "These messages were accepted, and a screen keeps them. If you release them, they are routed; if you purge them, they end as rejected. Otherwise they expire with their validity." }
        @if let Some(error) = error { (error_notice(error)) }
        form.card.search method="get" action="/quarantine" role="search" aria-label="Messages in quarantine" {
            p { label for="origin" { "Account or peer" } input #origin name="origin" value=(origin) autocomplete="off"; }
            p.actions { button type="submit" { "Filter" } }
        }
        section.card { (list(messages, &empty)) }
        @if let Some(next) = &found.next { (next_page_link("/quarantine", &[("origin", origin), ("after", next)])) }
        @if context.has_permission(Permission::Operate) && !messages.is_empty() {
            section.card {
                h2 { "Release or purge" }
                form.fields method="post" action="/quarantine" {
                    (csrf_field(context))
                    input type="hidden" name="origin" value=(origin);
                    @for message in messages { input type="hidden" name="id" value=(message.id); }
                    p.wide {
                        label for="whose" { "Messages" }
                        select #whose name="whose" {
                            option value="listed" { @if messages.len() == 1 { "the one listed here" } @else { "the " (messages.len()) " listed here" } }
                            @if !origin.is_empty() { option value="origin" { "all of " (origin) } }
                        }
                    }
                    p.actions {
                        button.primary type="submit" name="do" value="release" { "Release" }
                        button.danger type="submit" name="do" value="purge" { "Purge" }
                    }
                }
            }
        }
    }
}

fn list(messages: &[QuarantinedView], empty: &Markup) -> Markup {
    let row = |one: &QuarantinedView| {
        vec![
            html! { a href=(format!("/messages/{}", encode_segment(&one.id))) { code { (one.id) } } },
            html! { (one.origin) },
            html! { (one.source) },
            html! { (one.destination) },
            time_tag(one.at),
            time_tag(one.until),
            html! { (one.by) @if let Some(note) = &one.note { ": " (note) } },
        ]
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    let heads = &["Message", "From account", "From", "To", "Accepted", "Expires", "Screen"];
    table("Messages in quarantine, oldest first", heads, &rows, empty)
}

pub(crate) async fn decide(context: RequestContext, form: Form) -> Response {
    let (path, done) = match form.text("do") {
        "release" => ("/v1/quarantine/release", "released"),
        "purge" => ("/v1/quarantine/purge", "purged"),
        _ => {
            let error = ApiError::bad_request("Choose whether to release the messages or to purge them.");
            return render(&context, &form, Some(&error)).await;
        }
    };
    let selection = match form.text("whose") {
        "origin" => QuarantineSelection { origin: Some(form.text("origin").to_owned()), ids: None },
        _ => {
            let ids = form.all("id").into_iter().map(str::to_owned).collect();
            QuarantineSelection { origin: None, ids: Some(ids) }
        }
    };
    match context.send_json(Method::POST, path, &form, &selection).await {
        Ok(_) => {
            RequestContext::redirect(&with_query("/quarantine", &[("origin", form.text("origin"))]), done)
        }
        Err(error) => render(&context, &form, Some(&error)).await,
    }
}
