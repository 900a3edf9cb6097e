//! Delivery policies: plugins that choose the step after a failed attempt.

use crate::Message;
use crate::bindings::delivery_policy::exports::switchyard::hooks::delivery;
use std::time::Duration;

#[doc(hidden)]
pub use delivery::Guest;
pub use delivery::{Advice, Attempt, ErrorClass, NextStep, Step};

/// A delivery policy. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`peers`](crate::peers), [`quality`](crate::quality) and [`details`](crate::details).
pub trait DeliveryPolicy: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Chooses the step after a failed attempt.
    fn next(&self, message: &Message, attempt: &Attempt) -> NextStep;
}

fn step(step: Step) -> NextStep {
    NextStep { step, advice: None, note: None }
}

/// Retry this leg after this time; zero: at once, at the message's old position in the queue.
#[must_use]
pub fn retry_after(wait: Duration) -> NextStep {
    step(Step::RetryAfter(crate::milliseconds(wait)))
}

/// Try the next leg; if there is none, the message fails.
#[must_use]
pub fn next_leg() -> NextStep {
    step(Step::NextLeg)
}

/// Wait for an alert about the subscriber, for this time at most.
#[must_use]
pub fn await_alert(longest: Duration) -> NextStep {
    step(Step::AwaitAlert(crate::milliseconds(longest)))
}

/// Give up.
#[must_use]
pub fn fail() -> NextStep {
    step(Step::Fail)
}

impl NextStep {
    fn advice(&mut self) -> &mut Advice {
        self.advice.get_or_insert(Advice { pause: None, rate: None, window: None })
    }

    /// The same step; the peer gets no messages for this time.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.advice().pause = Some(crate::milliseconds(time));
        self
    }

    /// The same step; the peer gets at most this number of messages per second.
    #[must_use]
    pub fn rate(mut self, a_second: f64) -> Self {
        self.advice().rate = Some(a_second);
        self
    }

    /// The same step; the peer gets at most this number of unanswered messages.
    #[must_use]
    pub fn window(mut self, messages: u32) -> Self {
        self.advice().window = Some(messages);
        self
    }

    /// The same step, with a note for the trace.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Exports a type as the plugin's delivery policy.
#[macro_export]
macro_rules! export_delivery_policy {
    ($policy:ty) => {
        const _: () = {
            $crate::__configured_guest!($policy, DeliveryPolicy, DeliveryPolicyGuest, |cell| {
                fn next(message: $crate::Message, attempt: $crate::Attempt) -> $crate::NextStep {
                    PLUGIN.with(|cell| $crate::DeliveryPolicy::next(cell.get(), &message, &attempt))
                }
            });
            $crate::bindings::delivery_policy::export_delivery_policy_component!(
                Exported with_types_in $crate::bindings::delivery_policy
            );
        };
    };
}
