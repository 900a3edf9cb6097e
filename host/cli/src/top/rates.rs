//! Rates, computed from two snapshots.

use crate::snapshot::Snapshot;
use api::{LinkView, PluginCountsView, PluginPeerView, QueueView, StatusTotals};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// The number of samples of the curve.
const CURVE_POINTS: usize = 240;

/// Rates a second, and durations, between two snapshots.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) accepted: f64,
    pub(super) submitted: f64,
    pub(super) ended: f64,
    pub(super) failed: f64,
    pub(super) refused: f64,
    /// The mean duration of a commit with its fsync, in milliseconds; `None` without commits.
    pub(super) commit_ms: Option<f64>,
    /// For each called plugin: hook, calls a second, mean microseconds of a call.
    pub(super) plugins: Vec<(&'static str, f64, f64)>,
    /// For each peer that a plugin serves: its name, and completed submit attempts a second.
    pub(super) plugin_peers: Vec<(String, f64)>,
}

/// The data of the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct TopData {
    pub(super) snapshot: Snapshot,
    pub(super) rates: Rates,
    /// Messages submitted a second, the newest last.
    pub(super) curve: VecDeque<u64>,
}

impl TopData {
    pub(super) fn of(snapshot: Snapshot) -> Self {
        Self { snapshot, ..Self::default() }
    }

    /// Takes the next snapshot, `after` the last one.
    pub(super) fn next(&mut self, snapshot: Snapshot, after: Duration) {
        self.rates = rates(&self.snapshot, &snapshot, after.as_secs_f64().max(0.001));
        self.snapshot = snapshot;
        if self.curve.len() == CURVE_POINTS {
            self.curve.pop_front();
        }
        self.curve.push_back(self.rates.submitted.round() as u64);
    }

    /// The data as JSON.
    pub(super) fn json(&self, now: u64) -> Value {
        let rates = &self.rates;
        let mut document = self.snapshot.summary_json();
        document["rates"] = json!({
            "accepted": rates.accepted, "submitted": rates.submitted, "ended": rates.ended,
            "failed": rates.failed, "refused": rates.refused,
        });
        document["commit-ms"] = json!(rates.commit_ms);
        let plugins = rates.plugins.iter();
        let plugins = plugins.map(|(hook, calls, us)| json!({ "hook": hook, "calls": calls, "us": us }));
        document["plugins"] = plugins.collect();
        let peers = rates.plugin_peers.iter();
        let peers = peers.map(|(peer, attempts)| json!({ "peer": peer, "attempts": attempts }));
        document["rates"]["plugin-peers"] = peers.collect();
        document["queues"] = json!(queues_by_trouble(&self.snapshot, now));
        document["links"] = json!(self.snapshot.links);
        document
    }
}

fn rates(before: &Snapshot, after: &Snapshot, seconds: f64) -> Rates {
    let (earlier, later) = (&before.status, &after.status);
    // A restart resets the counters, so there are no rates.
    let restarted = later.uptime_seconds < earlier.uptime_seconds;
    let more = |of: fn(&StatusTotals) -> u64| {
        if restarted { 0 } else { of(&later.totals).saturating_sub(of(&earlier.totals)) }
    };
    let per_second = |count: u64| count as f64 / seconds;
    let commits = more(|totals| totals.commits);
    let failed = more(|totals| totals.failed) + more(|totals| totals.expired);
    let delivered = more(|totals| totals.delivered) + more(|totals| totals.relayed);
    let others = more(|totals| totals.rejected) + more(|totals| totals.cancelled);
    Rates {
        accepted: per_second(more(|totals| totals.accepted)),
        submitted: per_second(more(|totals| totals.submitted)),
        ended: per_second(delivered + failed + others),
        failed: per_second(failed),
        refused: per_second(more(|totals| totals.refused)),
        commit_ms: (commits > 0).then(|| more(|totals| totals.commit_us) as f64 / 1_000.0 / commits as f64),
        plugins: if restarted { Vec::new() } else { plugins(before, after, seconds) },
        plugin_peers: if restarted { Vec::new() } else { plugin_peers(before, after, seconds) },
    }
}

/// The completed submit attempts of a peer that a plugin serves.
fn attempts(peer: &PluginPeerView) -> u64 {
    peer.accepted + peer.refused + peer.uncertain
}

fn plugin_peers(before: &Snapshot, after: &Snapshot, seconds: f64) -> Vec<(String, f64)> {
    let rate = |peer: &PluginPeerView| {
        let earlier = before.plugin_peers.iter().find(|earlier| earlier.peer == peer.peer)?;
        Some((peer.peer.clone(), attempts(peer).saturating_sub(attempts(earlier)) as f64 / seconds))
    };
    after.plugin_peers.iter().filter_map(rate).collect()
}

fn plugins(before: &Snapshot, after: &Snapshot, seconds: f64) -> Vec<(&'static str, f64, f64)> {
    let mut found = Vec::new();
    // Bindings of tenants are counted together: there may be a thousand.
    let mut of_tenants: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    let known: HashMap<_, &PluginCountsView> = before
        .plugins()
        .filter(|(_, plugin)| plugin.live)
        .map(|(hook, plugin)| ((hook, &plugin.plugin, &plugin.version, &plugin.tenant), plugin))
        .collect();
    for (hook, plugin) in after.plugins().filter(|(_, plugin)| plugin.live) {
        let earlier = known.get(&(hook, &plugin.plugin, &plugin.version, &plugin.tenant));
        let Some(earlier) = earlier else { continue };
        let calls = plugin.calls.saturating_sub(earlier.calls);
        let spent = plugin.nanoseconds.saturating_sub(earlier.nanoseconds);
        if plugin.tenant.is_some() {
            let sum = of_tenants.entry(hook).or_default();
            *sum = (sum.0 + calls, sum.1 + spent);
        } else {
            found.push((hook, calls, spent));
        }
    }
    found.extend(of_tenants.into_iter().map(|(hook, (calls, spent))| (hook, calls, spent)));
    let rate = |(hook, calls, spent): (&'static str, u64, u64)| {
        (hook, calls as f64 / seconds, spent as f64 / 1_000.0 / calls as f64)
    };
    found.into_iter().filter(|(_, calls, _)| *calls > 0).map(rate).collect()
}

/// The queues, the worst first: messages without a link, then uncertain messages, then by the age of the oldest message.
pub(super) fn queues_by_trouble(snapshot: &Snapshot, now: u64) -> Vec<&QueueView> {
    let mut queues: Vec<&QueueView> = snapshot.queues.iter().collect();
    queues.sort_by_cached_key(|queue| {
        let waits = queue.queued + queue.deferred;
        let age = queue.oldest.map_or(0, |oldest| now.saturating_sub(oldest));
        let stuck = waits > 0 && queue.links == 0;
        (Reverse((stuck, queue.uncertain > 0, age / 1_000, waits)), queue.peer.clone())
    });
    queues
}

/// The links, down links first.
pub(super) fn links(snapshot: &Snapshot) -> Vec<&LinkView> {
    let mut links: Vec<&LinkView> = snapshot.links.iter().collect();
    links.sort_by_cached_key(|link| (link.is_up(), Reverse(link.in_flight), link.peer.clone()));
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use api::StatusView;

    fn snapshot(uptime: u64, accepted: u64, commits: u64, calls: u64) -> Snapshot {
        let totals = StatusTotals {
            accepted,
            submitted: accepted,
            delivered: accepted / 2,
            failed: accepted / 10,
            commits,
            commit_us: commits * 1_500,
            ..StatusTotals::default()
        };
        let status = StatusView { uptime_seconds: uptime, ..fixtures::status(totals) };
        let hooks = vec![fixtures::router(calls, calls * 7_000)];
        let plugin_peers = vec![PluginPeerView {
            peer: "api".to_owned(),
            accepted,
            refused: accepted / 10,
            ..PluginPeerView::default()
        }];
        Snapshot { status, hooks, plugin_peers, ..Snapshot::default() }
    }

    #[test]
    fn rates_are_differences_over_time() {
        let mut data = TopData::of(snapshot(10, 1_000, 100, 500));
        assert_eq!(data.rates, Rates::default());
        data.next(snapshot(12, 1_100, 110, 520), Duration::from_secs(2));
        let rates = &data.rates;
        assert_eq!((rates.accepted, rates.ended, rates.failed), (50.0, 30.0, 5.0));
        assert_eq!(rates.commit_ms, Some(1.5));
        assert_eq!(rates.plugins, [("router", 10.0, 7.0)]);
        assert_eq!(rates.plugin_peers, [("api".to_owned(), 55.0)]);
        data.next(snapshot(13, 1_100, 110, 520), Duration::from_secs(1));
        assert_eq!((data.rates.accepted, data.rates.commit_ms), (0.0, None));
        assert_eq!(data.curve, [50, 0]);
    }

    #[test]
    fn a_restart_gives_no_rates() {
        let mut data = TopData::of(snapshot(1_000, 5, 1, 1));
        data.next(snapshot(1, 3_000, 100, 100), Duration::from_secs(1));
        assert_eq!(data.rates, Rates::default());
        assert_eq!(data.rates.commit_ms, None);
    }

    #[test]
    fn queues_with_trouble_come_first() {
        let queue = |peer: &str, queued, links, uncertain, oldest| QueueView {
            queued,
            links,
            uncertain,
            oldest,
            ..fixtures::queue(peer)
        };
        let queues = vec![
            queue("idle", 0, 1, 0, None),
            queue("old", 5, 1, 0, Some(1_000)),
            queue("young", 500, 1, 0, Some(90_000)),
            queue("doubt", 0, 1, 2, None),
            queue("stuck", 1, 0, 0, Some(99_000)),
            queue("away", 0, 0, 0, None),
        ];
        let snapshot = Snapshot { queues, ..Snapshot::default() };
        let queues = queues_by_trouble(&snapshot, 100_000);
        let names: Vec<&str> = queues.iter().map(|queue| queue.peer.as_str()).collect();
        assert_eq!(names, ["stuck", "doubt", "old", "young", "away", "idle"]);
    }
}
