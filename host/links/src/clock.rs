//! The clocks of the links. Sessions and the engine get the time as an argument.

use model::Timestamp;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The monotonic clock of the runtime.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
