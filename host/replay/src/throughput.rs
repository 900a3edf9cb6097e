use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The throughput of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Number of comparing threads.
    pub threads: usize,
    /// Total time, in seconds.
    pub seconds: f64,
    /// Messages per second over the total time.
    pub messages_per_second: f64,
    /// Time that the reading thread waited for the database, in seconds.
    pub reading_seconds: f64,
    /// Processor time of decoding, in seconds, over all threads.
    pub decoding_seconds: f64,
    /// Messages per second that one core can read and decode.
    pub loaded_per_second_per_core: f64,
    /// Processor time of deciding and comparing, in seconds, over all threads.
    pub comparing_seconds: f64,
    /// Messages decided per second of that time.
    pub compared_per_second_per_core: f64,
}

/// The summed times of all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkTimes {
    pub(crate) reading: Duration,
    pub(crate) decoding: Duration,
    pub(crate) comparing: Duration,
}

impl Throughput {
    pub(crate) fn of(threads: usize, elapsed: Duration, messages: u64, times: WorkTimes) -> Self {
        let rate = |time: Duration| {
            let seconds = time.as_secs_f64();
            if seconds > 0.0 { messages as f64 / seconds } else { 0.0 }
        };
        Self {
            threads,
            seconds: elapsed.as_secs_f64(),
            messages_per_second: rate(elapsed),
            reading_seconds: times.reading.as_secs_f64(),
            decoding_seconds: times.decoding.as_secs_f64(),
            loaded_per_second_per_core: rate(times.reading + times.decoding),
            comparing_seconds: times.comparing.as_secs_f64(),
            compared_per_second_per_core: rate(times.comparing),
        }
    }
}

/// Processor time of this thread so far. Wall-clock time would include other work on a busy machine.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
