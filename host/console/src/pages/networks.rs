//! GSM core networks: connections, MT and MO counters.

use crate::api_caller::{ApiError, with_query};
use crate::format::{count, plural, state_badge};
use crate::layout::live_page;
use crate::live::Region;
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use api::{CoreNetworkRole, CoreNetworkView};
use axum::response::Response;
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::fmt::Display;

pub(crate) async fn regions(context: &RequestContext) -> Result<Vec<Region>, ApiError> {
    let found: Vec<CoreNetworkView> = context.get("/v1/gsm").await?;
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
fn causes(refused: &BTreeMap<impl Display, u64>) -> Markup {
    let all = refused.iter().filter(|(_, count)| **count > 0);
    let mut all: Vec<(String, u64)> = all.map(|(cause, count)| (cause.to_string(), *count)).collect();
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

fn network(one: &CoreNetworkView) -> Markup {
    let connections: Vec<_> = one
        .connections
        .iter()
        .map(|connection| {
            vec![
                html! { (connection.name.as_deref().unwrap_or("unknown")) },
                html! { (connection.remote) },
                state_badge(if connection.ready { "ready" } else { "connecting" }),
            ]
        })
        .collect();
    let (mt, mo, hlr) = (&one.mt, &one.mo, &one.hlr_questions);
    let role = match one.role {
        CoreNetworkRole::Proxy => "The appliance is a proxy between the MSCs and the HLR.",
        CoreNetworkRole::Client => "The appliance is a client of the HLR.",
    };
    html! {
        section.card {
            div.heading { h2 { (one.name) } a.button.quiet href=(with_query("/messages", &[("peer", &one.name)])) { "Messages" } }
            p { (role) " " (plural(one.subscribers_known, "subscriber is known", "subscribers are known")) "." }
            @for fault in &one.faults {
                p { strong { (fault.what) } ": " (fault.remedy) }
            }
            @if let Some(error) = &one.last_error { p.muted { "Last error: " (error) } }
            (table("Connections", &["Name", "Remote address", "State"], &connections, &html! { p { "There are no connections." } }))
            h3 { "To handsets" }
            (detail_list(&[
                ("Submitted", html! { (count(mt.sent)) }),
                ("Delivered", html! { (count(mt.delivered)) }),
                ("In flight", html! { (count(one.in_flight)) }),
                ("Unanswered", html! { (count(mt.unanswered)) }),
                ("Refused", causes(&mt.refused)),
                ("Handsets ready again", html! { (count(one.ready_for_sm + one.attached)) }),
            ]))
            h3 { "From handsets" }
            (detail_list(&[
                ("Received", html! { (count(mo.received)) }),
                ("Repeated", html! { (count(mo.repeated)) }),
                ("Refused", causes(&mo.refused)),
            ]))
            h3 { "HLR" }
            (detail_list(&[
                ("Queries", html! { (count(hlr.asked)) }),
                ("Unanswered", html! { (count(hlr.unanswered)) }),
                ("Relayed signalling", html! { (plural(one.relayed_frames, "frame", "frames")) }),
            ]))
            p.muted { "Its queue is listed under " a href="/queues#queues" { "queues" } "." }
        }
    }
}
