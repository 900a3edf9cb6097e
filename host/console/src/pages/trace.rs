//! All that is known of one message.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::live::Region;
use crate::pages::Asked;
use crate::shell::{Room, button, live_page, page};
use crate::table::facts;
use crate::visit::Visit;
use crate::words::{ago, exact, moment, money, number, plural, sentence, span, state, text, version};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

async fn read(visit: &Visit, id: &str, body: bool) -> Result<Value, Refusal> {
    let query = if body { "?body=1" } else { "" };
    visit.get(&format!("/v1/messages/{}{query}", part(id))).await
}

pub(crate) async fn regions(visit: &Visit, id: &str) -> Result<Vec<Region>, Refusal> {
    let trace = read(visit, id, false).await?;
    Ok(vec![("standing", standing(visit, &trace, false)), ("steps", steps(&trace))])
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>, Query(query): Asked) -> Response {
    let with_body = Form::of(query).text("body") == "1";
    let read = read(&visit, &id, with_body).await;
    // A text is read once, and not every two seconds; and what has ended stays as it is.
    let is_live = read.as_ref().is_ok_and(|trace| !with_body && trace["finished"].as_bool() != Some(true));
    let live = is_live.then(|| format!("/live?of=message&id={}", part(&id)));
    let body = read.map(|trace| {
        html! {
            div.head { h1 { "Message " code { (text(&trace, "id")) } } }
            div #standing { (standing(&visit, &trace, with_body)) }
            section.card {
                h2 { "Text" }
                (words(&visit, &trace, &id))
            }
            div.pair {
                section.card { h2 { "What happened to it" } div #steps { (steps(&trace)) } }
                div { (why_here(&trace)) (price(&trace)) }
            }
        }
    });
    live_page(&visit, &format!("Message {id}"), Room::Messages, live.as_deref(), body)
}

fn words(visit: &Visit, trace: &Value, id: &str) -> Markup {
    html! {
        @match trace["body"].as_str() {
            Some(words) => {
                blockquote.words { (words) }
                p.muted { "That you have read it is written down." }
            }
            None if visit.reads_bodies() => {
                p { (plural(number(trace, "length"), "octet", "octets")) ", not shown. " a.button href=(format!("/messages/{}?body=1", part(id))) { "Show the text and the whole number" } }
                p.muted { "That you read it is written down." }
            }
            None => { p { (plural(number(trace, "length"), "octet", "octets")) ". Texts are not shown to you." } }
        }
    }
}

fn standing(visit: &Visit, trace: &Value, with_body: bool) -> Markup {
    let id = text(trace, "id");
    let action = |act: &str| format!("/messages/{}/{act}", part(id));
    let is_open = trace["finished"].as_bool() != Some(true);
    let word = text(trace, "state");
    html! {
        section.card {
            p.state {
                (state(word))
                @if let Some(why) = trace["why_late"].as_str() { " " (sentence(why)) }
            }
            (facts(&[
                ("From", html! { (text(trace, "source")) }),
                ("To", html! { (text(trace, "destination")) @if !with_body && text(trace, "destination").contains('*') { " " span.muted { "(masked)" } } @else if visit.may("read") { " " (subscriber(text(trace, "destination"))) } }),
                ("Submitted by", html! { (text(trace, "origin")) }),
                ("Accepted", html! { (exact(number(trace, "accepted_at"))) " " span.muted { (ago(number(trace, "accepted_at"))) } }),
                ("Submission", match trace["submission"].as_str() {
                    Some(id) => html! { a href=(format!("/messages/{}", part(id))) { (id) } " " span.muted { "(several destinations)" } },
                    None => html! { "—" },
                }),
                ("Valid until", match number(trace, "expires_at") { 0 => html! { "—" }, at => moment(at) }),
                ("Peer's ids", html! {
                    @let ids = trace["peer_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
                    @if ids.is_empty() { "—" }
                    @for id in ids { code { (id.as_str().unwrap_or_default()) } " " }
                }),
            ]))
            @if is_open && visit.may("operate") {
                div.do {
                    @if word == "uncertain" {
                        (button(visit, &action("send-again"), "Send it again", "primary", &[]))
                        (button(visit, &action("give-up"), "Give it up", "danger", &[]))
                    } @else {
                        (button(visit, &action("retry"), "Try it now", "primary", &[]))
                        (button(visit, &action("cancel"), "Cancel it", "danger", &[]))
                    }
                }
                @if word == "uncertain" {
                    p.muted { "If the peer has it after all, sending it again makes its addressee get it twice." }
                }
            }
        }
    }
}

/// A link to the subscriber with this number, where it is one.
fn subscriber(address: &str) -> Markup {
    let digits = address.strip_prefix('+').unwrap_or(address);
    let is_number = (3..=20).contains(&digits.len()) && digits.bytes().all(|octet| octet.is_ascii_digit());
    html! { @if is_number { a.muted href=(format!("/subscribers/msisdn-{digits}")) { "as a subscriber" } } }
}

/// A step about money, with its amount as people read it.
fn priced(what: &str) -> String {
    let amount = |rest: &str| rest.parse::<i64>().ok().map(money);
    match what.rsplit_once(' ') {
        Some((verb @ ("charged" | "refunded" | "given back" | "reserved"), rest)) => {
            amount(rest).map_or_else(|| what.to_owned(), |amount| format!("{verb} {amount}"))
        }
        _ => what.to_owned(),
    }
}

fn steps(trace: &Value) -> Markup {
    let steps = trace["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut before = None;
    let mut drawn = Vec::new();
    for step in steps.iter().take(crate::table::MOST) {
        let at = number(step, "at");
        let after = before.map(|before| at.saturating_sub(before));
        before = Some(at);
        drawn.push((at, after, priced(&sentence(text(step, "what")))));
    }
    html! {
        ol.timeline {
            @for (at, after, what) in &drawn {
                li { (exact(*at)) @if let Some(after) = after { " " span.muted { "+" (span(*after)) } } p { (what) } }
            }
        }
    }
}

fn why_here(trace: &Value) -> Markup {
    let why = &trace["why_here"];
    html! {
        section.card {
            h2 { "Why it went this way" }
            p { (text(why, "verdict")) }
            (facts(&[
                ("Decided by", html! { (text(why, "plugin")) " " (version(text(why, "version"))) }),
                ("Its note", html! { (why["note"].as_str().unwrap_or("—")) }),
                ("Way in use", html! { @match why["leg"].as_u64() { Some(leg) => { "number " (leg + 1) } None => { "—" } } }),
            ]))
        }
    }
}

fn price(trace: &Value) -> Markup {
    let price = &trace["price"];
    html! {
        section.card {
            h2 { "Price" }
            @if price.is_null() {
                p { "Nobody was asked for a price." }
            } @else {
                p.price { (money(price["amount"].as_i64().unwrap_or(0))) }
                (facts(&[
                    ("Paid by", html! { (price["account"].as_str().unwrap_or("nobody: it is free")) }),
                    ("Priced by", html! { (text(price, "plugin")) " " (version(text(price, "version"))) }),
                    ("Its note", html! { (price["note"].as_str().unwrap_or("—")) }),
                ]))
            }
        }
    }
}

pub(crate) async fn act(visit: Visit, Path((id, act)): Path<(String, String)>, form: Form) -> Response {
    let place = format!("/messages/{}", part(&id));
    let path = format!("/v1/messages/{}", part(&id));
    let asked = match act.as_str() {
        "cancel" => {
            visit.send(Method::POST, &format!("{path}/cancel"), &form, None).await.map(|_| "cancelled")
        }
        "retry" => visit.send(Method::POST, &format!("{path}/retry"), &form, None).await.map(|_| "retried"),
        "send-again" | "give-up" => {
            let wish = json!({ "remedy": act });
            let done = if act == "give-up" { "given-up" } else { "sent-again" };
            visit.send(Method::POST, &format!("{path}/settle"), &form, Some(&wish)).await.map(|_| done)
        }
        _ => Err(Refusal::new(StatusCode::NOT_FOUND, "That cannot be done to a message.")),
    };
    match asked {
        Ok(done) => Visit::to(&place, done),
        Err(refusal) => page(&visit, &format!("Message {id}"), Room::Messages, Err(refusal)),
    }
}
