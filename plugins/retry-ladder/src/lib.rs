//! The default delivery policy: a retry schedule for each class of failure.

use retry_ladder_policy::{Attempt as FailedAttempt, FailureClass, Policy, Step};
use std::time::Duration;
use switchyard_sdk::{
    Attempt, DeliveryPolicy, ErrorClass, Message, NextStep, await_alert, fail, next_leg, retry_after,
};

struct RetryLadder(Policy);

impl DeliveryPolicy for RetryLadder {
    fn configure(document: &str) -> Result<Self, String> {
        Policy::parse(document).map(Self)
    }

    fn next(&self, _message: &Message, attempt: &Attempt) -> NextStep {
        let decision = self.0.next(&FailedAttempt {
            number: attempt.number,
            leg: attempt.leg,
            legs: attempt.legs,
            peer: &attempt.peer,
            class: match attempt.class {
                ErrorClass::Temporary => FailureClass::Temporary,
                ErrorClass::Permanent => FailureClass::Permanent,
                ErrorClass::Absent => FailureClass::Absent,
                ErrorClass::MemoryFull => FailureClass::MemoryFull,
                ErrorClass::Throttled => FailureClass::Throttled,
            },
            age: Duration::from_millis(attempt.age),
            left: Duration::from_millis(attempt.left),
        });
        let mut next = match decision.step {
            Step::RetryAfter(wait) => retry_after(wait),
            Step::AwaitAlert(longest) => await_alert(longest),
            Step::NextLeg => next_leg(),
            Step::Fail => fail(),
        };
        if let Some(pause) = decision.advice.pause {
            next = next.pause(pause);
        }
        if let Some(rate) = decision.advice.rate {
            next = next.rate(rate);
        }
        if let Some(window) = decision.advice.window {
            next = next.window(window);
        }
        next.because(decision.note)
    }
}

switchyard_sdk::export_delivery_policy!(RetryLadder);
