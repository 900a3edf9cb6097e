//! Metrics of the process, and of peers and accounts.

use crate::api_backend::Switchyard;
use admin::metrics::{self, Metric, MetricsPage};
use engine::{ANSWER_BOUNDS, PeerCounts};
use model::FinalState;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;

/// Values of `/proc/self/stat`, see proc_pid_stat(5).
#[derive(Debug, PartialEq)]
struct Stat {
    /// Processor time, in clock ticks.
    ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The program name may contain any character; the fields after it are numbers, beginning with the state, field
        // 3.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self { ticks: field(14)? + field(15)?, virtual_bytes: field(23)?, resident_pages: field(24)? })
    }
}

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

impl Switchyard {
    pub(crate) fn write_counts(&self, page: &mut MetricsPage) {
        let query = |engine: &engine::Engine, _| {
            let counts = engine.counts();
            counts.map(|(id, given, own)| (id, given.clone(), own.clone())).collect::<Vec<_>>()
        };
        for (id, given, submitted) in self.core.query(query).unwrap_or_default() {
            let name = self.name_of(id);
            write_counts(page, &PEERS, &name, &given, |code| self.causes.describe_code(&name, code));
            if given.suspected > 0 {
                page.put(&metrics::PEER_DLRS_SUSPECTED, &[&name], given.suspected as f64);
            }
            write_counts(page, &ACCOUNTS, &name, &submitted, |code| code.to_string());
        }
    }

    pub(crate) fn write_process_metrics(&self, page: &mut MetricsPage) {
        page.put(&metrics::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
        page.put(&metrics::PROCESS_START, &[], self.core.clock.started_at().0 as f64 / 1e3);
        // Values that the system does not provide are omitted.
        let stat = std::fs::read_to_string("/proc/self/stat").ok();
        if let Some(stat) = stat.and_then(|text| Stat::parse(&text)) {
            let seconds = stat.ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
            page.put(&metrics::PROCESS_CPU, &[], seconds);
            page.put(&metrics::PROCESS_VIRTUAL, &[], stat.virtual_bytes as f64);
            let resident = stat.resident_pages as f64 * rustix::param::page_size() as f64;
            page.put(&metrics::PROCESS_RESIDENT, &[], resident);
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // One of the descriptors reads this folder.
            page.put(&metrics::PROCESS_OPEN_FDS, &[], open.count().saturating_sub(1) as f64);
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            page.put(&metrics::PROCESS_MAX_FDS, &[], most as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_may_contain_any_character() {
        let text =
            "7 (a) S 1 (b)) R 1 2 3 4 5 6 7 8 9 10 100 20 0 0 20 0 8 0 500 4096000 77 18446744073709551615 1";
        let stat = Stat { ticks: 120, virtual_bytes: 4_096_000, resident_pages: 77 };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse("7 (a) R 1 2"), None);
    }
}
