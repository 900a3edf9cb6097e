//! GSM core networks: who is connected, what goes to handsets and what comes from them.

use crate::ask::{Refusal, with_query};
use crate::live::Region;
use crate::shell::{Room, live_page};
use crate::table::{facts, table};
use crate::visit::Visit;
use crate::words::{count, number, plural, sentence, state, text};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

pub(crate) async fn regions(visit: &Visit) -> Result<Vec<Region>, Refusal> {
    let found: Vec<Value> = visit.get("/v1/gsm").await?;
    Ok(vec![(
        "networks",
        html! {
            @if found.is_empty() {
                section.card { div.empty {
                    h2 { "No core network" }
                    p { "With a section " code { "[[gsm]]" } " in the configuration the appliance is the SMSC of a network: it delivers to handsets and takes what they send, over GSUP." }
                    p { a href="/configuration" { "To the configuration" } }
                } }
            }
            @for one in found.iter().take(crate::table::MOST) { (network(one)) }
        },
    )])
}

pub(crate) async fn show(visit: Visit) -> Response {
    let body = regions(&visit).await.map(|regions| {
        html! {
            h1 { "GSM networks" }
            (crate::pages::subscribers::search())
            @for (id, part) in regions { div id=(id) { (part) } }
        }
    });
    live_page(&visit, "GSM networks", Room::Networks, Some("/live?of=networks"), body)
}

/// Refusals by their cause, most first.
fn causes(refused: &Value) -> Markup {
    let mut all: Vec<(&String, u64)> = refused
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(cause, count)| Some((cause, count.as_u64().filter(|count| *count > 0)?)))
        .collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    html! {
        @if all.is_empty() { "none" }
        @for (place, (cause, many)) in all.iter().enumerate() { @if place > 0 { ", " }
            // What has no name is the cause of the protocol.
            @if cause.bytes().all(|octet| octet.is_ascii_digit()) { "cause " (cause) } @else { (cause.replace('-', " ")) }
            ": " (count(*many))
        }
    }
}

fn network(one: &Value) -> Markup {
    let name = text(one, "name");
    let connections: Vec<_> = one["connections"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|connection| {
            let is_ready = connection["ready"].as_bool() == Some(true);
            vec![
                html! { (connection["name"].as_str().unwrap_or("has not said")) },
                html! { (text(connection, "remote")) },
                state(if is_ready { "ready" } else { "connecting" }),
            ]
        })
        .collect();
    let (mt, mo, hlr) = (&one["mt"], &one["mo"], &one["hlr_questions"]);
    let role = match text(one, "role") {
        "proxy" => "We stand between its MSCs and its HLR.",
        "client" => "We are a client of its HLR.",
        other => other,
    };
    html! {
        section.card {
            div.head { h2 { (name) } a.button.quiet href=(with_query("/messages", &[("peer", name)])) { "Its messages" } }
            p { (sentence(role)) " " (plural(number(one, "subscribers_known"), "subscriber is known", "subscribers are known")) "." }
            @for fault in one["faults"].as_array().into_iter().flatten() {
                p { strong { (text(fault, "what")) } ": " (text(fault, "remedy")) }
            }
            @if let Some(error) = one["last_error"].as_str() { p.muted { "Last trouble: " (error) } }
            (table("Connections", &["Who", "Other end", "State"], &connections, &html! { p { "Nobody is connected." } }))
            h3 { "To handsets" }
            (facts(&[
                ("Handed over", html! { (count(number(mt, "sent"))) }),
                ("Delivered", html! { (count(number(mt, "delivered"))) }),
                ("On their way", html! { (count(number(one, "in_flight"))) }),
                ("Unanswered", html! { (count(number(mt, "unanswered"))) }),
                ("Refused", causes(&mt["refused"])),
                ("Handsets that came back", html! { (count(number(one, "ready_for_sm") + number(one, "attached"))) }),
            ]))
            h3 { "From handsets" }
            (facts(&[
                ("Received", html! { (count(number(mo, "received"))) }),
                ("Repeated", html! { (count(number(mo, "repeated"))) }),
                ("Refused", causes(&mo["refused"])),
            ]))
            h3 { "Its HLR" }
            (facts(&[
                ("Asked", html! { (count(number(hlr, "asked"))) }),
                ("Unanswered", html! { (count(number(hlr, "unanswered"))) }),
                ("Signalling passed on", html! { (plural(number(one, "relayed_frames"), "frame", "frames")) }),
            ]))
            p.muted { "Its queue is among the " a href="/queues#queues" { "queues" } "." }
        }
    }
}
