//! Every metric, with what it means. Nothing else in the house makes up a metric's name.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// It only grows, from 0 at the start.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts in buckets, a sum and a count.
    Histogram,
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Type,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it means, and in which unit.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $kind:ident $constant:ident = $name:literal [$($label:literal),*];)*) => {
        $(
            $(#[doc = $help])+
            pub const $constant: Metric = Metric {
                name: $name,
                kind: Type::$kind,
                labels: &[$($label),*],
                help: concat!($($help),+),
            };
        )*
        /// All metrics.
        pub const ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    /// Messages accepted: durable, and their submitters told so.
    Counter ACCEPTED = "switchyard_messages_accepted_total" [];
    /// Submissions refused by the engine: no route, queue full, bad times.
    Counter REFUSED = "switchyard_messages_refused_total" [];
    /// Messages that have ended, by final state.
    Counter ENDED = "switchyard_messages_ended_total" ["state"];
    /// Messages given to links, every attempt counted.
    Counter SUBMITTED = "switchyard_messages_submitted_total" [];
    /// Attempts that a peer refused.
    Counter ATTEMPTS_REFUSED = "switchyard_attempts_refused_total" [];
    /// Attempts that a peer refused as too fast, or because its queue was full.
    Counter THROTTLED = "switchyard_attempts_throttled_total" [];
    /// Attempts that were written and never answered.
    Counter UNCERTAIN = "switchyard_attempts_uncertain_total" [];
    /// Messages sent again to settle a doubt.
    Counter SENT_AGAIN = "switchyard_messages_sent_again_total" [];
    /// Receipts from peers that found their message.
    Counter RECEIPTS_MATCHED = "switchyard_receipts_matched_total" [];
    /// Receipts from peers that found none.
    Counter RECEIPTS_UNMATCHED = "switchyard_receipts_unmatched_total" [];
    /// Receipts of ours that were made.
    Counter RECEIPTS_MADE = "switchyard_receipts_made_total" [];
    /// Receipts of ours that an ESME has taken.
    Counter RECEIPTS_DELIVERED = "switchyard_receipts_delivered_total" [];
    /// Receipts of ours that were not made because their account's queue was full; they can be asked for again.
    Counter RECEIPTS_DROPPED = "switchyard_receipts_dropped_total" [];
    /// Receipts from peers that match no message yet.
    Gauge RECEIPTS_PARKED = "switchyard_receipts_parked" [];
    /// Submissions that were repeated under their key and answered again.
    Counter REPEATED = "switchyard_submissions_repeated_total" [];
    /// Submission keys that are remembered.
    Gauge KEYS = "switchyard_submission_keys" [];
    /// Submissions refused because the addressee has told the sender to stop.
    Counter OPTED_OUT = "switchyard_submissions_opted_out_total" [];
    /// Finished messages that wait for the archive.
    Gauge ARCHIVE_BACKLOG = "switchyard_archive_backlog_messages" [];
    /// Messages put into the archive.
    Counter ARCHIVED = "switchyard_archive_messages_total" [];
    /// Batches that the archive's data base did not take.
    Counter ARCHIVE_FAILURES = "switchyard_archive_failures_total" [];
    /// Messages that the archive's data base refuses by themselves; they stay in the store and are tried again.
    Gauge ARCHIVE_REFUSED = "switchyard_archive_refused_messages" [];
    /// 1 while the archive's data base answers.
    Gauge ARCHIVE_UP = "switchyard_archive_up" [];
    /// Short messages written to MSCs, parts counted singly, by core network.
    Counter GSM_MT = "switchyard_gsm_mt_total" ["network"];
    /// MTs by core network and end: delivered, unanswered, late, twice, or what the network said.
    Counter GSM_MT_ENDED = "switchyard_gsm_mt_ended_total" ["network", "end"];
    /// Short messages from handsets by core network and end: taken, repeated, or the RP cause of the refusal.
    Counter GSM_MO = "switchyard_gsm_mo_total" ["network", "end"];
    /// Handsets that were heard of, by core network and how: ready-for-sm, attached.
    Counter GSM_ALERTS = "switchyard_gsm_alerts_total" ["network", "how"];
    /// Subscribers with a message on its way, by core network.
    Gauge GSM_IN_FLIGHT = "switchyard_gsm_in_flight" ["network"];
    /// Connections to MSCs (or to the HLR) over which messages can go, by core network.
    Gauge GSM_CONNECTIONS = "switchyard_gsm_connections" ["network"];
    /// Questions to the HLR by core network and end: answered, unanswered.
    Counter GSM_QUESTIONS = "switchyard_gsm_hlr_questions_total" ["network", "end"];
    /// Faults of a core network that somebody has to mend, by core network and fault: hlr-down, hlr-ctrl-down, no-msc, msc-without-sms, double-name.
    Gauge GSM_FAULTS = "switchyard_gsm_faults" ["network", "fault"];
    /// Signalling frames passed through, by core network.
    Counter GSM_RELAYED = "switchyard_gsm_relayed_frames_total" ["network"];
    /// Calls of business systems by account, method and result.
    Counter BUSINESS_REQUESTS = "switchyard_business_requests_total" ["account", "method", "result"];
    /// Connections to the command line's socket.
    Gauge SHELL_CONNECTIONS = "switchyard_shell_connections" [];
    /// Callers at the command line's socket that were turned away: strangers, or too many.
    Counter SHELL_TURNED_AWAY = "switchyard_shell_turned_away_total" [];
    /// Requests of subscribers and operators on the command line, by what was asked and what came of it.
    Counter SHELL_REQUESTS = "switchyard_shell_requests_total" ["request", "result"];
    /// Messages accepted from business systems.
    Counter BUSINESS_ACCEPTED = "switchyard_business_accepted_total" ["account"];
    /// Replies and reports that business systems fetched and acknowledged.
    Counter BUSINESS_FETCHED = "switchyard_business_fetched_total" ["account"];
    /// Replies and reports that business systems took when they were pushed.
    Counter PUSHED = "switchyard_pushes_total" ["account"];
    /// Pushes that were not taken.
    Counter PUSH_FAILURES = "switchyard_push_failures_total" ["account"];
    /// Orders about waiting messages that have a say, by what they do.
    Gauge ORDERS = "switchyard_orders" ["what"];
    /// Messages by peer and by what they are doing: queued, suspended, deferred, resolving, in-flight, uncertain, awaiting-receipt.
    Gauge QUEUE = "switchyard_queue_messages" ["peer", "doing"];
    /// Subscribers by peer to whom nothing is sent until a message that has failed is tried again.
    Gauge PARKED = "switchyard_subscribers_parked" ["peer"];
    /// Messages a second that a peer allows, as learnt from what it has refused as too fast; only for peers that have.
    Gauge LEARNT_RATE = "switchyard_peer_learnt_rate" ["peer"];
    /// Messages and delivery receipts given to links of a peer, every attempt counted; an account is a peer as far as it receives.
    Counter PEER_SUBMITTED = "switchyard_peer_submitted_total" ["peer"];
    /// Attempts that a peer refused as too fast, or because its queue was full.
    Counter PEER_THROTTLED = "switchyard_peer_throttled_total" ["peer"];
    /// Attempts that a peer refused, by the code of its answer in words; further codes than the first 32 under "other".
    Counter PEER_REFUSED = "switchyard_peer_refused_total" ["peer", "code"];
    /// Messages that have ended, by the peer that they were for and by final state.
    Counter PEER_ENDED = "switchyard_peer_ended_total" ["peer", "state"];
    /// Seconds from when a message was given to a link to the peer's answer.
    Histogram PEER_ANSWER_SECONDS = "switchyard_peer_answer_seconds" ["peer"];
    /// Messages of an account that were given to links of any peer, every attempt counted; a peer is an account as far as its network sends.
    Counter ACCOUNT_SUBMITTED = "switchyard_account_submitted_total" ["account"];
    /// Attempts with messages of an account that a peer refused as too fast, or because its queue was full.
    Counter ACCOUNT_THROTTLED = "switchyard_account_throttled_total" ["account"];
    /// Attempts with messages of an account that a peer refused, by the code as a number; further codes than the first 32 under "other".
    Counter ACCOUNT_REFUSED = "switchyard_account_refused_total" ["account", "code"];
    /// Messages whose submission was refused, by the account or peer that they came from, protocol and reason.
    Counter SUBMISSIONS_REFUSED = "switchyard_submissions_refused_total" ["account", "protocol", "code"];
    /// Messages that have ended, by the account that submitted them and by final state.
    Counter ACCOUNT_ENDED = "switchyard_account_ended_total" ["account", "state"];
    /// Seconds from when a message of an account was given to a link to the peer's answer.
    Histogram ACCOUNT_ANSWER_SECONDS = "switchyard_account_answer_seconds" ["account"];
    /// Messages that have not ended.
    Gauge WAITING = "switchyard_messages_waiting" [];
    /// Octets of message content held in memory.
    Gauge BODY_CACHE = "switchyard_body_cache_bytes" [];
    /// Links by peer, role and phase.
    Gauge LINKS = "switchyard_links" ["peer", "role", "phase"];
    /// Seconds that one commit to disk took.
    Histogram COMMIT_SECONDS = "switchyard_commit_seconds" [];
    /// Rows written by one commit.
    Histogram COMMIT_ROWS = "switchyard_commit_rows" [];
    /// Octets of records written.
    Counter COMMIT_BYTES = "switchyard_commit_bytes_total" [];
    /// Messages read back from disk because their turn came.
    Counter LOADS = "switchyard_message_loads_total" [];
    /// Seconds that one call of a plugin took, of the versions that are live.
    Histogram HOOK_SECONDS = "switchyard_hook_seconds" ["hook", "plugin", "version"];
    /// Calls of a plugin that gave no verdict, by kind: trap, deadline, memory, verdict, instance.
    Counter HOOK_FAULTS = "switchyard_hook_faults_total" ["hook", "plugin", "version", "kind"];
    /// Keys of each plugin's durable counters.
    Gauge DURABLE_COUNTER_KEYS = "switchyard_durable_count_keys" ["plugin"];
    /// Calls of a plugin that durable counters refused because it had its limit of keys. Alert on any increase: quotas refuse
    /// what they should let through.
    Counter DURABLE_COUNTER_REFUSED = "switchyard_durable_count_refused_total" ["plugin"];
    /// Failed attempts to write durable counters. While this increases, a restart would lose counts.
    Counter DURABLE_COUNTER_WRITE_FAILURES = "switchyard_durable_count_write_failures_total" [];
    /// Questions that a candidate on trial was concerned with, by hook, mode and outcome: same, different, skipped (shadow);
    /// asked, failed, passed (canary).
    Counter CANDIDATE = "switchyard_candidate_questions_total" ["hook", "mode", "outcome"];
    /// What waits for the subscriber behind a number, by what: numbers, messages, questions (in flight), and cached answers.
    Gauge RESOLVING = "switchyard_resolving" ["what"];
    /// Questions to the resolver.
    Counter RESOLVER_QUESTIONS = "switchyard_resolver_questions_total" [];
    /// Messages whose subscriber was remembered.
    Counter RESOLVER_HITS = "switchyard_resolver_cache_hits_total" [];
    /// Messages about which the delivery policy is being asked.
    Gauge DECIDING = "switchyard_deciding_messages" [];
    /// Ledger accounts, in millionths of the house's currency, by account and what: balance, reserved, captured, funded.
    Gauge LEDGER = "switchyard_ledger_millionths" ["account", "what"];
    /// Submissions refused because their ledger account could not pay.
    Counter UNPAID = "switchyard_submissions_unpaid_total" [];
    /// Ends of charges that the biller has not taken yet.
    Gauge UNSETTLED = "switchyard_ledger_unsettled" [];
    /// Numbers of number pools, by pool and state; of the first 1,000 pools by name.
    Gauge POOL_NUMBERS = "switchyard_pool_numbers" ["pool", "state"];
    /// Numbers of number pools that are to be had, by pool; of the first 1,000 pools by name.
    Gauge POOL_READY = "switchyard_pool_ready_numbers" ["pool"];
    /// Calls for a number of a pool, by pool and result: given, none; of the first 1,000 pools by name.
    Counter POOL_CALLS = "switchyard_pool_calls_total" ["pool", "result"];
    /// Leases of numbers that ended by themselves, by pool; of the first 1,000 pools by name.
    Counter POOL_LAPSED = "switchyard_pool_leases_lapsed_total" ["pool"];
    /// Number pools.
    Gauge POOLS = "switchyard_pools" [];
    /// Connections of Redis clients.
    Gauge REDIS_CONNECTIONS = "switchyard_redis_connections" [];
    /// Connections of Redis clients that were one too many, and turned away.
    Counter REDIS_TURNED_AWAY = "switchyard_redis_turned_away_total" [];
    /// Requests of Redis clients about number pools.
    Counter REDIS_REQUESTS = "switchyard_redis_requests_total" [];
    /// What Redis clients were refused, by reason: no right, wrong password.
    Counter REDIS_REFUSED = "switchyard_redis_refused_total" ["reason"];
    /// Rows of the appliance's tables.
    Gauge TABLE_ROWS = "switchyard_table_rows" ["table"];
    /// Free octets on the disk of the data directory.
    Gauge DISK_FREE = "switchyard_disk_free_bytes" [];
    /// 1 while free space is below the watermark and submissions are refused.
    Gauge DISK_LOW = "switchyard_disk_low" [];
    /// Seconds that the last start took to read all waiting messages back.
    Gauge RECOVERY_SECONDS = "switchyard_recovery_seconds" [];
    /// Messages that the last start read back.
    Gauge RECOVERED = "switchyard_recovered_messages" [];
    /// Connections that came to our listeners.
    Counter CONNECTIONS = "switchyard_connections_total" [];
    /// Connections turned away: too many in all or from one address, or not bound when a newer one needed the place.
    Counter TURNED_AWAY = "switchyard_connections_turned_away_total" [];
    /// Connections to the listeners for HTTP: http (admins), business.
    Counter HTTP_CONNECTIONS = "switchyard_http_connections_total" ["listener"];
    /// Connections to them turned away: too many in all or from one address, or not authenticated when a newer one needed the place.
    Counter HTTP_TURNED_AWAY = "switchyard_http_connections_turned_away_total" ["listener"];
    /// Binds refused.
    Counter BINDS_REFUSED = "switchyard_binds_refused_total" [];
    /// 1, with the version of the daemon.
    Gauge BUILD_INFO = "switchyard_build_info" ["version"];
    /// Seconds of processor time that the process has used, in user and kernel mode together.
    Counter PROCESS_CPU = "process_cpu_seconds_total" [];
    /// Octets of memory that the process has in use.
    Gauge PROCESS_RESIDENT = "process_resident_memory_bytes" [];
    /// Octets of address space that the process has reserved.
    Gauge PROCESS_VIRTUAL = "process_virtual_memory_bytes" [];
    /// File descriptors that the process has open.
    Gauge PROCESS_OPEN_FDS = "process_open_fds" [];
    /// File descriptors that the process may have open.
    Gauge PROCESS_MAX_FDS = "process_max_fds" [];
    /// When the process was started, in seconds since the epoch.
    Gauge PROCESS_START = "process_start_time_seconds" [];
}

/// A page for Prometheus, text format 0.0.4. Samples may come in any order: the page keeps those of one metric together.
#[derive(Debug, Default)]
pub struct Page {
    /// By name: HELP, TYPE and samples.
    metrics: BTreeMap<&'static str, String>,
}

impl Page {
    fn samples(&mut self, metric: &Metric) -> &mut String {
        self.metrics.entry(metric.name).or_insert_with(|| {
            let kind = match metric.kind {
                Type::Counter => "counter",
                Type::Gauge => "gauge",
                Type::Histogram => "histogram",
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

    /// One number.
    pub fn put(&mut self, metric: &Metric, labels: &[&str], value: f64) {
        let labels = Self::labels(metric, labels, None);
        let _ = writeln!(self.samples(metric), "{}{labels} {value}", metric.name);
    }

    /// A histogram: counts of what is at most each bound, and of what is above all of them; and the sum.
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

    /// The page.
    #[must_use]
    pub fn finish(self) -> String {
        self.metrics.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> String {
        let mut text =
            "# Metrics\n\nGenerated from `host/admin/src/metrics.rs` (`UPDATE=1 cargo test -p admin`).\n\n\
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
    fn the_list_of_metrics_is_true() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/METRICS.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, list()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), list(), "run UPDATE=1 cargo test -p admin");
    }

    #[test]
    fn a_page_reads_as_prometheus_wants_it() {
        let mut page = Page::default();
        page.put(&QUEUE, &["a\"b", "queued"], 3.0);
        page.histogram(&COMMIT_SECONDS, &[], &[0.001, 0.01], &[1, 2, 3], 0.5);
        page.put(&QUEUE, &["a", "deferred"], 0.0);
        assert_eq!(
            page.finish(),
            "# HELP switchyard_commit_seconds Seconds that one commit to disk took.\n\
             # TYPE switchyard_commit_seconds histogram\n\
             switchyard_commit_seconds_bucket{le=\"0.001\"} 1\n\
             switchyard_commit_seconds_bucket{le=\"0.01\"} 3\n\
             switchyard_commit_seconds_bucket{le=\"+Inf\"} 6\n\
             switchyard_commit_seconds_sum 0.5\n\
             switchyard_commit_seconds_count 6\n\
             # HELP switchyard_queue_messages Messages by peer and by what they are doing: queued, suspended, deferred, resolving, in-flight, uncertain, awaiting-receipt.\n\
             # TYPE switchyard_queue_messages gauge\n\
             switchyard_queue_messages{peer=\"a\\\"b\",doing=\"queued\"} 3\n\
             switchyard_queue_messages{peer=\"a\",doing=\"deferred\"} 0\n"
        );
    }
}
