//! Resource usage of processes and threads, as the kernel counts it.

use std::collections::BTreeMap;
use std::time::Duration;

/// CPU time from the first field of a `schedstat` file (nanoseconds).
fn schedstat(path: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    schedstat("/proc/thread-self/schedstat").unwrap_or_default()
}

/// CPU time of each thread of a process, by thread name; threads with the same name are added up.
///
/// Names have at most 15 octets (the kernel truncates them).
pub fn cpu_time_by_thread(process: u32) -> BTreeMap<String, Duration> {
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

/// CPU time of a process since its start, ended threads included, accurate to 10 ms (the kernel reports ticks, and guarantees
/// user space 100 ticks per second).
pub fn process_cpu_time(process: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may contain anything, so fields are counted after it: state is field 3, user and system time are 14 and 15.
    let fields = text.rsplit_once(')')?.1;
    let ticks = |at: usize| fields.split_ascii_whitespace().nth(at - 3)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(14)? + ticks(15)?) * 10))
}

/// Resident anonymous memory of a process, in octets. Mapped files do not count: the kernel can drop them at any
/// time.
pub fn resident_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
