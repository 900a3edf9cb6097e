//! Lists of peers, gateways and accounts, with their state.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{ago, count, state_badge, with_times};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, Pagination, numeric_table};
use api::{LinkView, Permission, PluginPeerView, QueueView};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use std::collections::HashMap;

/// The kind of a list.
struct ListKind {
    list: &'static str,
    path: &'static str,
    title: &'static str,
    nav_item: NavItem,
    add: &'static str,
    empty: &'static str,
    /// The address column: its heading, and the key of the setting.
    reach: (&'static str, &'static str),
}

const PEERS: ListKind = ListKind {
    list: "peer",
    path: "/peers",
    title: "Peers",
    nav_item: NavItem::Peers,
    add: "Add a peer",
    empty: "A peer is an SMSC that the appliance connects to. Without a peer, no message can be delivered.",
    reach: ("Address", "address"),
};

const GATEWAYS: ListKind = ListKind {
    list: "gateway",
    path: "/gateways",
    title: "Gateways",
    nav_item: NavItem::Gateways,
    add: "Add a gateway",
    empty: "A gateway is an operator's gateway in China, by SGIP, CMPP or SMGP. The appliance logs in to submit messages, and the gateway delivers MO messages and DLRs.",
    reach: ("Address", "address"),
};

const ACCOUNTS: ListKind = ListKind {
    list: "account",
    path: "/accounts",
    title: "Accounts",
    nav_item: NavItem::Accounts,
    add: "Add an account",
    empty: "An account submits messages to the appliance, and receives DLRs and replies.",
    reach: ("System id", "system-id"),
};

pub(crate) async fn peers(context: RequestContext, Query(query): QueryParams) -> Response {
    let body = list(&context, &PEERS, &Form::of(query)).await;
    page(&context, PEERS.title, PEERS.nav_item, body)
}

pub(crate) async fn gateways(context: RequestContext, Query(query): QueryParams) -> Response {
    let body = list(&context, &GATEWAYS, &Form::of(query)).await;
    page(&context, GATEWAYS.title, GATEWAYS.nav_item, body)
}

pub(crate) async fn accounts(context: RequestContext, Query(query): QueryParams) -> Response {
    let body = list(&context, &ACCOUNTS, &Form::of(query)).await;
    page(&context, ACCOUNTS.title, ACCOUNTS.nav_item, body)
}

async fn list(context: &RequestContext, kind: &ListKind, query: &Form) -> Result<Markup, ApiError> {
    let plugin_peers = async {
        match kind.list {
            "peer" => context.get::<Vec<PluginPeerView>>("/v1/plugin-peers").await,
            _ => Ok(Vec::new()),
        }
    };
    let (document, queues, links, plugin_peers) = tokio::join!(
        context.console.configuration.cached(context),
        context.get::<Vec<QueueView>>("/v1/queues"),
        context.get::<Vec<LinkView>>("/v1/links"),
        plugin_peers,
    );
    let (document, queues, links, plugin_peers) = (document?, queues?, links?, plugin_peers?);
    let queues: HashMap<&str, &QueueView> = queues.iter().map(|queue| (queue.peer.as_str(), queue)).collect();
    let mut by_peer: HashMap<&str, Vec<&LinkView>> = HashMap::new();
    for link in &links {
        by_peer.entry(&link.peer).or_default().push(link);
    }
    let none = Vec::new();
    let of = |name: &str| by_peer.get(name).unwrap_or(&none);
    let (filter, status_filter) = (query.text("q").to_lowercase(), query.text("state"));
    let mut found: Vec<(&str, &Value)> = document
        .named(kind.list)
        .filter(|(name, one)| {
            let address = one["address"].as_str().unwrap_or_default();
            filter.is_empty()
                || name.to_lowercase().contains(&filter)
                || address.to_lowercase().contains(&filter)
        })
        .filter(|(name, _)| {
            let up = of(name).iter().any(|link| link.is_up());
            match status_filter {
                "up" => up,
                "down" => !up,
                "waiting" => queues.get(name).is_some_and(|queue| queue.waiting() > 0),
                _ => true,
            }
        })
        .collect();
    // Those without a link that once had one, then those with waiting messages, then by name.
    found.sort_by_cached_key(|(name, _)| {
        let links = of(name);
        let down = !links.is_empty() && !links.iter().any(|link| link.is_up());
        let waiting =
            queues.get(name).map_or(0, |queue| queue.waiting() - queue.in_flight - queue.awaiting_dlr);
        (!down, std::cmp::Reverse(waiting), (*name).to_owned())
    });
    let up = found.iter().filter(|(name, _)| of(name).iter().any(|link| link.is_up())).count();
    let shown = Pagination::new(found.len(), query.text("page"));
    let rows: Vec<_> = found[shown.from..shown.upto]
        .iter()
        .map(|(name, one)| row(kind, name, one, queues.get(name).copied(), of(name)))
        .collect();
    let narrowed = !filter.is_empty() || !status_filter.is_empty();
    let empty = html! {
        @if narrowed {
            h2 { "No matches" }
            p { a href=(kind.path) { "Show all" } }
        } @else {
            h2 { "None yet" }
            p { (kind.empty) }
            @if context.has_permission(Permission::Configure) { p { a.button.primary href=(format!("{}/new", kind.path)) { (kind.add) } } }
        }
    };
    let columns = [
        Column::Text("Name"),
        Column::Text("Links"),
        Column::Text(kind.reach.0),
        Column::Number("Waiting"),
        Column::Number("In flight"),
        Column::Text("Blocked by"),
    ];
    Ok(html! {
        div.heading {
            h1 { (kind.title) }
            @if context.has_permission(Permission::Configure) { a.button.primary href=(format!("{}/new", kind.path)) { (kind.add) } }
        }
        form.card.search method="get" action=(kind.path) role="search" aria-label=(kind.title) {
            p { label for="q" { "Name or address" } input #q name="q" type="search" value=(query.text("q")); }
            p {
                label for="state" { "State" }
                select #state name="state" {
                    @for (value, name) in [("", "any"), ("up", "a link is up"), ("down", "no link is up"), ("waiting", "messages wait")] {
                        option value=(value) selected[status_filter == value] { (name) }
                    }
                }
            }
            p.actions { button type="submit" { "Filter" } }
        }
        p.muted.counts {
            (count(found.len() as u64)) @if narrowed { " of " (count(document.named(kind.list).count() as u64)) }
            @if !rows.is_empty() { ": " (count(up as u64)) " with a link, " (count((found.len() - up) as u64)) " without" }
        }
        section.card { (numeric_table(kind.title, &columns, &rows, &empty)) }
        @if !plugin_peers.is_empty() { (plugin_peers_section(&plugin_peers)) }
        (shown.links(kind.path, &[("q", query.text("q")), ("state", status_filter)]))
    })
}

/// The peers whose protocol a plugin speaks.
fn plugin_peers_section(peers: &[PluginPeerView]) -> Markup {
    let rows: Vec<_> = peers.iter().map(plugin_peer_row).collect();
    let heads = [
        Column::Text("Name"),
        Column::Text("Plugin"),
        Column::Number("In flight"),
        Column::Number("Accepted"),
        Column::Number("Refused"),
        Column::Number("Uncertain"),
        Column::Number("Mean time"),
        Column::Number("Callbacks"),
        Column::Text("Last failure"),
    ];
    html! {
        section.card #plugin-peers {
            h2 { "Peers by plugins" }
            p.muted { "Since the start of the daemon. Their plugins are those of the hook " a href="/plugins/peer" { "peer" } "." }
            (numeric_table("Peers by plugins", &heads, &rows, &html! {}))
        }
    }
}

fn plugin_peer_row(peer: &PluginPeerView) -> Vec<Markup> {
    let attempts = peer.accepted + peer.refused + peer.uncertain;
    let callbacks = &peer.callbacks;
    let lost = callbacks.refused + callbacks.failed + callbacks.limited;
    vec![
        html! { a href=(format!("{}/{}", PEERS.path, encode_segment(&peer.peer))) { (peer.peer) } },
        html! { @match (&peer.plugin, &peer.version) { (Some(plugin), Some(version)) => { (plugin) " " span.muted { (version) } } _ => { (state_badge("not bound")) } } },
        html! { (peer.in_flight) " of " (peer.window) },
        html! { (count(peer.accepted)) },
        html! { (count(peer.refused)) },
        html! { @if peer.uncertain > 0 { a href="/uncertain" { (count(peer.uncertain)) } } @else { "0" } },
        html! { @match peer.busy_ms.checked_div(attempts) { Some(ms) => { (ms) " ms" } None => { "—" } } },
        html! { (count(callbacks.accepted)) @if lost > 0 { " " span.muted { (count(lost)) " not accepted" } } },
        html! { @match &peer.last_failure { Some(why) => { (why) " " span.muted { (ago(peer.last_failure_at.unwrap_or_default())) } } None => { "—" } } },
    ]
}

fn row(
    kind: &ListKind,
    name: &str,
    one: &Value,
    queue: Option<&QueueView>,
    links: &[&LinkView],
) -> Vec<Markup> {
    let up = links.iter().filter(|link| link.is_up()).count();
    let worst = links.iter().find(|link| !link.is_up());
    // The peer is down since its last link went down.
    let down_since = links.iter().filter_map(|link| link.down_since).max();
    let word = match (up, worst) {
        (0, Some(link)) => link.phase.name(),
        (0, None) => "not connected",
        _ => "bound",
    };
    let reach = &one[kind.reach.1];
    vec![
        html! { a href=(format!("{}/{}", kind.path, encode_segment(name))) { (name) } },
        html! { (state_badge(word)) @if up > 0 { " " (up) } @else if let Some(down_since) = down_since { " " span.muted { (ago(down_since)) } } },
        html! { (reach.as_str().unwrap_or(name)) },
        html! { (count(queue.map_or(0, QueueView::waiting))) },
        html! { (count(queue.map_or(0, |queue| queue.in_flight))) },
        html! { (queue.map(|queue| with_times(&queue.blocked_by)).unwrap_or_default()) },
    ]
}
