//! GSM core networks: connections, MT and MO counters.

use crate::api_caller::{ApiError, with_query};
use crate::format::{count, number, plural, state_badge, text, with_readable_times};
use crate::layout::live_page;
use crate::live::Region;
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

pub(crate) async fn regions(context: &RequestContext) -> Result<Vec<Region>, ApiError> {
    let found: Vec<Value> = context.get("/v1/gsm").await?;
    Ok(vec![(
        "networks",
        html! {
            @if found.is_empty() {
                section.card { div.empty {
                    h2 { "No core network" }
                    p { "A section " code { "[[gsm]]" } " in the configuration makes the appliance the SMSC of a network: it delivers messages to handsets and receives theirs over GSUP." }
                    p { a href="/configuration" { "To the configuration" } }
                } }
            }
            @for one in found.iter().take(crate::table::MAX_ROWS) { (network(one)) }
        },
    )])
}

pub(crate) async fn show(context: RequestContext) -> Response {
    let body = regions(&context).await.map(|regions| {
        html! {
            h1 { "GSM networks" }
            (crate::pages::subscribers::search())
            @for (id, part) in regions { div id=(id) { (part) } }
        }
    });
    live_page(&context, "GSM networks", NavItem::Networks, Some("/live?of=networks"), body)
}

/// Refusals by cause, the most frequent first.
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
        @for (index, (cause, many)) in all.iter().enumerate() { @if index > 0 { ", " }
            // A number is a cause value of the protocol.
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
                html! { (connection["name"].as_str().unwrap_or("unknown")) },
                html! { (text(connection, "remote")) },
                state_badge(if is_ready { "ready" } else { "connecting" }),
            ]
        })
        .collect();
    let (mt, mo, hlr) = (&one["mt"], &one["mo"], &one["hlr_questions"]);
    let role = match text(one, "role") {
        "proxy" => "The appliance is a proxy between the MSCs and the HLR.",
        "client" => "The appliance is a client of the HLR.",
        other => other,
    };
    html! {
        section.card {
            div.heading { h2 { (name) } a.button.quiet href=(with_query("/messages", &[("peer", name)])) { "Messages" } }
            p { (with_readable_times(role)) " " (plural(number(one, "subscribers_known"), "subscriber is known", "subscribers are known")) "." }
            @for fault in one["faults"].as_array().into_iter().flatten() {
                p { strong { (text(fault, "what")) } ": " (text(fault, "remedy")) }
            }
            @if let Some(error) = one["last_error"].as_str() { p.muted { "Last error: " (error) } }
            (table("Connections", &["Name", "Remote address", "State"], &connections, &html! { p { "There are no connections." } }))
            h3 { "To handsets" }
            (detail_list(&[
                ("Submitted", html! { (count(number(mt, "sent"))) }),
                ("Delivered", html! { (count(number(mt, "delivered"))) }),
                ("In flight", html! { (count(number(one, "in_flight"))) }),
                ("Unanswered", html! { (count(number(mt, "unanswered"))) }),
                ("Refused", causes(&mt["refused"])),
                ("Handsets ready again", html! { (count(number(one, "ready_for_sm") + number(one, "attached"))) }),
            ]))
            h3 { "From handsets" }
            (detail_list(&[
                ("Received", html! { (count(number(mo, "received"))) }),
                ("Repeated", html! { (count(number(mo, "repeated"))) }),
                ("Refused", causes(&mo["refused"])),
            ]))
            h3 { "HLR" }
            (detail_list(&[
                ("Queries", html! { (count(number(hlr, "asked"))) }),
                ("Unanswered", html! { (count(number(hlr, "unanswered"))) }),
                ("Relayed signalling", html! { (plural(number(one, "relayed_frames"), "frame", "frames")) }),
            ]))
            p.muted { "Its queue is listed under " a href="/queues#queues" { "queues" } "." }
        }
    }
}
