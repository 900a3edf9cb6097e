use api::Throughput;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The summed times of all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkTimes {
    pub(crate) reading: Duration,
    pub(crate) decoding: Duration,
    pub(crate) comparing: Duration,
}

/// The throughput of a replay with `threads` comparing threads.
pub(crate) fn throughput(threads: usize, elapsed: Duration, messages: u64, times: WorkTimes) -> Throughput {
    let rate = |time: Duration| {
        let seconds = time.as_secs_f64();
        if seconds > 0.0 { messages as f64 / seconds } else { 0.0 }
    };
    Throughput {
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

/// Processor time of this thread so far. Wall-clock time would include other work on a busy machine.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
