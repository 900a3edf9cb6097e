//! A stop flag that threads can wait for.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks threads to stop and wakes the waiting ones.
#[derive(Debug, Default)]
pub struct StopFlag {
    set: AtomicBool,
    guard: Mutex<()>,
    changed: Condvar,
}

impl StopFlag {
    /// Sets the flag.
    pub fn set(&self) {
        let _guard = self.guard.lock();
        self.set.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set or `time` has passed. Returns whether the flag is set.
    pub fn pause(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut guard = self.guard.lock();
        while !self.is_set() {
            if self.changed.wait_until(&mut guard, deadline).timed_out() {
                break;
            }
        }
        self.is_set()
    }
}
