//! Messages that were written to a peer and never answered.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{ago, number, text, time_value};
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{next_page_link, table};
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &Form::of(query), None).await
}

async fn render(context: &RequestContext, query: &Form, error: Option<&ApiError>) -> Response {
    let (peer, after) = (query.text("peer"), query.text("after"));
    let path = with_query("/v1/uncertain", &[("peer", peer), ("limit", "100"), ("after", after)]);
    let body = context.get::<Value>(&path).await.map(|found| page_body(context, &found, peer, error));
    let mut response = page(context, "Uncertain messages", NavItem::Queues, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

fn page_body(context: &RequestContext, found: &Value, peer: &str, error: Option<&ApiError>) -> Markup {
    let messages = found["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let empty = html! { h2 { "No message is uncertain" } p { "All submitted messages were answered." } };
    let next = found["next"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| found["next"].as_u64().map(|next| next.to_string()));
    html! {
        h1 { "Uncertain messages" }
        p.lead { "These messages were submitted to a peer and never answered. The peer may have received them: if you send them again, some may arrive twice; if you give them up, some may not arrive." }
        @if let Some(error) = error { (error_notice(error)) }
        form.card.search method="get" action="/uncertain" role="search" aria-label="Uncertain messages" {
            p { label for="peer" { "Peer" } input #peer name="peer" value=(peer) autocomplete="off"; }
            p.actions { button type="submit" { "Filter" } }
        }
        section.card { (list(messages, &empty)) }
        @if let Some(next) = &next { (next_page_link("/uncertain", &[("peer", peer), ("after", next)])) }
        @if context.has_permission("operate") && !messages.is_empty() {
            section.card {
                h2 { "Settle" }
                form.fields method="post" action="/uncertain" {
                    (csrf_field(context))
                    input type="hidden" name="peer" value=(peer);
                    @for message in messages { input type="hidden" name="id" value=(text(message, "id")); }
                    p.wide {
                        label for="whose" { "Messages" }
                        select #whose name="whose" {
                            option value="listed" { @if messages.len() == 1 { "the one listed here" } @else { "the " (messages.len()) " listed here" } }
                            @if !peer.is_empty() { option value="peer" { "all of peer " (peer) } }
                        }
                    }
                    p.actions {
                        button.primary type="submit" name="do" value="send-again" { "Send again" }
                        button.danger type="submit" name="do" value="give-up" { "Give up" }
                    }
                }
            }
        }
    }
}

fn list(messages: &[Value], empty: &Markup) -> Markup {
    let row = |one: &Value| {
        let id = text(one, "id");
        vec![
            html! { a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } },
            html! { (text(one, "peer")) },
            html! { (text(one, "account")) },
            html! { (text(one, "source")) },
            html! { (text(one, "destination")) },
            time_value(&one["at"]),
            html! { (one["since"].as_u64().map_or_else(|| "—".to_owned(), ago)) },
            html! { (number(one, "attempts")) },
        ]
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    let heads = &["Message", "Peer", "Account", "From", "To", "Accepted", "Uncertain since", "Attempts"];
    table("Uncertain messages, oldest first", heads, &rows, empty)
}

pub(crate) async fn settle(context: RequestContext, form: Form) -> Response {
    let remedy = form.text("do");
    let request = match form.text("whose") {
        "peer" => json!({ "remedy": remedy, "peer": form.text("peer") }),
        _ => json!({ "remedy": remedy, "ids": form.all("id") }),
    };
    match context.send(Method::POST, "/v1/uncertain/settle", &form, Some(&request)).await {
        Ok(_) => {
            let path = with_query("/uncertain", &[("peer", form.text("peer"))]);
            RequestContext::redirect(&path, if remedy == "give-up" { "given-up" } else { "sent-again" })
        }
        Err(error) => render(&context, &form, Some(&error)).await,
    }
}
