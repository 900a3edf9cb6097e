//! Lists of peers, of gateways and of accounts, with how they stand.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::pages::Asked;
use crate::pages::standing::{Link, Queue, links, queues};
use crate::shell::{Room, page};
use crate::table::{Part, table};
use crate::visit::Visit;
use crate::words::{ago, count, sentence, state};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use std::collections::HashMap;

/// Whom a list is of.
struct Kind {
    list: &'static str,
    path: &'static str,
    title: &'static str,
    room: Room,
    add: &'static str,
    empty: &'static str,
    /// What it is reached by: the head of a column, and the key of the setting.
    reach: (&'static str, &'static str),
}

const PEERS: Kind = Kind {
    list: "peer",
    path: "/peers",
    title: "Peers",
    room: Room::Peers,
    add: "Add a peer",
    empty: "A peer is an SMSC that we connect to. Without one, messages go nowhere.",
    reach: ("Address", "address"),
};

const GATEWAYS: Kind = Kind {
    list: "gateway",
    path: "/gateways",
    title: "Gateways",
    room: Room::Gateways,
    add: "Add a gateway",
    empty: "A gateway is an operator's SGIP gateway. We log in there to submit; it logs in here to bring replies and reports.",
    reach: ("Address", "address"),
};

const ACCOUNTS: Kind = Kind {
    list: "account",
    path: "/accounts",
    title: "Accounts",
    room: Room::Accounts,
    add: "Add an account",
    empty: "An account is somebody who sends messages through this appliance, and gets receipts and replies.",
    reach: ("System id", "system-id"),
};

pub(crate) async fn peers(visit: Visit, Query(query): Asked) -> Response {
    let body = list(&visit, &PEERS, &Form::of(query)).await;
    page(&visit, PEERS.title, PEERS.room, body)
}

pub(crate) async fn gateways(visit: Visit, Query(query): Asked) -> Response {
    let body = list(&visit, &GATEWAYS, &Form::of(query)).await;
    page(&visit, GATEWAYS.title, GATEWAYS.room, body)
}

pub(crate) async fn accounts(visit: Visit, Query(query): Asked) -> Response {
    let body = list(&visit, &ACCOUNTS, &Form::of(query)).await;
    page(&visit, ACCOUNTS.title, ACCOUNTS.room, body)
}

async fn list(visit: &Visit, kind: &Kind, query: &Form) -> Result<Markup, Refusal> {
    let (document, queues, links) =
        tokio::join!(visit.console.documents.known(visit), queues(visit), links(visit));
    let (document, queues, links) = (document?, queues?, links?);
    let queues: HashMap<&str, &Queue> = queues.iter().map(|queue| (queue.peer.as_str(), queue)).collect();
    let mut by_peer: HashMap<&str, Vec<&Link>> = HashMap::new();
    for link in &links {
        by_peer.entry(&link.peer).or_default().push(link);
    }
    let none = Vec::new();
    let of = |name: &str| by_peer.get(name).unwrap_or(&none);
    let (wanted, standing) = (query.text("q").to_lowercase(), query.text("state"));
    let found: Vec<(&str, &Value)> = document
        .named(kind.list)
        .filter(|(name, one)| {
            let address = one["address"].as_str().unwrap_or_default();
            wanted.is_empty()
                || name.to_lowercase().contains(&wanted)
                || address.to_lowercase().contains(&wanted)
        })
        .filter(|(name, _)| {
            let up = of(name).iter().any(|link| link.is_up());
            match standing {
                "up" => up,
                "down" => !up,
                "waiting" => queues.get(name).is_some_and(|queue| queue.waiting() > 0),
                _ => true,
            }
        })
        .collect();
    let shown = Part::new(found.len(), query.text("page"));
    let rows: Vec<_> = found[shown.from..shown.upto]
        .iter()
        .map(|(name, one)| row(kind, name, one, queues.get(name).copied(), of(name)))
        .collect();
    let narrowed = !wanted.is_empty() || !standing.is_empty();
    let empty = html! {
        @if narrowed {
            h2 { "None is like that" }
            p { a href=(kind.path) { "Show all of them" } }
        } @else {
            h2 { "None yet" }
            p { (kind.empty) }
            @if visit.may("configure") { p { a.button.primary href=(format!("{}/new", kind.path)) { (kind.add) } } }
        }
    };
    let heads = &["Name", "Links", kind.reach.0, "Waiting", "On their way", "What limits it"];
    Ok(html! {
        div.head {
            h1 { (kind.title) }
            @if visit.may("configure") { a.button.primary href=(format!("{}/new", kind.path)) { (kind.add) } }
        }
        form.card.search method="get" action=(kind.path) role="search" aria-label=(kind.title) {
            p { label for="q" { "Name or address" } input #q name="q" type="search" value=(query.text("q")); }
            p {
                label for="state" { "Standing" }
                select #state name="state" {
                    @for (value, name) in [("", "any"), ("up", "a link is up"), ("down", "no link is up"), ("waiting", "messages wait")] {
                        option value=(value) selected[standing == value] { (name) }
                    }
                }
            }
            p.do { button type="submit" { "Filter" } }
        }
        section.card { (table(kind.title, heads, &rows, &empty)) }
        (shown.links(kind.path, &[("q", query.text("q")), ("state", standing)]))
    })
}

fn row(kind: &Kind, name: &str, one: &Value, queue: Option<&Queue>, links: &[&Link]) -> Vec<Markup> {
    let up = links.iter().filter(|link| link.is_up()).count();
    let worst = links.iter().find(|link| !link.is_up());
    let word = match (up, worst) {
        (0, Some(link)) => link.phase.as_str(),
        (0, None) => "not connected",
        _ => "bound",
    };
    let reach = &one[kind.reach.1];
    vec![
        html! { a href=(format!("{}/{}", kind.path, part(name))) { (name) } },
        html! { (state(word)) @if up > 0 { " " (up) } @else if let Some(link) = worst && link.since > 0 { " " span.muted { (ago(link.since)) } } },
        html! { (reach.as_str().unwrap_or(name)) },
        html! { (count(queue.map_or(0, Queue::waiting))) },
        html! { (count(queue.map_or(0, |queue| queue.in_flight))) },
        html! { (queue.map(|queue| sentence(&queue.brake)).unwrap_or_default()) },
    ]
}
