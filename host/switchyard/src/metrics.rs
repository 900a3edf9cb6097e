//! The metrics of the engine, of peers and accounts, and of the front ends. Services add their own.

use crate::core_handle::{SIZE_BOUNDS, TIME_BOUNDS};
use crate::gsm::write_gsm_metrics;
use crate::leading_node;
use crate::pace_buckets::write_pace_metrics;
use crate::process_metrics::write_process_metrics;
use crate::status::StatusService;
use admin::metrics::{self, Metric, MetricsPage};
use engine::{ANSWER_BOUNDS, PeerCounts};
use model::FinalState;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

struct CountMetrics {
    submitted: &'static Metric,
    throttled: &'static Metric,
    refused: &'static Metric,
    ended: &'static Metric,
    response_times: &'static Metric,
}

const PEERS: CountMetrics = CountMetrics {
    submitted: &metrics::PEER_SUBMITTED,
    throttled: &metrics::PEER_THROTTLED,
    refused: &metrics::PEER_REFUSED,
    ended: &metrics::PEER_ENDED,
    response_times: &metrics::PEER_ANSWER_SECONDS,
};

const ACCOUNTS: CountMetrics = CountMetrics {
    submitted: &metrics::ACCOUNT_SUBMITTED,
    throttled: &metrics::ACCOUNT_THROTTLED,
    refused: &metrics::ACCOUNT_REFUSED,
    ended: &metrics::ACCOUNT_ENDED,
    response_times: &metrics::ACCOUNT_ANSWER_SECONDS,
};

fn write_counts(
    page: &mut MetricsPage,
    count_metrics: &CountMetrics,
    name: &str,
    counts: &PeerCounts,
    describe: impl Fn(u32) -> String,
) {
    if *counts == PeerCounts::default() {
        return;
    }
    page.put(count_metrics.submitted, &[name], counts.submitted as f64);
    page.put(count_metrics.throttled, &[name], counts.throttled as f64);
    // Codes with the same description are one series.
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    for (code, count) in &counts.refused {
        *refused.entry(code.map_or_else(|| "other".to_owned(), &describe)).or_default() += count;
    }
    for (code, count) in refused {
        page.put(count_metrics.refused, &[name, &code], count as f64);
    }
    for state in FinalState::ALL {
        page.put(count_metrics.ended, &[name, state.name()], counts.ended[state as usize] as f64);
    }
    let bounds = ANSWER_BOUNDS.map(|ms| ms as f64 / 1e3);
    page.histogram(
        count_metrics.response_times,
        &[name],
        &bounds,
        &counts.answers,
        counts.answer_time.as_secs_f64(),
    );
}

impl StatusService {
    /// All metrics, in the text format of Prometheus.
    pub(crate) fn write_metrics(&self) -> String {
        let mut page = MetricsPage::default();
        write_process_metrics(self.core.clock.started_at(), &mut page);
        self.write_core_metrics(&mut page);
        self.messages.write_queue_action_metrics(&mut page);
        write_pace_metrics(&self.core, &mut page);
        self.event_sinks.write_event_metrics(&mut page);
        self.records.write_record_metrics(&mut page);
        self.write_front_end_metrics(&mut page);
        write_gsm_metrics(&self.networks, &mut page);
        let mut links: BTreeMap<(String, &str, &str), u64> = BTreeMap::new();
        for link in admin::Overview::links(self) {
            *links.entry((link.peer, link.role.name(), link.phase.name())).or_default() += 1;
        }
        for ((peer, role, phase), count) in links {
            page.put(&metrics::LINKS, &[&peer, role, phase], count as f64);
        }
        let counts = &self.core.counts;
        let load = |buckets: &[std::sync::atomic::AtomicU64; 11]| -> Vec<u64> {
            buckets.iter().map(|bucket| bucket.load(Relaxed)).collect()
        };
        let seconds: Vec<f64> = TIME_BOUNDS.iter().map(|bound| *bound as f64 / 1e6).collect();
        let total = counts.commit_us.load(Relaxed) as f64 / 1e6;
        page.histogram(&metrics::COMMIT_SECONDS, &[], &seconds, &load(&counts.times), total);
        let sizes: Vec<f64> = SIZE_BOUNDS.iter().map(|bound| *bound as f64).collect();
        let rows = counts.rows.load(Relaxed) as f64;
        page.histogram(&metrics::COMMIT_ROWS, &[], &sizes, &load(&counts.sizes), rows);
        page.put(&metrics::COMMIT_BYTES, &[], counts.octets.load(Relaxed) as f64);
        page.put(&metrics::LOADS, &[], counts.loads.load(Relaxed) as f64);
        self.hooks.write_hook_metrics(&mut page);
        self.pools.write_pool_metrics(&mut page);
        page.put(&metrics::DISK_FREE, &[], counts.disk_free.load(Relaxed) as f64);
        page.put(&metrics::DISK_LOW, &[], f64::from(u8::from(counts.disk_low.load(Relaxed))));
        page.put(&metrics::RECOVERY_SECONDS, &[], self.recovery_ms as f64 / 1e3);
        page.put(&metrics::RECOVERED, &[], self.recovered as f64);
        if let Some(node) = &self.cluster {
            leading_node::write_metrics(&node.view(), &mut page);
        }
        let listeners = self.links.listener_counts();
        page.put(&metrics::CONNECTIONS, &[], listeners.connections as f64);
        page.put(&metrics::TURNED_AWAY, &[], listeners.turned_away as f64);
        for (name, counts) in [("http", &self.http_connections), ("business", &self.business_connections)] {
            page.put(&metrics::HTTP_CONNECTIONS, &[name], counts.accepted.load(Relaxed) as f64);
            page.put(&metrics::HTTP_TURNED_AWAY, &[name], counts.turned_away() as f64);
        }
        page.put(&metrics::BINDS_REFUSED, &[], listeners.binds_refused as f64);
        page.finish()
    }

    fn write_core_metrics(&self, page: &mut MetricsPage) {
        let Some((totals, peers, live, (cached, quarantine))) = self.core.query(|engine, _| {
            let sizes = (engine.cached(), engine.quarantine_length());
            (engine.totals().clone(), engine.peers(), engine.live(), sizes)
        }) else {
            return;
        };
        for (metric, value) in [
            (&metrics::ACCEPTED, totals.accepted),
            (&metrics::REFUSED, totals.refused),
            (&metrics::SUBMITTED, totals.submitted),
            (&metrics::ATTEMPTS_REFUSED, totals.attempts_refused),
            (&metrics::THROTTLED, totals.throttled),
            (&metrics::UNCERTAIN, totals.uncertain),
            (&metrics::SENT_AGAIN, totals.sent_again),
            (&metrics::DLRS_MATCHED, totals.dlrs_matched),
            (&metrics::DLRS_UNMATCHED, totals.dlrs_unmatched),
            (&metrics::DLRS_LATE, totals.late_dlrs),
            (&metrics::DLRS_REMAPPED, totals.dlrs_remapped),
            (&metrics::RECEIPT_NEXT_LEGS, totals.second_legs),
            (&metrics::DLRS_MADE, totals.dlrs_made),
            (&metrics::DLRS_DELIVERED, totals.dlrs_delivered),
            (&metrics::QUARANTINED, totals.quarantined),
            (&metrics::SCREEN_DROPS, totals.dropped_by_screens),
        ] {
            page.put(metric, &[], value as f64);
        }
        for state in FinalState::ALL {
            page.put(&metrics::ENDED, &[state.name()], totals.ended[state as usize] as f64);
        }
        for peer in &peers {
            let name = self.messages.name_of(peer.peer);
            for (state, count) in [
                ("queued", peer.queued),
                ("suspended", peer.suspended),
                ("paced", peer.paced),
                ("deferred", peer.deferred),
                ("resolving", peer.resolving),
                ("in-flight", peer.in_flight),
                ("uncertain", peer.uncertain),
                ("awaiting-dlr", peer.awaiting_dlr),
            ] {
                page.put(&metrics::QUEUE, &[&name, state], count as f64);
            }
            page.put(&metrics::SUBSCRIBERS_BLOCKED, &[&name], peer.blocked_subscribers as f64);
            if let Some(rate) = peer.learnt_rate {
                page.put(&metrics::LEARNT_RATE, &[&name], rate);
            }
        }
        self.write_counts(page);
        page.put(&metrics::WAITING, &[], live as f64);
        page.put(&metrics::QUARANTINE, &[], quarantine as f64);
        page.put(&metrics::BODY_CACHE, &[], cached as f64);
    }

    fn write_counts(&self, page: &mut MetricsPage) {
        let query = |engine: &engine::Engine, _| {
            let counts = engine.counts();
            counts.map(|(id, given, own)| (id, given.clone(), own.clone())).collect::<Vec<_>>()
        };
        for (id, given, submitted) in self.core.query(query).unwrap_or_default() {
            let name = self.messages.name_of(id);
            write_counts(page, &PEERS, &name, &given, |code| self.causes.describe_code(&name, code));
            if given.suspected > 0 {
                page.put(&metrics::PEER_DLRS_SUSPECTED, &[&name], given.suspected as f64);
            }
            write_counts(page, &ACCOUNTS, &name, &submitted, |code| code.to_string());
        }
    }

    fn write_front_end_metrics(&self, page: &mut MetricsPage) {
        if let Some(shell) = self.shell.get() {
            let state = shell.state();
            page.put(&metrics::SHELL_CONNECTIONS, &[], state.connections as f64);
            page.put(&metrics::SHELL_TURNED_AWAY, &[], state.turned_away as f64);
            for ((request, result), count) in state.requests {
                page.put(&metrics::SHELL_REQUESTS, &[request, result], count as f64);
            }
        }
        put_plugin_peers(page, &self.causes.plugin_peers.states());
        let states = self.business.states();
        for state in &states {
            for calls in &state.requests {
                let labels = [&*state.account, &*calls.method, &*calls.result];
                page.put(&metrics::BUSINESS_REQUESTS, &labels, calls.count as f64);
            }
        }
        for (metric, value) in [
            (
                &metrics::BUSINESS_ACCEPTED,
                (|state| Some(state.accepted)) as fn(&api::BusinessView) -> Option<u64>,
            ),
            (&metrics::BUSINESS_FETCHED, |state| Some(state.fetched)),
            (&metrics::PUSHED, |state| state.push.as_ref().map(|push| push.pushed)),
            (&metrics::PUSH_FAILURES, |state| state.push.as_ref().map(|push| push.failures)),
        ] {
            for state in &states {
                if let Some(value) = value(state) {
                    page.put(metric, &[&state.account], value as f64);
                }
            }
        }
        self.write_redis_metrics(page);
    }

    fn write_redis_metrics(&self, page: &mut MetricsPage) {
        let Some(redis) = &self.redis else { return };
        let state = redis.state();
        page.put(&metrics::REDIS_CONNECTIONS, &[], state.open as f64);
        page.put(&metrics::REDIS_TURNED_AWAY, &[], state.turned_away as f64);
        page.put(&metrics::REDIS_REQUESTS, &[], state.requests as f64);
        page.put(&metrics::REDIS_REFUSED, &["no permission"], state.denied as f64);
        page.put(&metrics::REDIS_REFUSED, &["wrong password"], state.wrong_passwords as f64);
    }
}

/// The metrics of plugin peers. All series of one metric are written together.
fn put_plugin_peers(page: &mut MetricsPage, peers: &[api::PluginPeerView]) {
    for peer in peers {
        let outcomes = [
            ("accepted", peer.accepted),
            ("refused", peer.refused),
            ("uncertain", peer.uncertain),
            ("not-sent", peer.not_sent),
        ];
        for (outcome, count) in outcomes {
            page.put(&metrics::PLUGIN_PEER_SUBMITTED, &[&peer.peer, outcome], count as f64);
        }
    }
    for peer in peers {
        page.put(&metrics::PLUGIN_PEER_IN_FLIGHT, &[&peer.peer], peer.in_flight as f64);
    }
    for peer in peers {
        page.put(&metrics::PLUGIN_PEER_BUSY, &[&peer.peer], peer.busy_ms as f64 / 1_000.0);
    }
    for api::PluginPeerView { peer, callbacks, .. } in peers {
        let results = [
            ("accepted", callbacks.accepted),
            ("refused", callbacks.refused),
            ("failed", callbacks.failed),
            ("limited", callbacks.limited),
        ];
        for (result, count) in results {
            page.put(&metrics::PLUGIN_PEER_CALLBACKS, &[peer, result], count as f64);
        }
    }
}
