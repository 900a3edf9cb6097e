use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How fast a replay went.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Pace {
    /// Threads that judged.
    pub threads: usize,
    /// From beginning to end, in seconds.
    pub seconds: f64,
    /// Messages a second over all of that.
    pub messages_per_second: f64,
    /// Seconds that the reading thread waited for the data base.
    pub reading_seconds: f64,
    /// Processor time of making messages of what was read, in seconds, over all threads.
    pub decoding_seconds: f64,
    /// Messages a second that could be loaded, by the two above, on one core.
    pub loaded_per_second_per_core: f64,
    /// Processor time of judging and comparing, in seconds, over all threads.
    pub judging_seconds: f64,
    /// Messages judged in a second of it.
    pub judged_per_second_per_core: f64,
}

/// Times as they are summed up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) reading: Duration,
    pub(crate) decoding: Duration,
    pub(crate) judging: Duration,
}

impl Pace {
    pub(crate) fn of(threads: usize, whole: Duration, messages: u64, times: Times) -> Self {
        let rate = |time: Duration| {
            let seconds = time.as_secs_f64();
            if seconds > 0.0 { messages as f64 / seconds } else { 0.0 }
        };
        Self {
            threads,
            seconds: whole.as_secs_f64(),
            messages_per_second: rate(whole),
            reading_seconds: times.reading.as_secs_f64(),
            decoding_seconds: times.decoding.as_secs_f64(),
            loaded_per_second_per_core: rate(times.reading + times.decoding),
            judging_seconds: times.judging.as_secs_f64(),
            judged_per_second_per_core: rate(times.judging),
        }
    }
}

/// Processor time of this thread so far: the wall's would count what others do on a crowded machine.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
