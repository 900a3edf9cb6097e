//! The clocks of the front ends. Sessions and the engine get the time as an argument.

use model::Timestamp;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The wall clock.
#[must_use]
pub fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The monotonic clock of the runtime.
#[must_use]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
