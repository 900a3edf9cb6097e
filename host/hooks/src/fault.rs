//! Calls that failed, and how many of them are too many.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wasmtime::Trap;

/// What kind of fault a call ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The plugin trapped (or panicked).
    Trap,
    /// It did not return in time.
    Deadline,
    /// It ran out of the memory that its binding allows.
    Memory,
    /// Its answer makes no sense: an unknown peer, no leg, no IMSI.
    Verdict,
    /// No instance could be made.
    Instance,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Trap, Self::Deadline, Self::Memory, Self::Verdict, Self::Instance];

    /// The word used in metrics and notes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Verdict => "verdict",
            Self::Instance => "instance",
        }
    }
}

/// A call that gave no usable answer.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// In words.
    pub what: String,
}

/// What is said of a call for which there was no instance: no fault of its plugin's.
pub(crate) const NO_ROOM: &str = "no instance: all that the house allows are in use";

impl Fault {
    /// It says nothing of the plugin: to take that back would help nobody.
    pub(crate) fn is_the_houses(&self) -> bool {
        self.kind == FaultKind::Instance && self.what == NO_ROOM
    }

    pub(crate) fn verdict(what: String) -> Self {
        Self { kind: FaultKind::Verdict, what }
    }

    pub(crate) fn of(error: &wasmtime::Error) -> Self {
        if let Some(Trap::Interrupt) = error.downcast_ref::<Trap>() {
            let what = "did not return within its deadline".to_owned();
            return Self { kind: FaultKind::Deadline, what };
        }
        let text = format!("{error:#}");
        // The binding's limit, the house's, and a component that begins with more than the binding allows.
        let hungry =
            ["forcing trap when growing memory", "Memory maximum size exceeded", "memory minimum size"];
        if hungry.iter().any(|words| text.contains(words)) {
            let what = "wanted more memory than its binding allows".to_owned();
            return Self { kind: FaultKind::Memory, what };
        }
        let what = error.root_cause().to_string().lines().next().unwrap_or("trap").to_owned();
        Self { kind: FaultKind::Trap, what: format!("trapped: {what}") }
    }
}

/// How many faults, in what time, make a version unfit to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tolerance {
    /// So many faults ...
    pub faults: u32,
    /// ... within so many milliseconds, and it is taken back by itself. 0 faults: never.
    pub window_ms: u64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { faults: 10, window_ms: 10_000 }
    }
}

/// Watches the faults of one generation.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    recent: Mutex<VecDeque<(Instant, FaultKind)>>,
    tripped: AtomicBool,
}

impl Watch {
    /// Counts a fault. `Some` once, when there were too many: in words.
    pub(crate) fn fault(&self, tolerance: Tolerance, fault: &Fault, now: Instant) -> Option<String> {
        if tolerance.faults == 0 || fault.is_the_houses() {
            return None;
        }
        let window = Duration::from_millis(tolerance.window_ms);
        let mut recent = self.recent.lock();
        recent.push_back((now, fault.kind));
        while recent.front().is_some_and(|(at, _)| now.duration_since(*at) > window) {
            recent.pop_front();
        }
        // More than the threshold need not be remembered.
        while recent.len() > tolerance.faults as usize {
            recent.pop_front();
        }
        if recent.len() < tolerance.faults as usize || self.tripped.swap(true, Ordering::Relaxed) {
            return None;
        }
        let kinds: Vec<String> = FaultKind::ALL
            .iter()
            .filter_map(|kind| {
                let count = recent.iter().filter(|(_, other)| other == kind).count();
                (count > 0).then(|| format!("{count} {}", kind.name()))
            })
            .collect();
        let span = recent.front().map_or(Duration::ZERO, |(at, _)| now.duration_since(*at));
        Some(format!("{} faults within {} ms; the last: {}", kinds.join(", "), span.as_millis(), fault.what))
    }

    /// Whether it has had too many.
    pub(crate) fn tripped(&self) -> bool {
        self.tripped.load(Ordering::Relaxed)
    }

    /// It serves on, there being nothing better: from here on faults count anew.
    pub(crate) fn reset(&self) {
        self.recent.lock().clear();
        self.tripped.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap() -> Fault {
        Fault { kind: FaultKind::Trap, what: "trapped: unreachable".to_owned() }
    }

    #[test]
    fn so_many_faults_in_the_window_trip_it_once() {
        let (watch, start) = (Watch::default(), Instant::now());
        let tolerance = Tolerance { faults: 3, window_ms: 1_000 };
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(watch.fault(tolerance, &trap(), at(0)), None);
        assert_eq!(watch.fault(tolerance, &trap(), at(900)), None);
        // The first one is out of the window by now.
        assert_eq!(watch.fault(tolerance, &trap(), at(1_500)), None);
        assert!(!watch.tripped());
        let why = watch.fault(tolerance, &trap(), at(1_600)).unwrap();
        assert!(why.contains("3 trap faults within 700 ms"), "{why}");
        assert!(watch.tripped());
        assert_eq!(watch.fault(tolerance, &trap(), at(1_601)), None);
        watch.reset();
        assert_eq!(watch.fault(tolerance, &trap(), at(1_602)), None);
    }

    #[test]
    fn a_full_house_is_nobodys_fault() {
        let watch = Watch::default();
        let full = Fault { kind: FaultKind::Instance, what: NO_ROOM.to_owned() };
        assert_eq!(watch.fault(Tolerance { faults: 1, window_ms: 1_000 }, &full, Instant::now()), None);
        assert!(!watch.tripped());
    }

    #[test]
    fn nothing_is_too_much_for_a_tolerance_of_none() {
        let watch = Watch::default();
        let never = Tolerance { faults: 0, window_ms: 1_000 };
        assert!((0..100).all(|_| watch.fault(never, &trap(), Instant::now()).is_none()));
    }
}
