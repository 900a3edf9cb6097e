//! Lists of peers, gateways and accounts, with their state, and their exports.

use crate::api_caller::{ApiError, encode_segment};
use crate::configuration_cache::ConfigurationDocument;
use crate::csv_export::{ExportTable, export_link};
use crate::form::Form;
use crate::format::{ago, count, state_badge, timestamp, with_readable_times, with_times};
use crate::layout::page;
use crate::list_filter::{FilterState, ListFilter};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, Pagination, numeric_table};
use api::{LinkView, Permission, PluginPeerView, QueueView};
use axum::extract::Query;
use axum::http::Uri;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// The kind of a list.
struct ListKind {
    list: &'static str,
    path: &'static str,
    title: &'static str,
    nav_item: NavItem,
    add: &'static str,
    empty: &'static str,
    /// The address column: its heading, and the key of the setting.
    address_column: (&'static str, &'static str),
}

impl ListKind {
    /// Whether its entries may belong to tenants.
    fn has_tenants(&self) -> bool {
        self.list == ACCOUNTS.list
    }
}

const PEERS: ListKind = ListKind {
    list: "peer",
    path: "/peers",
    title: "Peers",
    nav_item: NavItem::Peers,
    add: "Add a peer",
    empty: "A peer is an SMSC that the appliance connects to. Without a peer, no message can be delivered.",
    address_column: ("Address", "address"),
};

const GATEWAYS: ListKind = ListKind {
    list: "gateway",
    path: "/gateways",
    title: "Gateways",
    nav_item: NavItem::Gateways,
    add: "Add a gateway",
    empty: "A gateway is an operator's gateway in China, by SGIP, CMPP or SMGP. The appliance logs in to submit messages, and the gateway delivers MO messages and DLRs.",
    address_column: ("Address", "address"),
};

const ACCOUNTS: ListKind = ListKind {
    list: "account",
    path: "/accounts",
    title: "Accounts",
    nav_item: NavItem::Accounts,
    add: "Add an account",
    empty: "An account submits messages to the appliance, and receives DLRs and replies.",
    address_column: ("System id", "system-id"),
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

/// The paths of the exports of these lists.
pub(crate) const EXPORTS: [&str; 6] =
    ["/peers.csv", "/peers.json", "/gateways.csv", "/gateways.json", "/accounts.csv", "/accounts.json"];

/// A list as a file, as its page is filtered.
pub(crate) async fn export(context: RequestContext, uri: Uri, Query(query): QueryParams) -> Response {
    let (path, format) = uri.path().rsplit_once('.').unwrap_or_default();
    let kind = [&PEERS, &GATEWAYS].into_iter().find(|kind| kind.path == path).unwrap_or(&ACCOUNTS);
    let query = Form::of(query);
    let filter = ListFilter::new(&query);
    let listing = match Listing::read(&context, kind).await {
        Ok(listing) => listing,
        Err(error) => return page(&context, kind.title, kind.nav_item, Err(error)),
    };
    let address = kind.address_column.1;
    let heads =
        ["name", address, "state", "links-up", "links", "down-since", "waiting", "in-flight", "blocked-by"];
    let rows = listing.entries(&filter, filter.state()).iter().map(ListEntry::export_row).collect();
    ExportTable { name: kind.path.trim_start_matches('/'), heads: &heads, rows }.file(format)
}

/// Data of the list: the configuration, queues and links.
struct Listing {
    kind: &'static ListKind,
    document: Arc<ConfigurationDocument>,
    queues: HashMap<String, QueueView>,
    links: HashMap<String, Vec<LinkView>>,
}

/// An entry of a list.
struct ListEntry<'a> {
    kind: &'static ListKind,
    name: &'a str,
    settings: &'a Value,
    queue: Option<&'a QueueView>,
    links: &'a [LinkView],
}

impl Listing {
    async fn read(context: &RequestContext, kind: &'static ListKind) -> Result<Self, ApiError> {
        let (document, queues, all_links) = tokio::join!(
            context.console.configuration.cached(context),
            context.get::<Vec<QueueView>>("/v1/queues"),
            context.get::<Vec<LinkView>>("/v1/links"),
        );
        let mut links: HashMap<String, Vec<LinkView>> = HashMap::new();
        for link in all_links? {
            links.entry(link.peer.clone()).or_default().push(link);
        }
        let queues = queues?.into_iter().map(|queue| (queue.peer.clone(), queue)).collect();
        Ok(Self { kind, document: document?, queues, links })
    }

    /// The entries with this state that match the filter: first those without a link that had one before, then those
    /// with waiting messages, then by name.
    fn entries(&self, filter: &ListFilter<'_>, state: &str) -> Vec<ListEntry<'_>> {
        let all = self.document.named(self.kind.list).map(|(name, settings)| ListEntry {
            kind: self.kind,
            name,
            settings,
            queue: self.queues.get(name),
            links: self.links.get(name).map_or(&[], Vec::as_slice),
        });
        let mut found: Vec<ListEntry<'_>> = all
            .filter(|one| {
                filter.matches(one.name)
                    || filter.matches(one.settings["address"].as_str().unwrap_or_default())
                    || one.tenant().is_some_and(|tenant| filter.matches(tenant))
            })
            .filter(|one| one.is_in_state(state))
            .collect();
        found.sort_by_cached_key(|one| {
            let down = !one.links.is_empty() && !one.is_up();
            let waiting = one.queue.map_or(0, |queue| queue.waiting() - queue.in_flight - queue.awaiting_dlr);
            (!down, std::cmp::Reverse(waiting), one.name.to_owned())
        });
        found
    }
}

impl ListEntry<'_> {
    fn is_up(&self) -> bool {
        self.links.iter().any(LinkView::is_up)
    }

    fn waiting(&self) -> u64 {
        self.queue.map_or(0, QueueView::waiting)
    }

    fn is_in_state(&self, state: &str) -> bool {
        match state {
            "up" => self.is_up(),
            "down" => !self.is_up(),
            "waiting" => self.waiting() > 0,
            _ => true,
        }
    }

    /// The state of its links in a word.
    fn state(&self) -> &'static str {
        match self.links.first() {
            _ if self.is_up() => "bound",
            Some(link) => link.phase.name(),
            None => "not connected",
        }
    }

    /// The time since which the peer is down: when its last link went down.
    fn down_since(&self) -> Option<u64> {
        self.links.iter().filter_map(|link| link.down_since).max().filter(|_| !self.is_up())
    }

    /// Its address, or the system id.
    fn address(&self) -> &str {
        self.settings[self.kind.address_column.1].as_str().unwrap_or(self.name)
    }

    fn links_up(&self) -> usize {
        self.links.iter().filter(|link| link.is_up()).count()
    }

    fn export_row(&self) -> Vec<Value> {
        let down_since = self.down_since().map(|at| format!("{}Z", timestamp(at).replace(' ', "T")));
        vec![
            json!(self.name),
            json!(self.address()),
            json!(self.state()),
            json!(self.links_up()),
            json!(self.links.len()),
            json!(down_since),
            json!(self.waiting()),
            json!(self.queue.map_or(0, |queue| queue.in_flight)),
            json!(self.queue.map(|queue| with_readable_times(&queue.blocked_by)).unwrap_or_default()),
        ]
    }

    fn row(&self) -> Vec<Markup> {
        let up = self.links_up();
        vec![
            html! {
                a href=(format!("{}/{}", self.kind.path, encode_segment(self.name))) { (self.name) }
                @if let Some(tenant) = self.tenant() { " " span.muted { (tenant) } }
            },
            html! { (state_badge(self.state())) @if up > 0 { " " (up) } @else if let Some(down_since) = self.down_since() { " " span.muted { (ago(down_since)) } } },
            html! { (self.address()) },
            html! { (count(self.waiting())) },
            html! { (count(self.queue.map_or(0, |queue| queue.in_flight))) },
            html! { (self.queue.map(|queue| with_times(&queue.blocked_by)).unwrap_or_default()) },
        ]
    }

    /// The tenant of an account.
    fn tenant(&self) -> Option<&str> {
        self.settings["tenant"].as_str().filter(|_| self.kind.has_tenants())
    }
}

async fn list(context: &RequestContext, kind: &'static ListKind, query: &Form) -> Result<Markup, ApiError> {
    let plugin_peers = async {
        match kind.list {
            "peer" => context.get::<Vec<PluginPeerView>>("/v1/plugin-peers").await,
            _ => Ok(Vec::new()),
        }
    };
    let (listing, plugin_peers) = tokio::join!(Listing::read(context, kind), plugin_peers);
    let (listing, plugin_peers) = (listing?, plugin_peers?);
    let filter = ListFilter::new(query);
    let all = listing.entries(&filter, "");
    let in_state = |state| all.iter().filter(|one| one.is_in_state(state)).count();
    let state = |value, label| FilterState { value, label, count: in_state(value) };
    let states =
        [state("up", "a link is up"), state("down", "no link is up"), state("waiting", "messages wait")];
    let found: Vec<&ListEntry<'_>> = all.iter().filter(|one| one.is_in_state(filter.state())).collect();
    let up = found.iter().filter(|one| one.is_up()).count();
    let shown = Pagination::new(found.len(), query.text("page"));
    let rows: Vec<_> = found[shown.from..shown.upto].iter().map(|one| one.row()).collect();
    let empty = html! {
        @if filter.is_narrow() {
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
        Column::Text(kind.address_column.0),
        Column::Number("Waiting"),
        Column::Number("In flight"),
        Column::Text("Blocked by"),
    ];
    let names = listing.document.named(kind.list).map(|(name, _)| name);
    Ok(html! {
        div.heading {
            h1 { (kind.title) }
            @if context.has_permission(Permission::Configure) { a.button.primary href=(format!("{}/new", kind.path)) { (kind.add) } }
            @for format in ["csv", "json"] { (export_link(&format!("{}.{format}", kind.path), &filter.parameters())) }
        }
        (filter.form((kind.path, kind.title, if kind.has_tenants() { "Name or tenant" } else { "Name or address" }), names, all.len(), &states))
        p.muted.counts {
            (count(found.len() as u64)) @if filter.is_narrow() { " of " (count(listing.document.named(kind.list).count() as u64)) }
            @if !rows.is_empty() { ": " (count(up as u64)) " with a link, " (count((found.len() - up) as u64)) " without" }
        }
        section.card { (numeric_table(kind.title, &columns, &rows, &empty)) }
        @if !plugin_peers.is_empty() { (plugin_peers_section(&plugin_peers)) }
        (shown.links(kind.path, &filter.parameters()))
    })
}

/// The peers whose protocol a plugin implements.
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
