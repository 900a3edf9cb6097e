use std::time::Instant;

/// Everything a session waits for by the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Timer {
    /// The peer must have bound (server), or answered our bind (client).
    Init,
    /// The rest of a PDU must have come.
    Partial,
    /// Nothing has been heard for so long that an enquire_link is due.
    Enquire,
    /// The oldest of our requests must have been answered.
    Response,
    /// Nothing but silence: the session is ended.
    Inactivity,
    /// Our unbind must have been answered, or the requests that stand before the peer's unbind by us.
    Unbind,
}

impl Timer {
    const ALL: [Self; 6] =
        [Self::Init, Self::Partial, Self::Enquire, Self::Response, Self::Inactivity, Self::Unbind];
}

/// When each timer fires.
#[derive(Debug, Default)]
pub(crate) struct TimerTable([Option<Instant>; 6]);

impl TimerTable {
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = Some(at);
    }

    pub(crate) fn set_if_stopped(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize].get_or_insert(at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    pub(crate) fn stop_all(&mut self) {
        self.0 = Default::default();
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.iter().flatten().min().copied()
    }

    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let due = Timer::ALL.into_iter().find(|timer| self.0[*timer as usize].is_some_and(|at| at <= now))?;
        self.stop(due);
        Some(due)
    }
}
