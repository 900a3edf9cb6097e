//! Host time: the time that a call waits in host functions for the disk or for home location registers.
//!
//! The deadline of a call counts the running time of its thread, and a thread that waits does not run. So these waits have
//! a separate limit. HTTP requests have their timeouts and their maximum number instead.

use crate::host_calls::InstanceState;
use std::time::{Duration, Instant};

/// Maximum host time of a call on a link's thread: all messages of the link wait meanwhile.
const ON_LINKS: Duration = Duration::from_millis(250);
/// Maximum host time of a call on a hook worker, where only the calls of this hook wait.
const ON_WORKERS: Duration = Duration::from_secs(60);

impl InstanceState {
    /// Whether the call may wait for HTTP requests, and until values are durable. A call on a link's thread must not wait.
    pub(crate) fn may_wait(&self) -> bool {
        self.may_fetch || self.configuring
    }

    fn host_time_limit(&self) -> Duration {
        if self.may_wait() { ON_WORKERS } else { ON_LINKS }
    }

    /// Runs a host function that may wait, and counts its time.
    pub(crate) fn measure_wait<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.host_time += started.elapsed();
        result
    }

    /// Whether the call has used up its host time. It ends at its next check then; see [`crate::deadline`].
    pub(crate) fn is_host_time_over(&self) -> bool {
        self.host_time >= self.host_time_limit()
    }

    /// The description of a call that has used up its host time.
    pub(crate) fn describe_host_time(&self) -> String {
        format!(
            "waited {} ms for the disk or for home location registers",
            self.host_time_limit().as_millis()
        )
    }
}
