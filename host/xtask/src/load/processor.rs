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

/// Processor time of a process since its start, threads that have ended included; to a hundredth of a second (the kernel
/// tells ticks, of which it has promised a hundred a second to programs).
pub fn process_time(process: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may have anything in it: state is field 3, user and system time are 14 and 15.
    let fields = text.rsplit_once(')')?.1;
    let ticks = |at: usize| fields.split_ascii_whitespace().nth(at - 3)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(14)? + ticks(15)?) * 10))
}

/// Memory of a process that is in use and its own: octets of anonymous pages (mapped files, which the kernel can drop at
/// any time, do not count).
pub fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
