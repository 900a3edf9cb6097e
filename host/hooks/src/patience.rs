//! Whether a call that takes long runs, or only waits for a processor.
//!
//! The epoch counts wall-clock time. On a busy machine the system may take the processor away from a thread in the middle
//! of a call for longer than the call's deadline; to call that the plugin's fault would hold a message for nothing. So
//! when the epoch says that a call is late, its thread's own running time decides. A call in time never comes here, and
//! so pays nothing for it.

use std::time::Duration;
use wasmtime::UpdateDeadline;

/// How many times a call may be looked at: beyond that it is over, whatever its thread did. A bound for the unforeseen,
/// such as a machine that was suspended.
const LOOKS: u32 = 200;

/// What is remembered of a late call between two looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    running: Duration,
    looks: u32,
}

/// Judges a call whose epoch deadline, half of `deadline`, has passed: `None` ends it. It is looked at every half
/// deadline, and ends once its thread has run for half a deadline since the first look.
pub(crate) fn judge(looked: &mut Option<Look>, deadline: Duration, ticks: u64) -> Option<UpdateDeadline> {
    judge_by(looked, deadline, running()).then_some(UpdateDeadline::Continue(ticks))
}

/// Whether the call may go on. Where the running time cannot be known, wall-clock time counts: the second look ends it.
fn judge_by(looked: &mut Option<Look>, deadline: Duration, running: Option<Duration>) -> bool {
    let Some(first) = looked else {
        *looked = Some(Look { running: running.unwrap_or_default(), looks: 1 });
        return true;
    };
    first.looks += 1;
    let Some(running) = running else { return false };
    first.looks < LOOKS && running.saturating_sub(first.running) < deadline / 2
}

/// How long this thread has run on a processor: the first number of `schedstat`, in nanoseconds (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn running() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    // A kernel without these statistics says 0. So does a thread that has not left its processor yet, but a call of such
    // a thread that is late has run, not waited.
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
    fn a_thread_that_ran_is_ended_and_one_that_waited_is_not() {
        let mut looked = None;
        assert!(judge_by(&mut looked, DEADLINE, at(500)));
        // It got no processor for a while, and a little of one then.
        for running in [500, 500, 503, 509] {
            assert!(judge_by(&mut looked, DEADLINE, at(running)));
        }
        assert!(!judge_by(&mut looked, DEADLINE, at(510)));
    }

    #[test]
    fn without_running_times_the_wall_clock_counts() {
        let mut looked = None;
        assert!(judge_by(&mut looked, DEADLINE, None));
        assert!(!judge_by(&mut looked, DEADLINE, None));
    }

    #[test]
    fn no_call_is_looked_at_for_ever() {
        let mut looked = None;
        let looks = (0..10_000).take_while(|_| judge_by(&mut looked, DEADLINE, at(7))).count();
        assert_eq!(looks, LOOKS as usize - 1);
    }

    #[test]
    fn this_system_tells_running_times() {
        // A thread's time is told once it has left its processor for the first time.
        let told = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            running().is_some()
        });
        assert!(told, "/proc/thread-self/schedstat");
    }
}
