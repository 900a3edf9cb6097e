//! Faults: failed calls, and the tolerance for them.

use crate::debug_info::DebugInfo;
use crate::stack::{WasmFrame, describe_stack};
use crate::text_limits::{MAX_SUMMARY_OCTETS, truncate};
use api::{StackFrame, Tolerance};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wasmtime::{Trap, WasmBacktrace};

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The plugin trapped (or panicked).
    Trap,
    /// The call exceeded its deadline.
    Deadline,
    /// The plugin exceeded the memory limit of its binding.
    Memory,
    /// The answer is invalid: an unknown peer, no leg, no IMSI.
    Verdict,
    /// No instance could be created.
    Instance,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Trap, Self::Deadline, Self::Memory, Self::Verdict, Self::Instance];

    /// The name in metrics and notes.
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

/// A call without a usable answer.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// Description of the fault.
    pub what: String,
    /// The plugin's last report in the call: the message of a panic or an exception, with several lines.
    pub report: Option<Box<str>>,
    /// The plugin's call stack, innermost first; empty if it has returned.
    pub(crate) frames: Box<[WasmFrame]>,
    /// Whether an HTTP request of the call may have reached another system.
    pub(crate) sent_request: bool,
}

/// Description of the fault of a call that got no instance. It is not the plugin's fault.
pub(crate) const INSTANCE_LIMIT_REACHED: &str = "no instance: the limit of instances is reached";

impl Fault {
    pub(crate) fn new(kind: FaultKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), report: None, frames: Box::default(), sent_request: false }
    }

    /// The first line of the plugin's report, otherwise the description. A panic of Rust has its message on the line after
    /// its source line.
    #[must_use]
    pub fn summary(&self) -> String {
        let (summary, _) = self.report_parts();
        summary.unwrap_or_else(|| self.what.clone())
    }

    /// The lines after the summary: the rest of the report, otherwise the plugin's call stack, innermost frame first.
    /// `debug_info`: the component with debug sections, for the source lines.
    #[must_use]
    pub fn details(&self, debug_info: Option<&[u8]>) -> Vec<String> {
        let (_, rest) = self.report_parts();
        if !rest.is_empty() {
            return rest;
        }
        let debug_info = debug_info.and_then(DebugInfo::read);
        let lines = self.stack(debug_info.as_ref()).into_iter().map(|frame| match frame.source {
            Some(source) => format!("in {} at {source}", frame.function),
            None => format!("in {}", frame.function),
        });
        lines.collect()
    }

    /// The plugin's call stack; empty if the report contains one, since the stack of an interpreter itself is of no
    /// interest.
    pub(crate) fn stack(&self, debug_info: Option<&DebugInfo<'_>>) -> Vec<StackFrame> {
        let (_, rest) = self.report_parts();
        if rest.is_empty() { describe_stack(&self.frames, debug_info) } else { Vec::new() }
    }

    /// The report's summary and the following lines.
    fn report_parts(&self) -> (Option<String>, Vec<String>) {
        let mut lines = self.report.as_deref().unwrap_or_default().lines().map(str::trim_end);
        let mut lines = lines.by_ref().filter(|line| !line.is_empty());
        let Some(first) = lines.next() else { return (None, Vec::new()) };
        let mut summary = first.trim().to_owned();
        if summary.ends_with(':')
            && let Some(words) = lines.next()
        {
            summary.push(' ');
            summary.push_str(words.trim());
        }
        (Some(truncate(summary, MAX_SUMMARY_OCTETS)), lines.map(str::to_owned).collect())
    }

    /// Whether the fault is the host's own. A rollback of the plugin would not help.
    pub(crate) fn is_host_fault(&self) -> bool {
        self.kind == FaultKind::Instance && self.what == INSTANCE_LIMIT_REACHED
    }

    pub(crate) fn verdict(what: String) -> Self {
        Self::new(FaultKind::Verdict, what)
    }

    /// The fault of a call that did not return, with the plugin's report.
    pub(crate) fn of(error: &wasmtime::Error, report: Option<String>) -> Self {
        let frames = error
            .downcast_ref::<WasmBacktrace>()
            .map_or_else(Box::default, |backtrace| backtrace.frames().iter().map(WasmFrame::of).collect());
        Self { report: report.map(String::into_boxed_str), frames, ..Self::without_stack(error) }
    }

    fn without_stack(error: &wasmtime::Error) -> Self {
        if let Some(Trap::Interrupt) = error.downcast_ref::<Trap>() {
            return Self::new(FaultKind::Deadline, "did not return within its deadline");
        }
        let text = format!("{error:#}");
        // The binding's limit, the host's limit, and a component whose initial memory exceeds the binding's limit.
        let memory_errors =
            ["forcing trap when growing memory", "Memory maximum size exceeded", "memory minimum size"];
        if memory_errors.iter().any(|words| text.contains(words)) {
            return Self::new(FaultKind::Memory, "exceeded the memory limit of its binding");
        }
        let what = error.root_cause().to_string().lines().next().unwrap_or("trap").to_owned();
        Self::new(FaultKind::Trap, format!("trapped: {what}"))
    }
}

/// Counts the faults of one generation.
#[derive(Debug, Default)]
pub(crate) struct FaultWatch {
    recent: Mutex<VecDeque<(Instant, FaultKind)>>,
    tripped: AtomicBool,
}

impl FaultWatch {
    /// Counts a fault. Returns `Some` with a description once, when the tolerance is exceeded.
    pub(crate) fn fault(&self, tolerance: Tolerance, fault: &Fault, now: Instant) -> Option<String> {
        if tolerance.faults == 0 || fault.is_host_fault() {
            return None;
        }
        let window = Duration::from_millis(tolerance.window_ms);
        let mut recent = self.recent.lock();
        recent.push_back((now, fault.kind));
        while recent.front().is_some_and(|(at, _)| now.duration_since(*at) > window) {
            recent.pop_front();
        }
        // Keep no more faults than the threshold needs.
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

    /// Whether the tolerance was exceeded.
    pub(crate) fn tripped(&self) -> bool {
        self.tripped.load(Ordering::Relaxed)
    }

    /// Restarts the count: the plugin keeps serving, because there is no chain to roll back to.
    pub(crate) fn reset(&self) {
        self.recent.lock().clear();
        self.tripped.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap() -> Fault {
        Fault::new(FaultKind::Trap, "trapped: unreachable")
    }

    #[test]
    fn too_many_faults_in_the_window_trip_once() {
        let (watch, start) = (FaultWatch::default(), Instant::now());
        let tolerance = Tolerance { faults: 3, window_ms: 1_000 };
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(watch.fault(tolerance, &trap(), at(0)), None);
        assert_eq!(watch.fault(tolerance, &trap(), at(900)), None);
        // The first fault has left the window.
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
    fn a_fault_is_described_with_the_plugins_message() {
        let reported = |report: &str| Fault { report: Some(report.into()), ..trap() };
        assert_eq!((trap().summary(), trap().details(None)), ("trapped: unreachable".to_owned(), Vec::new()));
        let panic = reported("panicked at src/lib.rs:7:5:\nno such route\n");
        assert_eq!(panic.summary(), "panicked at src/lib.rs:7:5: no such route");
        assert!(panic.details(None).is_empty());
        let raised = reported("KeyError: 'north'\n  route /1/plugin.py:12\n");
        assert_eq!(raised.summary(), "KeyError: 'north'");
        assert_eq!(raised.details(None), ["  route /1/plugin.py:12"]);
    }

    #[test]
    fn host_faults_are_not_counted() {
        let watch = FaultWatch::default();
        let full = Fault::new(FaultKind::Instance, INSTANCE_LIMIT_REACHED);
        assert_eq!(watch.fault(Tolerance { faults: 1, window_ms: 1_000 }, &full, Instant::now()), None);
        assert!(!watch.tripped());
    }

    #[test]
    fn a_tolerance_of_zero_never_trips() {
        let watch = FaultWatch::default();
        let never = Tolerance { faults: 0, window_ms: 1_000 };
        assert!((0..100).all(|_| watch.fault(never, &trap(), Instant::now()).is_none()));
    }
}
