//! A flag that threads can wait for.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks threads to stop, and wakes those that pause.
#[derive(Debug, Default)]
pub struct Stop {
    set: AtomicBool,
    guard: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    /// Asks.
    pub fn set(&self) {
        let _guard = self.guard.lock();
        self.set.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Whether it was asked.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until it is asked, but no longer than this. Tells whether it was asked.
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
