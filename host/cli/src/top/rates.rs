//! Rates, computed from two snapshots.

use crate::snapshot::{Snapshot, is_link_up};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// The number of samples of the curve.
const CURVE_POINTS: usize = 240;
/// The names of the final states in the totals.
const FINAL_STATES: [&str; 6] = ["delivered", "relayed", "failed", "expired", "rejected", "cancelled"];

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
    pub(super) plugins: Vec<(String, f64, f64)>,
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
        document["queues"] = queues_by_trouble(&self.snapshot, now).into_iter().cloned().collect();
        document["links"] = self.snapshot.links.clone();
        document
    }
}

fn rates(before: &Snapshot, after: &Snapshot, seconds: f64) -> Rates {
    let total = |snapshot: &Snapshot, name: &str| snapshot.status["totals"][name].as_u64().unwrap_or(0);
    // A restart resets the counters, so there are no rates.
    let restarted = after.status["uptime_seconds"].as_u64() < before.status["uptime_seconds"].as_u64();
    let more = |name: &str| {
        if restarted { 0 } else { total(after, name).saturating_sub(total(before, name)) }
    };
    let per_second = |count: u64| count as f64 / seconds;
    let commits = more("commits");
    Rates {
        accepted: per_second(more("accepted")),
        submitted: per_second(more("submitted")),
        ended: per_second(FINAL_STATES.iter().map(|name| more(name)).sum()),
        failed: per_second(more("failed") + more("expired")),
        refused: per_second(more("refused")),
        commit_ms: (commits > 0).then(|| more("commit_us") as f64 / 1_000.0 / commits as f64),
        plugins: if restarted { Vec::new() } else { plugins(before, after, seconds) },
    }
}

fn plugins(before: &Snapshot, after: &Snapshot, seconds: f64) -> Vec<(String, f64, f64)> {
    let count = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
    let mut found = Vec::new();
    for (hook, plugin) in after.plugins().filter(|(_, plugin)| plugin["live"] != false) {
        let earlier = before.plugins().find(|(other, earlier)| {
            *other == hook && ["plugin", "version", "live"].iter().all(|name| earlier[*name] == plugin[*name])
        });
        let Some((_, earlier)) = earlier else { continue };
        let calls = count(plugin, "calls").saturating_sub(count(earlier, "calls"));
        if calls > 0 {
            let spent = count(plugin, "nanoseconds").saturating_sub(count(earlier, "nanoseconds"));
            found.push((hook.to_owned(), calls as f64 / seconds, spent as f64 / 1_000.0 / calls as f64));
        }
    }
    found
}

/// The queues, the worst first: messages without a link, then uncertain messages, then by the age of the oldest message.
pub(super) fn queues_by_trouble(snapshot: &Snapshot, now: u64) -> Vec<&Value> {
    let mut queues: Vec<&Value> = snapshot.queues().iter().collect();
    queues.sort_by_cached_key(|queue| {
        let count = |name: &str| queue[name].as_u64().unwrap_or(0);
        let waits = count("queued") + count("deferred");
        let age = queue["oldest"].as_u64().map_or(0, |oldest| now.saturating_sub(oldest));
        let stuck = waits > 0 && count("links") == 0;
        let name = queue["peer"].as_str().unwrap_or_default().to_owned();
        (std::cmp::Reverse((stuck, count("uncertain") > 0, age / 1_000, waits)), name)
    });
    queues
}

/// The links, those that are down first.
pub(super) fn links(snapshot: &Snapshot) -> Vec<&Value> {
    let mut links: Vec<&Value> = snapshot.links().iter().collect();
    let name = |link: &Value| link["peer"].as_str().unwrap_or_default().to_owned();
    links.sort_by_cached_key(|link| {
        (is_link_up(link), std::cmp::Reverse(link["in_flight"].as_u64()), name(link))
    });
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use api::{QueueView, StatusTotals, StatusView};
    use testkit::api_document::fixture;

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
        let hooks = json!([fixtures::router(calls, calls * 7_000)]);
        Snapshot {
            status: fixture("GET", "/v1/status", 200, json!(status)),
            hooks: fixture("GET", "/v1/hooks", 200, hooks),
            ..Snapshot::default()
        }
    }

    #[test]
    fn rates_are_differences_over_time() {
        let mut data = TopData::of(snapshot(10, 1_000, 100, 500));
        assert_eq!(data.rates, Rates::default());
        data.next(snapshot(12, 1_100, 110, 520), Duration::from_secs(2));
        let rates = &data.rates;
        assert_eq!((rates.accepted, rates.ended, rates.failed), (50.0, 30.0, 5.0));
        assert_eq!(rates.commit_ms, Some(1.5));
        assert_eq!(rates.plugins, [("router".to_owned(), 10.0, 7.0)]);
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
        let queues = json!([
            queue("idle", 0, 1, 0, None),
            queue("old", 5, 1, 0, Some(1_000)),
            queue("young", 500, 1, 0, Some(90_000)),
            queue("doubt", 0, 1, 2, None),
            queue("stuck", 1, 0, 0, Some(99_000)),
            queue("away", 0, 0, 0, None),
        ]);
        let queues = fixture("GET", "/v1/queues", 200, queues);
        let snapshot = Snapshot { queues, ..Snapshot::default() };
        let names: Vec<&str> = queues_by_trouble(&snapshot, 100_000)
            .iter()
            .map(|queue| queue["peer"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["stuck", "doubt", "old", "young", "away", "idle"]);
    }
}
