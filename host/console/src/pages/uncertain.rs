//! Messages that were written to a peer and never answered.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{ago, time_tag};
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{next_page_link, table};
use api::{Permission, SettleUncertainRequest, UncertainPageView, UncertainRemedy, UncertainView};
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &Form::of(query), None).await
}

async fn render(context: &RequestContext, query: &Form, error: Option<&ApiError>) -> Response {
    let (peer, after) = (query.text("peer"), query.text("after"));
    let path = with_query("/v1/uncertain", &[("peer", peer), ("limit", "100"), ("after", after)]);
    let body =
        context.get::<UncertainPageView>(&path).await.map(|found| page_body(context, &found, peer, error));
    let mut response = page(context, "Uncertain messages", NavItem::Queues, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

fn page_body(
    context: &RequestContext,
    found: &UncertainPageView,
    peer: &str,
    error: Option<&ApiError>,
) -> Markup {
    let messages = &found.messages;
    let empty =
        html! { h2 { "No message is uncertain" } p { "Peers have responded to all submitted messages." } };
    html! {
        h1 { "Uncertain messages" }
        p.lead { "These messages were submitted to a peer that did not respond. The peer may have received them: if you send them again, some may arrive twice; if you give them up, some may not arrive." }
        @if let Some(error) = error { (error_notice(error)) }
        form.card.search method="get" action="/uncertain" role="search" aria-label="Uncertain messages" {
            p { label for="peer" { "Peer" } input #peer name="peer" value=(peer) autocomplete="off"; }
            p.actions { button type="submit" { "Filter" } }
        }
        section.card { (list(messages, &empty)) }
        @if let Some(next) = &found.next { (next_page_link("/uncertain", &[("peer", peer), ("after", next)])) }
        @if context.has_permission(Permission::Operate) && !messages.is_empty() {
            section.card {
                h2 { "Settle" }
                form.fields method="post" action="/uncertain" {
                    (csrf_field(context))
                    input type="hidden" name="peer" value=(peer);
                    @for message in messages { input type="hidden" name="id" value=(message.id); }
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

fn list(messages: &[UncertainView], empty: &Markup) -> Markup {
    let row = |one: &UncertainView| {
        vec![
            html! { a href=(format!("/messages/{}", encode_segment(&one.id))) { code { (one.id) } } },
            html! { (one.peer) },
            html! { (one.account) },
            html! { (one.source) },
            html! { (one.destination) },
            time_tag(one.at),
            html! { (one.since.map_or_else(|| "—".to_owned(), ago)) },
            html! { (one.attempts) },
        ]
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    let heads = &["Message", "Peer", "Account", "From", "To", "Accepted", "Uncertain since", "Attempts"];
    table("Uncertain messages, oldest first", heads, &rows, empty)
}

pub(crate) async fn settle(context: RequestContext, form: Form) -> Response {
    let (remedy, done) = match form.text("do") {
        "send-again" => (UncertainRemedy::SendAgain, "sent-again"),
        "give-up" => (UncertainRemedy::GiveUp, "given-up"),
        _ => {
            let error =
                ApiError::bad_request("Choose whether to send the messages again or to give them up.");
            return render(&context, &form, Some(&error)).await;
        }
    };
    let request = match form.text("whose") {
        "peer" => SettleUncertainRequest { remedy, peer: Some(form.text("peer").to_owned()), ids: None },
        _ => {
            let ids = form.all("id").into_iter().map(str::to_owned).collect();
            SettleUncertainRequest { remedy, peer: None, ids: Some(ids) }
        }
    };
    match context.send_json(Method::POST, "/v1/uncertain/settle", &form, &request).await {
        Ok(_) => {
            let path = with_query("/uncertain", &[("peer", form.text("peer"))]);
            RequestContext::redirect(&path, done)
        }
        Err(error) => render(&context, &form, Some(&error)).await,
    }
}
