//! Calls of receipt policies, rebuilt from the trace of a message: for messages from the time before a policy was
//! bound.

use archive::{ArchivedMessage, DecodedTrace};
use model::{
    DlrFacts, DlrState, Hook, ReceiptEvent, ReceiptVerdict, RecordedReceiptCall, Step, StepKind, Timestamp,
    Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// The leg, attempt and peer at a step of a trace.
struct Position {
    peer: Arc<str>,
    attempts: u16,
    leg: u8,
    submitted_at: Timestamp,
}

/// The DLRs and timeouts in a trace, each with the decision that followed. A trace without any decision means accept.
/// The host's answers, the network's error code and the exact times are missing. The acceptance by the peer is left
/// out: traces do not tell whether a DLR was expected.
pub(super) fn calls_of_trace(message: &ArchivedMessage, trace: &DecodedTrace) -> Vec<RecordedReceiptCall> {
    if !message.dlr_request.any() {
        return Vec::new();
    }
    let legs = match &message.verdict {
        Verdict::Forward(legs) => u8::try_from(legs.len()).unwrap_or(u8::MAX),
        _ => 0,
    };
    let mut calls = Vec::new();
    let mut position: Option<Position> = None;
    let mut next_leg = 0_u8;
    for (index, step) in trace.steps.iter().enumerate() {
        let event = match &step.kind {
            StepKind::Submitted { peer, attempt } => {
                let (peer, submitted_at) = (peer.clone(), step.at);
                position = Some(Position { peer, attempts: *attempt, leg: next_leg, submitted_at });
                continue;
            }
            StepKind::NextLeg { .. } => {
                next_leg = next_leg.saturating_add(1);
                continue;
            }
            StepKind::DlrReceived { state, error } => {
                let Some(state) = DlrState::from_octet(*state) else { continue };
                let since = position.as_ref().map_or(step.at, |position| position.submitted_at);
                ReceiptEvent::Dlr(DlrFacts {
                    is_final: state.is_final() && state != DlrState::Accepted,
                    state,
                    error: *error,
                    network_error: None,
                    latency: between(since, step.at),
                })
            }
            StepKind::DlrOverdue => ReceiptEvent::Timeout,
            _ => continue,
        };
        let Some(Position { peer, attempts, leg, .. }) = &position else { continue };
        let (verdict, wait) = decision(trace.steps.get(index + 1..).unwrap_or_default());
        calls.push(RecordedReceiptCall {
            at: step.at,
            attempts: *attempts,
            leg: (*leg, legs),
            peer: peer.clone(),
            age: between(message.accepted_at, step.at),
            left: between(step.at, trace.expires_at),
            event,
            verdict,
            wait,
            host_calls: None,
        });
    }
    calls
}

fn between(from: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(until.0.saturating_sub(from.0))
}

/// The decision on a DLR or timeout, from the steps up to the next one.
fn decision(steps: &[Step<Arc<str>>]) -> (ReceiptVerdict, Option<Duration>) {
    let (mut verdict, mut wait, mut is_decided) = (ReceiptVerdict::Accept, None, false);
    for step in steps {
        match &step.kind {
            StepKind::Decided { hook: Hook::Receipt, .. } => is_decided = true,
            StepKind::DlrSuspected => verdict = ReceiptVerdict::Suspect,
            StepKind::DlrRemapped { state, error } => {
                if let Some(state) = DlrState::from_octet(*state) {
                    verdict = ReceiptVerdict::Remap { state, error: *error };
                }
            }
            StepKind::NextLeg { .. } if is_decided => verdict = ReceiptVerdict::NextLeg,
            StepKind::AwaitingDlr { until } if is_decided => wait = Some(between(step.at, *until)),
            StepKind::DlrReceived { .. } | StepKind::DlrOverdue | StepKind::Submitted { .. } => break,
            _ => {}
        }
    }
    (verdict, wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Address, DlrRequest, Leg, MessageId, PluginVersion};

    fn trace(kinds: &[StepKind<Arc<str>>]) -> DecodedTrace {
        let step = |(index, kind): (usize, &StepKind<Arc<str>>)| Step {
            at: Timestamp(1_000 + index as u64 * 10),
            kind: kind.clone(),
        };
        let steps = kinds.iter().enumerate().map(step).collect();
        DecodedTrace { expires_at: Timestamp(9_000), steps, ..DecodedTrace::default() }
    }

    fn message() -> ArchivedMessage {
        let legs = vec![Leg::to("north".into()), Leg::to("south".into())];
        ArchivedMessage {
            verdict: Verdict::Forward(legs),
            dlr_request: DlrRequest::FINAL,
            accepted_at: Timestamp(1_000),
            id: MessageId(1),
            decided_at: Timestamp(1_000),
            origin: "acme".into(),
            source: Address::default(),
            destination: Address::default(),
            service_type: Default::default(),
            data_coding: 0,
            priority: 0,
            length: 0,
            udhi: false,
            body: None,
            sender: None,
            changes: None,
            screening: None,
            lookup: None,
            price: None,
            calls: Vec::new(),
            trace: None,
            host_calls: None,
            routed: true,
            missing: None,
        }
    }

    #[test]
    fn dlrs_and_timeouts_of_a_trace_are_calls_with_their_decisions() {
        let by = Arc::new(PluginVersion { plugin: "second-chance".to_owned(), version: "1".to_owned() });
        let decided = StepKind::Decided { hook: Hook::Receipt, by, note: None };
        let submitted = |peer: &str, attempt| StepKind::Submitted { peer: Arc::<str>::from(peer), attempt };
        let received = |state: DlrState, error| StepKind::DlrReceived { state: state as u8, error };
        let steps = [
            StepKind::Accepted,
            submitted("north", 1),
            received(DlrState::Enroute, 0),
            received(DlrState::Undeliverable, 8),
            decided.clone(),
            StepKind::NextLeg { peer: "south".into() },
            submitted("south", 2),
            StepKind::DlrOverdue,
            decided,
            StepKind::AwaitingDlr { until: Timestamp(2_090) },
            received(DlrState::Delivered, 0),
        ];
        let calls = calls_of_trace(&message(), &trace(&steps));
        let found: Vec<_> = calls
            .iter()
            .map(|call| (&*call.peer, call.attempts, call.leg, call.verdict, call.wait))
            .collect();
        let second = Some(Duration::from_secs(1));
        assert_eq!(
            found,
            [
                ("north", 1, (0, 2), ReceiptVerdict::Accept, None),
                ("north", 1, (0, 2), ReceiptVerdict::NextLeg, None),
                ("south", 2, (1, 2), ReceiptVerdict::Accept, second),
                ("south", 2, (1, 2), ReceiptVerdict::Accept, None),
            ]
        );
        let ReceiptEvent::Dlr(dlr) = calls[1].event else { panic!("{calls:?}") };
        assert_eq!((dlr.state, dlr.error, dlr.is_final), (DlrState::Undeliverable, 8, true));
        assert_eq!((dlr.latency, calls[1].age), (Duration::from_millis(20), Duration::from_millis(30)));
        assert_eq!((calls[2].event, calls[1].left), (ReceiptEvent::Timeout, Duration::from_millis(7_970)));
        // Its submitter wants no DLR, so no policy would have been called.
        let other = ArchivedMessage { dlr_request: DlrRequest::NONE, ..message() };
        assert_eq!(calls_of_trace(&other, &trace(&steps)), []);
        assert_eq!(calls_of_trace(&message(), &DecodedTrace::default()), []);
    }
}
