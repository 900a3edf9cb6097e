use crate::{Advice, FailureClass, FinalAction, Policy};
use std::time::Duration;

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Number of attempts so far over all legs, including this one; from 1.
    pub number: u16,
    /// The leg's index, from 0.
    pub leg: u8,
    /// Number of legs.
    pub legs: u8,
    /// The peer of the attempt.
    pub peer: &'a str,
    /// The class of the failure.
    pub class: FailureClass,
    /// Time since the message was accepted.
    pub age: Duration,
    /// Remaining validity.
    pub left: Duration,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Retry the same leg after this time.
    RetryAfter(Duration),
    /// Retry the same leg at an alert about the subscriber, or after this time.
    AwaitAlert(Duration),
    /// Try the next leg.
    NextLeg,
    /// Fail the message.
    Fail,
}

/// The next step, with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The next step.
    pub step: Step,
    /// Advice about the peer.
    pub advice: Advice,
    /// For the trace.
    pub note: String,
}

impl Policy {
    /// Decides the next step after a failed attempt.
    #[must_use]
    pub fn next(&self, attempt: &Attempt<'_>) -> Decision {
        let schedule = self.schedule(attempt.peer, attempt.class);
        let class = attempt.class.name();
        let (step, note) = self.step(attempt);
        Decision { step, advice: schedule.advice, note: format!("{class}: {note}") }
    }

    fn step(&self, attempt: &Attempt<'_>) -> (Step, String) {
        let schedule = self.schedule(attempt.peer, attempt.class);
        if let Some(overall) = self.overall
            && attempt.age >= overall
        {
            return (Step::Fail, format!("the overall limit of {} s is reached", overall.as_secs()));
        }
        let last_leg = u16::from(attempt.leg) + 1 >= u16::from(attempt.legs);
        let then = match schedule.then {
            FinalAction::NextLeg if last_leg => (Step::Fail, "and no leg is left"),
            FinalAction::NextLeg => (Step::NextLeg, "next leg"),
            FinalAction::Fail => (Step::Fail, "no further attempt"),
        };
        let Some(wait) = schedule.wait(attempt.number) else { return (then.0, then.1.to_owned()) };
        if let Some(limit) = schedule.attempts_per_leg {
            let so_far = u32::from(limit) * (u32::from(attempt.leg) + 1);
            if u32::from(attempt.number) >= so_far {
                return (then.0, format!("{} attempts are enough, {}", attempt.number, then.1));
            }
        }
        if wait >= attempt.left && !last_leg && schedule.then == FinalAction::NextLeg {
            return (Step::NextLeg, "it would expire before the next attempt, next leg".to_owned());
        }
        // If the wait exceeds the overall limit, the last attempt is made at the limit instead.
        let wait = match self.overall {
            Some(overall) => wait.min(overall.saturating_sub(attempt.age)),
            None => wait,
        };
        let seconds = wait.as_secs_f64();
        match schedule.await_alert {
            true => (Step::AwaitAlert(wait), format!("attempt {}, an alert or {seconds} s", attempt.number)),
            false => (Step::RetryAfter(wait), format!("attempt {}, again in {seconds} s", attempt.number)),
        }
    }
}
