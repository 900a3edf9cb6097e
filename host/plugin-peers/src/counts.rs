//! Counters of a peer since the start of the daemon.

use api::{PeerCallbacksView, PluginPeerView};
use hooks::Submitted;
use model::{Outcome, Timestamp};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters of a peer. They survive a change of its options.
#[derive(Debug, Default)]
pub(crate) struct PeerCounts {
    in_flight: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    uncertain: AtomicU64,
    not_sent: AtomicU64,
    busy_us: AtomicU64,
    pub(crate) callbacks: CallbackCounts,
    last_failure: Mutex<Option<(Timestamp, String)>>,
}

/// Counters of callbacks.
#[derive(Debug, Default)]
pub(crate) struct CallbackCounts {
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) limited: AtomicU64,
    pub(crate) receipts: AtomicU64,
    pub(crate) messages: AtomicU64,
}

/// A submit attempt in flight.
pub(crate) struct InFlight<'a>(&'a PeerCounts);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl PeerCounts {
    /// Counts an attempt as in flight until the result is dropped.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(self)
    }

    /// Counts an attempt that took this time.
    pub(crate) fn submitted(&self, submitted: &Submitted, took: Duration, now: Timestamp) {
        self.busy_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        let (counter, what) = match &submitted.outcome {
            Outcome::Accepted { .. } => {
                self.accepted.fetch_add(1, Relaxed);
                return;
            }
            Outcome::Refused { code, .. } => (&self.refused, format!("refused with code {code}")),
            Outcome::Unanswered { .. } => (&self.uncertain, "uncertain".to_owned()),
            Outcome::NotSent => (&self.not_sent, "not sent".to_owned()),
        };
        counter.fetch_add(1, Relaxed);
        let why = match &submitted.note {
            Some(note) => format!("{what}: {note}"),
            None => what,
        };
        *self.last_failure.lock() = Some((now, why));
    }

    /// The figures of the peer of this name.
    pub(crate) fn view(&self, peer: &str, window: usize) -> PluginPeerView {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let callbacks = &self.callbacks;
        let last = self.last_failure.lock().clone();
        PluginPeerView {
            peer: peer.to_owned(),
            plugin: None,
            version: None,
            window: window as u64,
            in_flight: count(&self.in_flight),
            accepted: count(&self.accepted),
            refused: count(&self.refused),
            uncertain: count(&self.uncertain),
            not_sent: count(&self.not_sent),
            busy_ms: count(&self.busy_us) / 1_000,
            callbacks: PeerCallbacksView {
                accepted: count(&callbacks.accepted),
                refused: count(&callbacks.refused),
                failed: count(&callbacks.failed),
                limited: count(&callbacks.limited),
                receipts: count(&callbacks.receipts),
                messages: count(&callbacks.messages),
            },
            last_failure_at: last.as_ref().map(|(at, _)| at.0),
            last_failure: last.map(|(_, why)| why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ErrorClass;

    #[test]
    fn attempts_are_counted_by_their_outcome() {
        let counts = PeerCounts::default();
        let submitted =
            |outcome, note: Option<&str>| Submitted { outcome, pause: None, note: note.map(Into::into) };
        let refused = Outcome::Refused { class: ErrorClass::Temporary, code: 402, taken: Vec::new() };
        let unsure = Outcome::Unanswered { taken: Vec::new(), known: Vec::new() };
        let first = counts.begin();
        let _second = counts.begin();
        drop(first);
        for (outcome, note) in [
            (Outcome::Accepted { ids: Vec::new() }, None),
            (unsure, Some("no answer")),
            (Outcome::NotSent, None),
            (refused, Some("no credit")),
        ] {
            counts.submitted(&submitted(outcome, note), Duration::from_micros(1_500), Timestamp(7));
        }
        let view = counts.view("north", 8);
        assert_eq!((view.accepted, view.refused, view.uncertain, view.not_sent), (1, 1, 1, 1));
        assert_eq!((view.in_flight, view.window, view.busy_ms), (1, 8, 6));
        assert_eq!(view.last_failure.as_deref(), Some("refused with code 402: no credit"));
        assert_eq!(view.last_failure_at, Some(7));
    }
}
