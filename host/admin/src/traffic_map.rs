//! A map of the traffic of the last minute, with a size that does not depend on the number of accounts and peers.

use crate::attention::{AttentionSources, ProvidesAttention};
use crate::problem::Problem;
use crate::recent_metrics::MetricsSampler;
use crate::request::{QueryParams, page_limit};
use crate::service::{Provides, Service, call};
use crate::traffic::{RecentTraffic, hook_traffic};
use api::{
    AttentionSeverity, AttentionSubjectKind, AttentionView, QueueView, TrafficCounts, TrafficFlowView,
    TrafficLineView, TrafficMapView, TrafficNodeView, TrafficView,
};
use axum::Json;
use axum::extract::Extension;
use model::Direction;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Default number of accounts and of peers that are shown by name.
const DEFAULT_NODES: usize = 9;
const MAX_NODES: usize = 50;
/// The default number of flows.
const DEFAULT_FLOWS: usize = 40;
const MAX_FLOWS: usize = 200;

pub(crate) fn routes<S: Provides<dyn RecentTraffic> + ProvidesAttention>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(map))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MapQuery {
    /// Maximum number of accounts and of peers that are shown by name; default 9.
    #[param(minimum = 1, maximum = 50)]
    nodes: Option<usize>,
    /// Maximum number of flows; default 40.
    #[param(minimum = 1, maximum = 200)]
    flows: Option<usize>,
}

/// Shows the traffic of the last minute as a map. Accounts and peers with findings and the busiest ones are shown by
/// name, all others as one node; with the traffic between them.
#[utoipa::path(
    get,
    path = "/v1/traffic/map",
    params(MapQuery),
    responses((status = 200, description = "The map.", body = TrafficMapView)),
)]
async fn map(
    backend: Service<dyn RecentTraffic>,
    sources: AttentionSources,
    Extension(sampler): Extension<Arc<MetricsSampler>>,
    QueryParams(query): QueryParams<MapQuery>,
) -> Result<Json<TrafficMapView>, Problem> {
    let nodes = page_limit(Some(query.nodes.unwrap_or(DEFAULT_NODES)), MAX_NODES)?;
    let flows = page_limit(Some(query.flows.unwrap_or(DEFAULT_FLOWS)), MAX_FLOWS)?;
    let (mut traffic, waiting) =
        call(backend, |backend| Ok((backend.traffic(), backend.waiting_at_hooks()?))).await?;
    (traffic.hooks_window_ms, traffic.hooks) = hook_traffic(&sampler, &waiting);
    let (findings, queues) = call(Service(Arc::new(sources)), AttentionSources::findings_and_queues).await?;
    Ok(Json(traffic_map(&traffic, &queues, &findings, nodes, flows)))
}

/// The worse of two severities.
fn worse_severity(
    one: Option<AttentionSeverity>,
    other: Option<AttentionSeverity>,
) -> Option<AttentionSeverity> {
    one.into_iter().chain(other).min()
}

/// The rank of a severity; the worst is lowest.
fn rank(severity: Option<AttentionSeverity>) -> u8 {
    match severity {
        Some(AttentionSeverity::Error) => 0,
        Some(AttentionSeverity::Warning) => 1,
        None => 2,
    }
}

/// The nodes of one side, and the index of each name.
struct Nodes {
    shown: Vec<TrafficNodeView>,
    indexes: HashMap<String, usize>,
}

impl Nodes {
    /// The index of a name: its own node, or the node of all others.
    fn node_index(&self, name: &str) -> Option<usize> {
        let others = self.shown.last().filter(|node| node.name.is_none()).map(|_| self.shown.len() - 1);
        self.indexes.get(name).copied().or(others)
    }
}

/// Builds the map: at most `nodes` accounts and peers by name, plus one node for the others; at most `flows` flows.
#[must_use]
pub fn traffic_map(
    traffic: &TrafficView,
    queues: &[QueueView],
    findings: &[AttentionView],
    nodes: usize,
    flows: usize,
) -> TrafficMapView {
    let mut worst: HashMap<(AttentionSubjectKind, &str), AttentionSeverity> = HashMap::new();
    for finding in findings {
        if let Some(name) = &finding.subject.name {
            let known = worst.entry((finding.subject.kind, name)).or_insert(finding.severity);
            *known = finding.severity.min(*known);
        }
    }
    let accounts = side(traffic, queues, &worst, true, nodes);
    let peers = side(traffic, queues, &worst, false, nodes);
    let mut shown: Vec<&TrafficFlowView> = traffic.flows.iter().collect();
    shown.sort_by_key(|flow| (rank(flow.counts.severity()), Reverse(flow.counts.attempts())));
    let mt = traffic.flows.iter().filter(|flow| flow.direction == Direction::Mt);
    TrafficMapView {
        window_ms: traffic.window_ms,
        accepted: traffic.submitters.iter().map(|submitter| submitter.accepted).sum(),
        submitted: mt.map(|flow| flow.counts.attempts()).sum(),
        lines: lines(traffic, &accounts, &peers),
        flows: shown.into_iter().take(flows).cloned().collect(),
        flow_count: traffic.flows.len() as u64 + traffic.flows_left_out,
        hooks_window_ms: traffic.hooks_window_ms,
        hooks: traffic.hooks.clone(),
        accounts: accounts.shown,
        peers: peers.shown,
    }
}

fn lines(traffic: &TrafficView, accounts: &Nodes, peers: &Nodes) -> Vec<TrafficLineView> {
    let mut lines: BTreeMap<(usize, bool, usize), TrafficLineView> = BTreeMap::new();
    for flow in &traffic.flows {
        let mo = flow.direction == Direction::Mo;
        let (account, peer) = if mo { (&flow.to, &flow.from) } else { (&flow.from, &flow.to) };
        let (Some(account), Some(peer)) = (accounts.node_index(account), peers.node_index(peer)) else {
            continue;
        };
        let line = lines.entry((account, mo, peer)).or_insert_with(|| TrafficLineView {
            account,
            peer,
            direction: flow.direction,
            counts: TrafficCounts::default(),
            severity: None,
        });
        line.counts.add(&flow.counts);
        line.severity = worse_severity(line.severity, flow.counts.severity());
    }
    lines.into_values().filter(|line| line.counts.attempts() > 0).collect()
}

/// The accounts or the peers.
fn side(
    traffic: &TrafficView,
    queues: &[QueueView],
    findings: &HashMap<(AttentionSubjectKind, &str), AttentionSeverity>,
    accounts: bool,
    limit: usize,
) -> Nodes {
    let kind = if accounts { AttentionSubjectKind::Account } else { AttentionSubjectKind::Peer };
    let mut nodes: HashMap<&str, TrafficNodeView> = HashMap::new();
    for queue in queues.iter().filter(|queue| queue.is_account == accounts) {
        let finding = |kind| findings.get(&(kind, &*queue.peer)).copied();
        let severity = worse_severity(finding(kind), finding(AttentionSubjectKind::Queue));
        nodes.insert(&queue.peer, queue_node(queue, severity));
    }
    for flow in &traffic.flows {
        let mt = flow.direction == Direction::Mt;
        // Removed accounts and peers may still have traffic.
        let node = nodes.entry(if accounts == mt { &flow.from } else { &flow.to }).or_default();
        if !accounts {
            node.severity = worse_severity(node.severity, flow.counts.severity());
            node.messages += if mt { flow.counts.attempts() } else { 0 };
        }
    }
    if accounts {
        for submitter in &traffic.submitters {
            if let Some(node) = nodes.get_mut(&*submitter.name) {
                node.messages = submitter.accepted;
            }
        }
    }
    let named = nodes.into_iter().map(|(name, node)| TrafficNodeView {
        name: Some(name.to_owned()),
        members: 1,
        troubled: u64::from(node.severity.is_some()),
        quiet: u64::from(node.messages == 0 && node.waiting == 0),
        ..node
    });
    let mut shown: Vec<TrafficNodeView> = named.collect();
    shown.sort_by(|a, b| {
        let place = |node: &TrafficNodeView| {
            (rank(node.severity), node.quiet, Reverse(node.messages), Reverse(node.waiting))
        };
        place(a).cmp(&place(b)).then_with(|| a.name.cmp(&b.name))
    });
    // If there is only one more, it is shown by its name.
    if shown.len() > limit + 1 {
        let others = fold(&shown.split_off(limit));
        shown.push(others);
    }
    let indexes = shown.iter().enumerate().filter_map(|(index, node)| Some((node.name.clone()?, index)));
    Nodes { indexes: indexes.collect(), shown }
}

fn queue_node(queue: &QueueView, severity: Option<AttentionSeverity>) -> TrafficNodeView {
    let waiting = queue.waiting().saturating_sub(queue.in_flight + queue.awaiting_dlr);
    TrafficNodeView {
        waiting,
        severity,
        configured: queue.configured,
        links: queue.links as u64,
        blocked_by: (waiting > 0 && queue.blocked_by != "idle").then(|| queue.blocked_by.clone()),
        ..TrafficNodeView::default()
    }
}

/// Merges the nodes that are not shown by name into one.
fn fold(others: &[TrafficNodeView]) -> TrafficNodeView {
    let sum = |of: fn(&TrafficNodeView) -> u64| others.iter().map(of).sum();
    TrafficNodeView {
        name: None,
        members: others.len() as u64,
        troubled: sum(|node| node.troubled),
        quiet: sum(|node| node.quiet),
        messages: sum(|node| node.messages),
        waiting: sum(|node| node.waiting),
        severity: others.iter().fold(None, |severity, node| worse_severity(severity, node.severity)),
        configured: others.iter().all(|node| node.configured),
        links: sum(|node| node.links),
        blocked_by: None,
    }
}

#[cfg(test)]
mod tests;
