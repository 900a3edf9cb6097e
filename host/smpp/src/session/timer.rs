use std::time::{Duration, Instant};

/// The timers of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Timer {
    /// The peer must bind (server), or answer our bind (client).
    Init,
    /// The rest of a PDU must arrive.
    Partial,
    /// An enquire_link is due after silence.
    Enquire,
    /// The oldest of our requests must be answered.
    Response,
    /// The session ends after silence.
    Inactivity,
    /// The peer must answer our unbind, or we must answer the requests before the peer's unbind.
    Unbind,
}

impl Timer {
    const ALL: [Self; 6] =
        [Self::Init, Self::Partial, Self::Enquire, Self::Response, Self::Inactivity, Self::Unbind];
}

/// The deadlines of the timers.
#[derive(Debug, Default)]
pub(super) struct TimerTable([Option<Instant>; Timer::ALL.len()]);

impl TimerTable {
    pub(super) fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = Some(at);
    }

    pub(super) fn set_after(&mut self, timer: Timer, now: Instant, wait: Duration) {
        self.set(timer, after(now, wait));
    }

    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize].is_some()
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    pub(super) fn stop_all(&mut self) {
        self.0 = Default::default();
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.0.iter().flatten().min().copied()
    }

    /// Returns a timer that is due, and stops it.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let due = Timer::ALL.into_iter().find(|timer| self.0[*timer as usize].is_some_and(|at| at <= now))?;
        self.stop(due);
        Some(due)
    }
}

/// `at` plus `wait`; `at` plus thirty years if the clock cannot represent the sum.
pub(super) fn after(at: Instant, wait: Duration) -> Instant {
    const THIRTY_YEARS: Duration = Duration::from_secs(30 * 365 * 86_400);
    at.checked_add(wait).unwrap_or_else(|| at + THIRTY_YEARS)
}
