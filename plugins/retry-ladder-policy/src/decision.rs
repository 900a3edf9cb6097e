use crate::{Advice, Class, Policy, Then};
use std::time::Duration;

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Attempts made so far, this one included, over all legs; from 1.
    pub number: u16,
    /// The leg's index, from 0.
    pub leg: u8,
    /// How many legs there are.
    pub legs: u8,
    /// The peer that was tried.
    pub peer: &'a str,
    /// What kind of failure it was.
    pub class: Class,
    /// Since the message was accepted.
    pub age: Duration,
    /// For how long it is still valid.
    pub left: Duration,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The same leg after a while.
    RetryAfter(Duration),
    /// The same leg as soon as the subscriber is heard of, or after a while.
    AwaitAlert(Duration),
    /// The next leg.
    NextLeg,
    /// The message's end.
    Fail,
}

/// What follows, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What follows.
    pub step: Step,
    /// What it says about the peer.
    pub advice: Advice,
    /// For the trace.
    pub note: String,
}

impl Policy {
    /// Decides what follows a failed attempt.
    #[must_use]
    pub fn next(&self, attempt: &Attempt<'_>) -> Decision {
        let ladder = self.ladder(attempt.peer, attempt.class);
        let class = attempt.class.name();
        let (step, note) = self.step(attempt);
        Decision { step, advice: ladder.advice, note: format!("{class}: {note}") }
    }

    fn step(&self, attempt: &Attempt<'_>) -> (Step, String) {
        let ladder = self.ladder(attempt.peer, attempt.class);
        if let Some(overall) = self.overall
            && attempt.age >= overall
        {
            return (Step::Fail, format!("the overall limit of {} s is reached", overall.as_secs()));
        }
        let last_leg = u16::from(attempt.leg) + 1 >= u16::from(attempt.legs);
        let then = match ladder.then {
            Then::NextLeg if last_leg => (Step::Fail, "and no leg is left"),
            Then::NextLeg => (Step::NextLeg, "next leg"),
            Then::Fail => (Step::Fail, "no further attempt"),
        };
        let Some(wait) = ladder.wait(attempt.number) else { return (then.0, then.1.to_owned()) };
        if let Some(limit) = ladder.attempts_per_leg {
            let so_far = u32::from(limit) * (u32::from(attempt.leg) + 1);
            if u32::from(attempt.number) >= so_far {
                return (then.0, format!("{} attempts are enough, {}", attempt.number, then.1));
            }
        }
        if wait >= attempt.left && !last_leg && ladder.then == Then::NextLeg {
            return (Step::NextLeg, "it would expire before the next attempt, next leg".to_owned());
        }
        // The last attempt is made when the limit is reached, not given up for a wait that is too long for it.
        let wait = match self.overall {
            Some(overall) => wait.min(overall.saturating_sub(attempt.age)),
            None => wait,
        };
        let seconds = wait.as_secs_f64();
        match ladder.await_alert {
            true => (Step::AwaitAlert(wait), format!("attempt {}, an alert or {seconds} s", attempt.number)),
            false => (Step::RetryAfter(wait), format!("attempt {}, again in {seconds} s", attempt.number)),
        }
    }
}
