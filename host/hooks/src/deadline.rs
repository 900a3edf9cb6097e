//! Call deadlines in running time: a call that only waits for a processor does not exceed its deadline.
//!
//! The wasmtime epoch counts wall-clock time. On a busy machine the kernel may preempt a thread for longer than the
//! call's deadline, and that is not the plugin's fault. So when the epoch reports a late call, the running time of its
//! thread decides. A call that returns in time never reaches this code and costs nothing extra.

use std::time::Duration;
use wasmtime::UpdateDeadline;

/// Maximum number of checks of one call; after that the call ends, even if its thread used little CPU time. This bounds
/// unforeseen cases, such as a suspended machine.
const MAX_CHECKS: u32 = 200;

/// The state of a late call between two checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeadlineCheck {
    running: Duration,
    checks: u32,
}

/// Checks a call whose epoch deadline (half of `deadline`) has passed; `None` ends the call. The check repeats every
/// half deadline. The call ends once its thread has run for half a deadline since the first check.
pub(crate) fn check_deadline(
    last_check: &mut Option<DeadlineCheck>,
    deadline: Duration,
    ticks: u64,
) -> Option<UpdateDeadline> {
    may_continue(last_check, deadline, thread_run_time()).then_some(UpdateDeadline::Continue(ticks))
}

/// Whether the call may continue. If the running time is unknown, wall-clock time counts: the second check ends the
/// call.
fn may_continue(
    last_check: &mut Option<DeadlineCheck>,
    deadline: Duration,
    running: Option<Duration>,
) -> bool {
    let Some(first) = last_check else {
        *last_check = Some(DeadlineCheck { running: running.unwrap_or_default(), checks: 1 });
        return true;
    };
    first.checks += 1;
    let Some(running) = running else { return false };
    first.checks < MAX_CHECKS && running.saturating_sub(first.running) < deadline / 2
}

/// The running time of this thread: the first number of `schedstat`, in nanoseconds (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn thread_run_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    // A kernel without these statistics reports 0. So does a thread that has not left its processor yet, but if a call
    // on such a thread is late, it has run, not waited.
    (nanoseconds > 0).then_some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(20);

    fn at(milliseconds: u64) -> Option<Duration> {
        Some(Duration::from_millis(milliseconds))
    }

    #[test]
    fn running_time_and_not_waiting_time_ends_a_call() {
        let mut last_check = None;
        assert!(may_continue(&mut last_check, DEADLINE, at(500)));
        // It got no processor for a while, and then only a little.
        for running in [500, 500, 503, 509] {
            assert!(may_continue(&mut last_check, DEADLINE, at(running)));
        }
        assert!(!may_continue(&mut last_check, DEADLINE, at(510)));
    }

    #[test]
    fn without_a_running_time_the_wall_clock_counts() {
        let mut last_check = None;
        assert!(may_continue(&mut last_check, DEADLINE, None));
        assert!(!may_continue(&mut last_check, DEADLINE, None));
    }

    #[test]
    fn the_number_of_checks_is_limited() {
        let mut last_check = None;
        let checks = (0..10_000).take_while(|_| may_continue(&mut last_check, DEADLINE, at(7))).count();
        assert_eq!(checks, MAX_CHECKS as usize - 1);
    }

    #[test]
    fn the_running_time_is_available() {
        // The kernel updates a thread's running time only when the thread leaves its processor.
        let updated = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            thread_run_time().is_some()
        });
        assert!(updated, "/proc/thread-self/schedstat");
    }
}
