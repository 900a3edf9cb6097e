//! The monotonic clock of the front ends. Sessions and the engine get the time as an argument.

use std::time::Instant;

/// The monotonic clock of the runtime.
#[must_use]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
