//! What processes and threads used, as the kernel counts it.

use std::collections::BTreeMap;
use std::time::Duration;

/// Time on a processor, from the first field of a `schedstat` file (nanoseconds).
fn schedstat(path: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Processor time of the calling thread so far.
pub fn this_thread() -> Duration {
    schedstat("/proc/thread-self/schedstat").unwrap_or_default()
}

/// Processor time of each thread of a process, by thread name; threads of one name are added up.
///
/// Names are at most 15 octets (the kernel cuts the rest).
pub fn thread_times(process: u32) -> BTreeMap<String, Duration> {
    let mut times = BTreeMap::new();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else { return times };
    for task in tasks.flatten() {
        let path = task.path();
        let path = path.to_string_lossy();
        let Ok(name) = std::fs::read_to_string(format!("{path}/comm")) else { continue };
        if let Some(time) = schedstat(&format!("{path}/schedstat")) {
            *times.entry(name.trim_end().to_owned()).or_default() += time;
        }
    }
    times
}

/// Memory of a process that is in use and its own: octets of anonymous pages (mapped files, which the kernel can drop at
/// any time, do not count).
pub fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
