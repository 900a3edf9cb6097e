//! Metrics of the process.

use admin::metrics::{self, MetricsPage};
use model::Timestamp;
use rustix::process::{Resource, getrlimit};

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

/// Writes the metrics. Values that the system does not provide are omitted.
pub(crate) fn write_process_metrics(started_at: Timestamp, page: &mut MetricsPage) {
    page.put(&metrics::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
    page.put(&metrics::PROCESS_START, &[], started_at.0 as f64 / 1e3);
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
