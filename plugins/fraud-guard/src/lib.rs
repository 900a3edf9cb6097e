//! A router that stops sources that send too fast, or to consecutive numbers. Put it first in the chain, and start with
//! a shadow trial; it passes all other messages to the next router.

use fraud_guard_policy::{Counters, Policy, RuleAction};
use std::time::Duration;
use switchyard_sdk::{Decision, Message, RejectReason, Router, clock, counters, hold, pass, reject};

struct FraudGuard(Policy);

/// The host's counters.
struct Host;

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Counters for Host {
    fn add(&self, name: &str, key: &str, window: Duration) -> u64 {
        counters::add(name, key, 1, milliseconds(window))
    }

    fn sum(&self, name: &str, key: &str, window: Duration) -> u64 {
        counters::sum(name, key, milliseconds(window))
    }
}

impl Router for FraudGuard {
    fn configure(document: &str) -> Result<Self, String> {
        Policy::parse(document).map(Self)
    }

    fn route(&self, message: &Message) -> Decision {
        let (source, destination) = (&message.source.value, &message.destination.value);
        let Some(finding) = self.0.evaluate(&message.origin, source, destination, &Host) else {
            return pass();
        };
        let decision = match finding.then {
            RuleAction::Reject => reject(RejectReason::Prohibited),
            RuleAction::Hold(time) => hold(clock::now().saturating_add(milliseconds(time))),
        };
        decision.because(finding.note)
    }
}

switchyard_sdk::export_router!(FraudGuard);
