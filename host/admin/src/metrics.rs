//! All metrics: names, labels and documentation. No other module defines metric names.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    /// Counts up from 0 at the start of the daemon.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by bucket, with sum and count.
    Histogram,
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricType,
    /// Its label names.
    pub labels: &'static [&'static str],
    /// Its meaning and unit.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $kind:ident $constant:ident = $name:literal [$($label:literal),*];)*) => {
        $(
            $(#[doc = $help])+
            pub const $constant: Metric = Metric {
                name: $name,
                kind: MetricType::$kind,
                labels: &[$($label),*],
                help: concat!($($help),+),
            };
        )*
        /// All metrics.
        pub const ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    /// Messages accepted: durable, and confirmed to the submitter.
    Counter ACCEPTED = "switchyard_messages_accepted_total" [];
    /// Submissions that the engine refused: no route, queue full, invalid times.
    Counter REFUSED = "switchyard_messages_refused_total" [];
    /// Finished messages, by final state.
    Counter ENDED = "switchyard_messages_ended_total" ["state"];
    /// Submit attempts to peers.
    Counter SUBMITTED = "switchyard_messages_submitted_total" [];
    /// Submit attempts that a peer refused.
    Counter ATTEMPTS_REFUSED = "switchyard_attempts_refused_total" [];
    /// Submit attempts that a peer refused with a throttling or queue-full error.
    Counter THROTTLED = "switchyard_attempts_throttled_total" [];
    /// Submit attempts that a peer never answered.
    Counter UNCERTAIN = "switchyard_attempts_uncertain_total" [];
    /// Messages submitted again because the outcome was uncertain.
    Counter SENT_AGAIN = "switchyard_messages_sent_again_total" [];
    /// DLRs from peers that matched a message.
    Counter DLRS_MATCHED = "switchyard_dlrs_matched_total" [];
    /// DLRs from peers that matched no message.
    Counter DLRS_UNMATCHED = "switchyard_dlrs_unmatched_total" [];
    /// DLRs from peers of legs that a message has left because of a receipt policy's decision.
    Counter DLRS_LATE = "switchyard_dlrs_late_total" [];
    /// DLRs whose state or error code the receipt policy replaced.
    Counter DLRS_REMAPPED = "switchyard_dlrs_remapped_total" [];
    /// Messages that the receipt policy sent to their next leg.
    Counter RECEIPT_NEXT_LEGS = "switchyard_receipt_next_legs_total" [];
    /// DLRs created for submitters.
    Counter DLRS_MADE = "switchyard_dlrs_made_total" [];
    /// DLRs that an ESME accepted.
    Counter DLRS_DELIVERED = "switchyard_dlrs_delivered_total" [];
    /// DLRs that were not created because the account's queue was full; request them again with POST /v1/dlrs/resend.
    Counter DLRS_DROPPED = "switchyard_dlrs_dropped_total" [];
    /// DLRs from peers that match no message yet.
    Gauge DLRS_ORPHANED = "switchyard_dlrs_orphaned" [];
    /// Submissions repeated with the same idempotency key; the first answer was repeated.
    Counter REPEATED = "switchyard_submissions_repeated_total" [];
    /// Idempotency keys in memory.
    Gauge IDEMPOTENCY_KEYS = "switchyard_idempotency_keys" [];
    /// Submissions refused because the subscriber has opted out.
    Counter OPTED_OUT = "switchyard_submissions_opted_out_total" [];
    /// Finished messages that wait for the archive.
    Gauge ARCHIVE_BACKLOG = "switchyard_archive_backlog_messages" [];
    /// Messages written to the archive.
    Counter ARCHIVED = "switchyard_archive_messages_total" [];
    /// Batches that the archive's database did not accept.
    Counter ARCHIVE_FAILURES = "switchyard_archive_failures_total" [];
    /// Messages that the archive's database refuses individually. They stay in the store and are retried.
    Gauge ARCHIVE_REFUSED = "switchyard_archive_refused_messages" [];
    /// 1 while the archive's database answers, else 0.
    Gauge ARCHIVE_UP = "switchyard_archive_up" [];
    /// Short messages sent to MSCs, each segment counted, by core network.
    Counter GSM_MT = "switchyard_gsm_mt_total" ["network"];
    /// MT messages by core network and outcome: delivered, unanswered, late, twice, or the error of the network.
    Counter GSM_MT_ENDED = "switchyard_gsm_mt_ended_total" ["network", "end"];
    /// MO messages by core network and outcome: taken, repeated, or the RP cause of the refusal.
    Counter GSM_MO = "switchyard_gsm_mo_total" ["network", "end"];
    /// Signs that a handset is reachable again, by core network and kind: ready-for-sm, attached.
    Counter GSM_ALERTS = "switchyard_gsm_alerts_total" ["network", "how"];
    /// Subscribers with a message in flight, by core network.
    Gauge GSM_IN_FLIGHT = "switchyard_gsm_in_flight" ["network"];
    /// Connections to MSCs (or to the HLR) that can carry messages, by core network.
    Gauge GSM_CONNECTIONS = "switchyard_gsm_connections" ["network"];
    /// HLR requests by core network and outcome: answered, unanswered.
    Counter GSM_QUESTIONS = "switchyard_gsm_hlr_questions_total" ["network", "end"];
    /// Active faults of a core network, by core network and fault: hlr-down, hlr-ctrl-down, no-msc, msc-without-sms,
    /// double-name. Alert on any value above 0.
    Gauge GSM_FAULTS = "switchyard_gsm_faults" ["network", "fault"];
    /// Signalling frames relayed, by core network.
    Counter GSM_RELAYED = "switchyard_gsm_relayed_frames_total" ["network"];
    /// Calls of business systems by account, method and result.
    Counter BUSINESS_REQUESTS = "switchyard_business_requests_total" ["account", "method", "result"];
    /// Connections to the socket of the subscriber's command line.
    Gauge SHELL_CONNECTIONS = "switchyard_shell_connections" [];
    /// Connections to the socket of the subscriber's command line that were refused: not permitted, or too many.
    Counter SHELL_TURNED_AWAY = "switchyard_shell_turned_away_total" [];
    /// Requests on the subscriber's command line, by request and result.
    Counter SHELL_REQUESTS = "switchyard_shell_requests_total" ["request", "result"];
    /// Messages accepted from business systems.
    Counter BUSINESS_ACCEPTED = "switchyard_business_accepted_total" ["account"];
    /// Replies and DLRs that business systems fetched and acknowledged.
    Counter BUSINESS_FETCHED = "switchyard_business_fetched_total" ["account"];
    /// Replies and DLRs pushed to business systems and accepted by them.
    Counter PUSHED = "switchyard_pushes_total" ["account"];
    /// Pushes that business systems did not accept.
    Counter PUSH_FAILURES = "switchyard_push_failures_total" ["account"];
    /// Active queue actions, by action.
    Gauge QUEUE_ACTIONS = "switchyard_queue_actions" ["action"];
    /// Messages by peer and by state: queued, suspended, paced, deferred, resolving, in-flight, uncertain, awaiting-dlr.
    Gauge QUEUE = "switchyard_queue_messages" ["peer", "state"];
    /// Subscribers of a peer that get no messages until a failed message has been retried.
    Gauge SUBSCRIBERS_BLOCKED = "switchyard_subscribers_blocked" ["peer"];
    /// Rate limit of a peer in messages a second, as learnt from its throttling errors. Only for peers that have throttled.
    Gauge LEARNT_RATE = "switchyard_peer_learnt_rate" ["peer"];
    /// Submit attempts of messages and DLRs, by peer. Accounts count as peers for what they receive.
    Counter PEER_SUBMITTED = "switchyard_peer_submitted_total" ["peer"];
    /// Submit attempts that a peer refused with a throttling or queue-full error.
    Counter PEER_THROTTLED = "switchyard_peer_throttled_total" ["peer"];
    /// Submit attempts that a peer refused, by the name of the error code. After the first 32 codes, further codes count as
    /// "other".
    Counter PEER_REFUSED = "switchyard_peer_refused_total" ["peer", "code"];
    /// DLRs of a peer that the receipt policy did not believe.
    Counter PEER_DLRS_SUSPECTED = "switchyard_peer_dlrs_suspected_total" ["peer"];
    /// Finished messages by destination peer and final state.
    Counter PEER_ENDED = "switchyard_peer_ended_total" ["peer", "state"];
    /// Seconds from a submit attempt to the peer's answer.
    Histogram PEER_ANSWER_SECONDS = "switchyard_peer_answer_seconds" ["peer"];
    /// Submit attempts to a peer whose protocol a plugin implements, by outcome: accepted, refused, uncertain, not-sent.
    Counter PLUGIN_PEER_SUBMITTED = "switchyard_plugin_peer_submitted_total" ["peer", "outcome"];
    /// Messages that a plugin is submitting to its peer.
    Gauge PLUGIN_PEER_IN_FLIGHT = "switchyard_plugin_peer_in_flight" ["peer"];
    /// Seconds that a plugin has taken for all its submit attempts to a peer. At most the peer's window per second.
    Counter PLUGIN_PEER_BUSY = "switchyard_plugin_peer_busy_seconds_total" ["peer"];
    /// Callbacks of a peer, by result: accepted, refused (by the plugin), failed, limited.
    Counter PLUGIN_PEER_CALLBACKS = "switchyard_plugin_peer_callbacks_total" ["peer", "result"];
    /// Submit attempts of an account's messages, to all peers. Peers count as accounts for what their networks send.
    Counter ACCOUNT_SUBMITTED = "switchyard_account_submitted_total" ["account"];
    /// Submit attempts of an account's messages that a peer refused with a throttling or queue-full error.
    Counter ACCOUNT_THROTTLED = "switchyard_account_throttled_total" ["account"];
    /// Submit attempts of an account's messages that a peer refused, by the number of the error code. After the first 32 codes,
    /// further codes count as "other".
    Counter ACCOUNT_REFUSED = "switchyard_account_refused_total" ["account", "code"];
    /// Refused submissions in messages, by account or peer, protocol and reason code.
    Counter SUBMISSIONS_REFUSED = "switchyard_submissions_refused_total" ["account", "protocol", "code"];
    /// Finished messages by submitting account and final state.
    Counter ACCOUNT_ENDED = "switchyard_account_ended_total" ["account", "state"];
    /// Seconds from a submit attempt of an account's message to the peer's answer.
    Histogram ACCOUNT_ANSWER_SECONDS = "switchyard_account_answer_seconds" ["account"];
    /// Unfinished messages.
    Gauge WAITING = "switchyard_messages_waiting" [];
    /// Octets of message content in memory.
    Gauge BODY_CACHE = "switchyard_body_cache_bytes" [];
    /// Links by peer, role and phase.
    Gauge LINKS = "switchyard_links" ["peer", "role", "phase"];
    /// Duration of a commit to disk, in seconds.
    Histogram COMMIT_SECONDS = "switchyard_commit_seconds" [];
    /// Rows written by a commit.
    Histogram COMMIT_ROWS = "switchyard_commit_rows" [];
    /// Octets of records written.
    Counter COMMIT_BYTES = "switchyard_commit_bytes_total" [];
    /// Message contents loaded from disk for delivery.
    Counter LOADS = "switchyard_message_loads_total" [];
    /// Duration of a call of a live plugin version, in seconds.
    Histogram HOOK_SECONDS = "switchyard_hook_seconds" ["hook", "plugin", "version"];
    /// Plugin calls that failed, by kind: trap, deadline, memory, verdict, instance.
    Counter HOOK_FAULTS = "switchyard_hook_faults_total" ["hook", "plugin", "version", "kind"];
    /// Host calls of a plugin version, by interface of the contract.
    Counter HOOK_HOST_CALLS = "switchyard_hook_host_calls_total" ["hook", "plugin", "version", "interface"];
    /// The most linear memory that an instance of a plugin version has had, in octets. Alert if it nears the binding's limit.
    Gauge HOOK_MEMORY = "switchyard_hook_memory_bytes" ["hook", "plugin", "version"];
    /// Calls of the plugins that are bound for a tenant. Only tenants with such a binding have it.
    Counter TENANT_PLUGIN_CALLS = "switchyard_tenant_plugin_calls_total" ["tenant"];
    /// Calls of a tenant's plugins that failed.
    Counter TENANT_PLUGIN_FAULTS = "switchyard_tenant_plugin_faults_total" ["tenant"];
    /// Total duration of the calls of a tenant's plugins, in seconds.
    Counter TENANT_PLUGIN_SECONDS = "switchyard_tenant_plugin_seconds_total" ["tenant"];
    /// Keys of a plugin's durable counters.
    Gauge DURABLE_COUNTER_KEYS = "switchyard_durable_count_keys" ["plugin"];
    /// Counter calls refused because the plugin has reached its limit of keys. Alert on any increase: quotas refuse messages
    /// that they should allow.
    Counter DURABLE_COUNTER_REFUSED = "switchyard_durable_count_refused_total" ["plugin"];
    /// Failed attempts to write durable counters and deferred values. While this increases, a restart loses them.
    Counter DURABLE_COUNTER_WRITE_FAILURES = "switchyard_durable_count_write_failures_total" [];
    /// Outcomes of submit attempts and DLRs that were not counted for the capability `quality`, because the daemon was too busy.
    Counter OBSERVATIONS_LOST = "switchyard_peer_observations_lost_total" [];
    /// Outcomes of submit attempts and DLRs that were not counted for a new key of the capability `quality`, because the granted
    /// dimension has its maximum of 10,000 keys.
    Counter OBSERVATIONS_REFUSED = "switchyard_peer_observations_refused_total" [];
    /// Hook calls with a candidate on trial, by hook, mode and outcome: same, different, skipped (shadow); asked, failed,
    /// bypassed (canary).
    Counter CANDIDATE = "switchyard_candidate_questions_total" ["hook", "mode", "outcome"];
    /// Subscriber resolution, by what: waiting numbers, waiting messages, resolver calls in flight, and cached answers.
    Gauge RESOLVING = "switchyard_resolving" ["what"];
    /// Calls of the resolver.
    Counter RESOLVER_QUESTIONS = "switchyard_resolver_questions_total" [];
    /// Messages whose subscriber was in the resolver cache.
    Counter RESOLVER_HITS = "switchyard_resolver_cache_hits_total" [];
    /// Lookups of numbers, by what: waiting messages, waiting numbers, and cached answers.
    Gauge LOOKUPS = "switchyard_lookups" ["what"];
    /// Calls of the lookups.
    Counter LOOKUP_QUESTIONS = "switchyard_lookup_questions_total" [];
    /// Messages that were routed or rejected without a lookup of their number, because it did not succeed in time.
    Counter LOOKUP_FAILURES = "switchyard_lookup_failures_total" [];
    /// Messages whose number was in the lookup cache.
    Counter LOOKUP_HITS = "switchyard_lookup_cache_hits_total" [];
    /// Messages whose number was not in the lookup cache.
    Counter LOOKUP_MISSES = "switchyard_lookup_cache_misses_total" [];
    /// Messages that wait for a decision of the delivery policy.
    Gauge DECIDING = "switchyard_deciding_messages" [];
    /// Calls of the receipt policy that are not answered yet.
    Gauge RECEIPT_QUESTIONS = "switchyard_receipt_questions_pending" [];
    /// Ledger accounts, in millionths of the operator's currency, by account and what: balance, reserved, captured,
    /// funded.
    Gauge LEDGER = "switchyard_ledger_millionths" ["account", "what"];
    /// Tokens in the configured pace buckets: the number of messages or segments that may be sent at once.
    Gauge PACE_TOKENS = "switchyard_pace_bucket_tokens" ["bucket"];
    /// Messages that wait for a configured pace bucket.
    Gauge PACE_WAITING = "switchyard_pace_bucket_waiting" ["bucket"];
    /// Events accepted by an event sink.
    Counter EVENTS_SENT = "switchyard_events_sent_total" ["sink"];
    /// Failed attempts to send events to an event sink.
    Counter EVENTS_FAILED = "switchyard_event_sends_failed_total" ["sink"];
    /// 1 if an event sink accepted the last events, else 0.
    Gauge EVENT_SINK_UP = "switchyard_event_sink_up" ["sink"];
    /// Age of the oldest journal record whose events the sink has not accepted; 0 if there is none.
    Gauge EVENTS_LAG_SECONDS = "switchyard_events_lag_seconds" ["sink"];
    /// Journal records whose events the sink has not accepted.
    Gauge EVENTS_LAG_RECORDS = "switchyard_events_lag_records" ["sink"];
    /// Journal records that were removed before the sink got their events.
    Counter EVENTS_LOST_RECORDS = "switchyard_events_lost_records_total" ["sink"];
    /// Messages that a screen put into quarantine.
    Counter QUARANTINED = "switchyard_messages_quarantined_total" [];
    /// Messages in quarantine.
    Gauge QUARANTINE = "switchyard_quarantine_messages" [];
    /// Messages that a screen accepted and dropped.
    Counter SCREEN_DROPS = "switchyard_messages_dropped_total" [];
    /// Submissions refused because the ledger account could not pay.
    Counter UNPAID = "switchyard_submissions_unpaid_total" [];
    /// Settled charges that the biller has not yet acknowledged.
    Gauge UNSETTLED = "switchyard_ledger_unsettled" [];
    /// Numbers of number pools, by pool and state. First 1,000 pools by name only.
    Gauge POOL_NUMBERS = "switchyard_pool_numbers" ["pool", "state"];
    /// Numbers that can be acquired, by pool. First 1,000 pools by name only.
    Gauge POOL_READY = "switchyard_pool_ready_numbers" ["pool"];
    /// Requests for a number, by pool and result: acquired, none. First 1,000 pools by name only.
    Counter POOL_CALLS = "switchyard_pool_calls_total" ["pool", "result"];
    /// Number leases that expired, by pool. First 1,000 pools by name only.
    Counter POOL_LAPSED = "switchyard_pool_leases_lapsed_total" ["pool"];
    /// Number pools.
    Gauge POOLS = "switchyard_pools" [];
    /// Connections of Redis clients.
    Gauge REDIS_CONNECTIONS = "switchyard_redis_connections" [];
    /// Connections of Redis clients that were refused because there were too many.
    Counter REDIS_TURNED_AWAY = "switchyard_redis_turned_away_total" [];
    /// Requests of Redis clients on number pools.
    Counter REDIS_REQUESTS = "switchyard_redis_requests_total" [];
    /// Refused requests of Redis clients, by reason: no permission, wrong password.
    Counter REDIS_REFUSED = "switchyard_redis_refused_total" ["reason"];
    /// Rows of a lookup table.
    Gauge TABLE_ROWS = "switchyard_table_rows" ["table"];
    /// Free octets on the disk of the data directory.
    Gauge DISK_FREE = "switchyard_disk_free_bytes" [];
    /// 1 while free space is below the watermark and submissions are refused, else 0.
    Gauge DISK_LOW = "switchyard_disk_low" [];
    /// Seconds that the last start took to recover the unfinished messages.
    Gauge RECOVERY_SECONDS = "switchyard_recovery_seconds" [];
    /// Messages that the last start recovered.
    Gauge RECOVERED = "switchyard_recovered_messages" [];
    /// Nodes of the cluster that were alive in the last seconds, including this one; only in a cluster.
    Gauge CLUSTER_NODES_ALIVE = "switchyard_cluster_nodes_alive" [];
    /// The term of this leader.
    Gauge CLUSTER_TERM = "switchyard_cluster_term" [];
    /// 1 while a partition of the cluster has a leader, as seen by this leader, else 0.
    Gauge CLUSTER_PARTITION_LED = "switchyard_cluster_partition_led" ["partition"];
    /// 1 while older records exist on this node's disk only, because no other node keeps up, else 0.
    Gauge CLUSTER_DEGRADED = "switchyard_cluster_degraded" [];
    /// Records that are not durable yet in the tables of a node.
    Gauge CLUSTER_RECORDS_BEHIND = "switchyard_cluster_records_behind" ["node"];
    /// 1 while a member of etcd is healthy, else 0.
    Gauge ETCD_MEMBER_UP = "switchyard_etcd_member_up" ["endpoint"];
    /// Size of the database file of a member of etcd, in octets; its quota is 2 GiB by default.
    Gauge ETCD_MEMBER_BYTES = "switchyard_etcd_member_bytes" ["endpoint"];
    /// Connections accepted by the listeners for ESMEs, SPs and gateways.
    Counter CONNECTIONS = "switchyard_connections_total" [];
    /// Connections refused: too many in all or from one address, or not yet bound when a newer connection needed the slot.
    Counter TURNED_AWAY = "switchyard_connections_turned_away_total" [];
    /// Connections to the HTTP listeners: http (admin API), business.
    Counter HTTP_CONNECTIONS = "switchyard_http_connections_total" ["listener"];
    /// Connections to the HTTP listeners that were refused: too many in all or from one address, or not authenticated when a
    /// newer connection needed the slot.
    Counter HTTP_TURNED_AWAY = "switchyard_http_connections_turned_away_total" ["listener"];
    /// Refused binds.
    Counter BINDS_REFUSED = "switchyard_binds_refused_total" [];
    /// Always 1; the label is the daemon's version.
    Gauge BUILD_INFO = "switchyard_build_info" ["version"];
    /// CPU time of the process, user and kernel mode, in seconds.
    Counter PROCESS_CPU = "process_cpu_seconds_total" [];
    /// Resident memory of the process, in octets.
    Gauge PROCESS_RESIDENT = "process_resident_memory_bytes" [];
    /// Virtual memory of the process, in octets.
    Gauge PROCESS_VIRTUAL = "process_virtual_memory_bytes" [];
    /// Open file descriptors of the process.
    Gauge PROCESS_OPEN_FDS = "process_open_fds" [];
    /// Limit of open file descriptors of the process.
    Gauge PROCESS_MAX_FDS = "process_max_fds" [];
    /// Start time of the process, in seconds since the epoch.
    Gauge PROCESS_START = "process_start_time_seconds" [];
}

/// A metrics page in the Prometheus text format 0.0.4. Samples may be added in any order; the page groups them by metric.
#[derive(Debug, Default)]
pub struct MetricsPage {
    /// HELP, TYPE and samples, by metric name.
    metrics: BTreeMap<&'static str, String>,
}

impl MetricsPage {
    fn samples(&mut self, metric: &Metric) -> &mut String {
        self.metrics.entry(metric.name).or_insert_with(|| {
            let kind = match metric.kind {
                MetricType::Counter => "counter",
                MetricType::Gauge => "gauge",
                MetricType::Histogram => "histogram",
            };
            format!("# HELP {0} {1}\n# TYPE {0} {kind}\n", metric.name, metric.help.trim())
        })
    }

    fn labels(metric: &Metric, values: &[&str], more: Option<(&str, &str)>) -> String {
        let mut pairs: Vec<String> = metric
            .labels
            .iter()
            .zip(values)
            .map(|(name, value)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                format!("{name}=\"{value}\"")
            })
            .collect();
        pairs.extend(more.map(|(name, value)| format!("{name}=\"{value}\"")));
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }

    /// Adds a sample.
    pub fn put(&mut self, metric: &Metric, labels: &[&str], value: f64) {
        let labels = Self::labels(metric, labels, None);
        let _ = writeln!(self.samples(metric), "{}{labels} {value}", metric.name);
    }

    /// Adds a histogram: counts for each bound and for values above all bounds, and the sum.
    pub fn histogram(&mut self, metric: &Metric, labels: &[&str], bounds: &[f64], counts: &[u64], sum: f64) {
        let text = self.samples(metric);
        let mut total = 0;
        for (index, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(index).map_or_else(|| "+Inf".to_owned(), f64::to_string);
            let labels = Self::labels(metric, labels, Some(("le", &bound)));
            let _ = writeln!(text, "{}_bucket{labels} {total}", metric.name);
        }
        let labels = Self::labels(metric, labels, None);
        let _ = writeln!(text, "{}_sum{labels} {sum}", metric.name);
        let _ = writeln!(text, "{}_count{labels} {total}", metric.name);
    }

    /// The finished page.
    #[must_use]
    pub fn finish(self) -> String {
        self.metrics.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics_table() -> String {
        let mut text =
            "# Metrics\n\nGenerated from `host/admin/src/metrics.rs` (`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.\n\n\
                        | name | kind | labels | meaning |\n|---|---|---|---|\n"
                .to_owned();
        for metric in ALL {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let _ = writeln!(
                text,
                "| `{}` | {kind} | {} | {} |",
                metric.name,
                metric.labels.join(", "),
                metric.help.trim()
            );
        }
        text
    }

    #[test]
    fn metrics_table_is_up_to_date() {
        testkit::reference_page::check("docs/reference/metrics.md", &metrics_table());
    }

    #[test]
    fn page_is_in_prometheus_text_format() {
        let mut page = MetricsPage::default();
        page.put(&QUEUE, &["a\"b", "queued"], 3.0);
        page.histogram(&COMMIT_SECONDS, &[], &[0.001, 0.01], &[1, 2, 3], 0.5);
        page.put(&QUEUE, &["a", "deferred"], 0.0);
        assert_eq!(
            page.finish(),
            "# HELP switchyard_commit_seconds Duration of a commit to disk, in seconds.\n\
             # TYPE switchyard_commit_seconds histogram\n\
             switchyard_commit_seconds_bucket{le=\"0.001\"} 1\n\
             switchyard_commit_seconds_bucket{le=\"0.01\"} 3\n\
             switchyard_commit_seconds_bucket{le=\"+Inf\"} 6\n\
             switchyard_commit_seconds_sum 0.5\n\
             switchyard_commit_seconds_count 6\n\
             # HELP switchyard_queue_messages Messages by peer and by state: queued, suspended, paced, deferred, resolving, in-flight, uncertain, awaiting-dlr.\n\
             # TYPE switchyard_queue_messages gauge\n\
             switchyard_queue_messages{peer=\"a\\\"b\",state=\"queued\"} 3\n\
             switchyard_queue_messages{peer=\"a\",state=\"deferred\"} 0\n"
        );
    }
}
