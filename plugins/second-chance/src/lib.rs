//! The default receipt policy: it tries the next leg for messages that are not delivered, replaces states and error codes,
//! and ignores implausibly fast DLRs.

use second_chance_policy::{DlrState, Event, Policy, Step, Submission};
use std::time::Duration;
use switchyard_sdk::receipt::{self, Decision, accept, next_leg, remap, suspect};
use switchyard_sdk::{Message, Receipt, details, names_peers};

struct SecondChance(Policy);

impl Receipt for SecondChance {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        names_peers(policy.peers());
        Ok(Self(policy))
    }

    fn decide(
        &self,
        message: &Message,
        submission: &receipt::Submission,
        event: &receipt::Event,
    ) -> Decision {
        let event = match event {
            receipt::Event::Accepted => Event::Accepted,
            receipt::Event::Timeout => Event::Timeout,
            receipt::Event::Dlr(dlr) => match final_state(dlr.state) {
                Some(state) if dlr.final_ => {
                    Event::Dlr { state, error: dlr.error, latency: Duration::from_millis(dlr.latency) }
                }
                _ => return accept(),
            },
        };
        let submission = Submission {
            destination: &message.destination.value,
            peer: &submission.peer,
            has_next_leg: submission.leg.saturating_add(1) < submission.legs,
        };
        let decided = self.0.decide(submission, event, details::attribute);
        let mut decision = match decided.step {
            Step::Accept => accept(),
            Step::NextLeg => next_leg(),
            Step::Suspect => suspect(),
            Step::Remap(state, error) => remap(guest_state(state), error),
        };
        if let Some(wait) = decided.wait {
            decision = decision.ask_again_after(wait);
        }
        decision.note = decided.note;
        decision
    }
}

fn final_state(state: receipt::DlrState) -> Option<DlrState> {
    Some(match state {
        receipt::DlrState::Delivered => DlrState::Delivered,
        receipt::DlrState::Expired => DlrState::Expired,
        receipt::DlrState::Deleted => DlrState::Deleted,
        receipt::DlrState::Undeliverable | receipt::DlrState::Skipped => DlrState::Undeliverable,
        receipt::DlrState::Unknown => DlrState::Unknown,
        receipt::DlrState::Rejected => DlrState::Rejected,
        receipt::DlrState::Scheduled | receipt::DlrState::Enroute | receipt::DlrState::Accepted => {
            return None;
        }
    })
}

fn guest_state(state: DlrState) -> receipt::DlrState {
    match state {
        DlrState::Delivered => receipt::DlrState::Delivered,
        DlrState::Expired => receipt::DlrState::Expired,
        DlrState::Deleted => receipt::DlrState::Deleted,
        DlrState::Undeliverable => receipt::DlrState::Undeliverable,
        DlrState::Unknown => receipt::DlrState::Unknown,
        DlrState::Rejected => receipt::DlrState::Rejected,
    }
}

switchyard_sdk::export_receipt!(SecondChance);
