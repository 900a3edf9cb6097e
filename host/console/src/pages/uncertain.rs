//! Messages that were written to a peer and never answered.

use crate::ask::{Refusal, part, with_query};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, csrf, page, trouble};
use crate::table::{more, table};
use crate::visit::Visit;
use crate::words::{ago, number, text, time_of};
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    draw(&visit, &Form::of(query), None).await
}

async fn draw(visit: &Visit, query: &Form, refusal: Option<&Refusal>) -> Response {
    let (peer, after) = (query.text("peer"), query.text("after"));
    let path = with_query("/v1/uncertain", &[("peer", peer), ("limit", "100"), ("after", after)]);
    let body = visit.get::<Value>(&path).await.map(|found| parts(visit, &found, peer, refusal));
    let mut response = page(visit, "Uncertain messages", Room::Queues, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

fn parts(visit: &Visit, found: &Value, peer: &str, refusal: Option<&Refusal>) -> Markup {
    let messages = found["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let empty = html! { h2 { "No message is uncertain" } p { "What was written to a peer was answered." } };
    let next = found["next"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| found["next"].as_u64().map(|next| next.to_string()));
    html! {
        h1 { "Uncertain messages" }
        p.lead { "They were written to a peer and never answered. The peer may have them or not: sent again, some may arrive twice; given up, some may not arrive." }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        form.card.search method="get" action="/uncertain" role="search" aria-label="Uncertain messages" {
            p { label for="peer" { "Peer" } input #peer name="peer" value=(peer) autocomplete="off"; }
            p.do { button type="submit" { "Filter" } }
        }
        section.card { (list(messages, &empty)) }
        @if let Some(next) = &next { (more("/uncertain", &[("peer", peer), ("after", next)])) }
        @if visit.may("operate") && !messages.is_empty() {
            section.card {
                h2 { "Decide" }
                form.fields method="post" action="/uncertain" {
                    (csrf(visit))
                    input type="hidden" name="peer" value=(peer);
                    @for message in messages { input type="hidden" name="id" value=(text(message, "id")); }
                    p.wide {
                        label for="whose" { "About" }
                        select #whose name="whose" {
                            option value="listed" { @if messages.len() == 1 { "the one that is listed here" } @else { "the " (messages.len()) " that are listed here" } }
                            @if !peer.is_empty() { option value="peer" { "all of peer " (peer) } }
                        }
                    }
                    p.do {
                        button.primary type="submit" name="do" value="send-again" { "Send them again" }
                        button.danger type="submit" name="do" value="give-up" { "Give them up" }
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
            html! { a href=(format!("/messages/{}", part(id))) { code { (id) } } },
            html! { (text(one, "peer")) },
            html! { (text(one, "account")) },
            html! { (text(one, "source")) },
            html! { (text(one, "destination")) },
            time_of(&one["at"]),
            html! { (one["since"].as_u64().map_or_else(|| "—".to_owned(), ago)) },
            html! { (number(one, "attempts")) },
        ]
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    let heads = &["Message", "Peer", "Account", "From", "To", "Accepted", "Uncertain since", "Attempts"];
    table("Uncertain messages, oldest first", heads, &rows, empty)
}

pub(crate) async fn settle(visit: Visit, form: Form) -> Response {
    let remedy = form.text("do");
    let wish = match form.text("whose") {
        "peer" => json!({ "remedy": remedy, "peer": form.text("peer") }),
        _ => json!({ "remedy": remedy, "ids": form.all("id") }),
    };
    match visit.send(Method::POST, "/v1/uncertain/settle", &form, Some(&wish)).await {
        Ok(_) => {
            let place = with_query("/uncertain", &[("peer", form.text("peer"))]);
            Visit::to(&place, if remedy == "give-up" { "given-up" } else { "sent-again" })
        }
        Err(refusal) => draw(&visit, &form, Some(&refusal)).await,
    }
}
