//! One GSM subscriber: where it is, what waits for it, and what an operator does to reach it.

use crate::ask::{Refusal, part, with_query};
use crate::form::Form;
use crate::live::Region;
use crate::pages::Asked;
use crate::shell::{Room, button, live_page, page};
use crate::table::facts;
use crate::visit::Visit;
use crate::words::{ago, moment, number, plural, sentence, state, text};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde_json::Value;

/// The search, for pages from which a subscriber is looked for.
pub(crate) fn search() -> Markup {
    html! {
        form.card.search method="get" action="/subscribers" role="search" aria-label="Subscribers" {
            p { label for="number" { "Number of a subscriber" } input #number name="number" type="search" placeholder="+4917…" inputmode="tel" maxlength="21" autocomplete="off"; }
            p { label for="imsi" { "Or its IMSI" } input #imsi name="imsi" type="search" inputmode="numeric" maxlength="15" autocomplete="off"; }
            p.do { button.primary type="submit" { "Show" } }
        }
    }
}

/// From the search to the page.
pub(crate) async fn find(visit: Visit, Query(query): Asked) -> Response {
    let query = Form::of(query);
    let (digits, imsi) = (query.text("number").trim_start_matches('+'), query.text("imsi"));
    let name = match (digits, imsi) {
        ("", "") => {
            let body = html! { h1 { "Subscribers" } (search()) };
            return page(&visit, "Subscribers", Room::Networks, Ok(body));
        }
        ("", imsi) => format!("imsi-{imsi}"),
        (digits, _) => format!("msisdn-{digits}"),
    };
    Redirect::to(&format!("/subscribers/{}", part(&name))).into_response()
}

async fn read(visit: &Visit, name: &str) -> Result<Value, Refusal> {
    visit.get(&format!("/v1/subscribers/{}", part(name))).await
}

pub(crate) async fn regions(visit: &Visit, name: &str) -> Result<Vec<Region>, Refusal> {
    let found = read(visit, name).await?;
    Ok(vec![("standing", standing(visit, &found, name))])
}

pub(crate) async fn show(visit: Visit, Path(name): Path<String>) -> Response {
    let body = match read(&visit, &name).await {
        // Links to here stand beside every number, and what is looked for need not be there.
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
            let body = html! {
                div.head {
                    h1 { "Subscriber" }
                    a.button.quiet href=(messages(&name)) { "Its messages" }
                }
                section.card { p { "No core network has this subscriber." } }
                (search())
            };
            return page(&visit, "Subscriber", Room::Networks, Ok(body));
        }
        body => body,
    };
    let body = body.map(|found| {
        html! {
            div.head {
                h1 { "Subscriber " (found["msisdn"].as_str().unwrap_or(text(&found, "imsi"))) }
                a.button.quiet href=(messages(&name)) { "Its messages" }
            }
            div #standing { (standing(&visit, &found, &name)) }
            (search())
        }
    });
    let live = format!("/live?of=subscriber&id={}", part(&name));
    live_page(&visit, "Subscriber", Room::Networks, Some(&live), body)
}

/// Where all messages of the subscriber are listed.
fn messages(name: &str) -> String {
    match name.split_once('-') {
        Some(("imsi", imsi)) => with_query("/messages", &[("imsi", imsi)]),
        Some((_, digits)) => with_query("/messages", &[("number", digits)]),
        None => "/messages".to_owned(),
    }
}

fn present_by(found: &Value) -> &str {
    match text(found, "present_by") {
        "location-update" => "location update",
        "message" => "it sent a message",
        "ready-for-sm" => "it is ready for short messages",
        "delivery" => "it took a message",
        other => other,
    }
}

/// A message, as a link to its page.
fn message(id: &str) -> Markup {
    html! { a href=(format!("/messages/{}", part(id))) { code { (id) } } }
}

fn standing(visit: &Visit, found: &Value, name: &str) -> Markup {
    let action = |act: &str| format!("/subscribers/{}/{act}", part(name));
    let (network, waiting) = (text(found, "network"), &found["waiting"]);
    let has_failed = matches!(text(found, "state"), "absent" | "full" | "parked");
    let is_connected = found["connected"].as_bool() == Some(true);
    html! {
        section.card {
            p.state {
                (state(text(found, "state")))
                @if let Some(reason) = found["reason"].as_str() { " " (sentence(reason)) }
            }
            (facts(&[
                ("Number", html! { (found["msisdn"].as_str().unwrap_or("not known")) }),
                ("IMSI", html! { (text(found, "imsi")) }),
                ("Core network", html! { a href="/networks" { (network) } }),
                ("MSC", html! {
                    @match found["msc"].as_str() {
                        Some(msc) => { (msc) @if !is_connected { " " span.muted { "(not connected)" } } }
                        None => { "not known" }
                    }
                }),
                ("Last present", match found["present_at"].as_u64() {
                    Some(at) => html! { (moment(at)) " " span.muted { (ago(at)) ", " (present_by(found)) } },
                    None => html! { "not since the daemon's start" },
                }),
                ("Next try", match found["next_try"].as_u64() {
                    Some(at) => html! { (moment(at)) " " span.muted { "or when the handset shows that it is there" } },
                    None => html! { "—" },
                }),
                ("Message on its way, or failed", match found["message"].as_str() {
                    Some(id) => message(id),
                    None => html! { "—" },
                }),
                ("Waiting", html! {
                    (plural(number(waiting, "count"), "message", "messages"))
                    @if let Some(oldest) = waiting["oldest"].as_str() { ", the oldest " (message(oldest)) " " span.muted { (ago(number(waiting, "oldest_at"))) } }
                }),
            ]))
            @if visit.may("operate") {
                div.do {
                    @if has_failed { (button(visit, &action("wake"), "Try its messages now", "primary", &[])) }
                    (button(visit, &action("ping"), "Send a silent short message", "", &[]))
                }
                p.muted { "The handset acknowledges a silent short message and shows nothing. Behind a message that has failed it waits as others do." }
            }
        }
    }
}

pub(crate) async fn act(visit: Visit, Path((name, act)): Path<(String, String)>, form: Form) -> Response {
    let path = format!("/v1/subscribers/{}", part(&name));
    let asked = match act.as_str() {
        "wake" => visit
            .send(Method::POST, &format!("{path}/wake"), &form, None)
            .await
            .map(|_| Visit::to(&format!("/subscribers/{}", part(&name)), "woken")),
        "ping" => visit
            .send(Method::POST, &format!("{path}/silent-sms"), &form, None)
            .await
            .and_then(|answer| answer.read::<Value>())
            .map(|told| Visit::to(&format!("/messages/{}", part(text(&told, "id"))), "pinged")),
        _ => Err(Refusal::new(StatusCode::NOT_FOUND, "That cannot be done to a subscriber.")),
    };
    match asked {
        Ok(done) => done,
        Err(refusal) => page(&visit, "Subscriber", Room::Networks, Err(refusal)),
    }
}
