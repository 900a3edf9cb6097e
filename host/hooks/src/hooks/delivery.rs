//! Calls after a message is accepted: resolvers, delivery and receipt policies, and peers.

use super::{Hooks, describe_fault};
use crate::chain::ChainOutcome;
use crate::fault_examples::LazyMessageId;
use crate::host_call_log::HostCallLog;
use crate::peer_calls::{CallbackAnswer, CallbackRequest, PeerSubmission, Submitted};
use crate::recorded_calls;
use crate::worlds::{PeerAnswer, PeerQuestion, ReceiptQuestion, uncertain_outcome};
use model::{
    AcceptedSubmission, Attempt, CallRecord, DeliveryDecision, ErrorClass, Message, Outcome, ReceiptDecision,
    ReceiptEvent, Resolution, Subscriber, Timestamp,
};
use std::sync::Arc;

impl Hooks {
    /// Resolves a number to a subscriber. May block. A fault gives "try later".
    #[must_use]
    pub fn resolve(&self, msisdn: &str, now: Timestamp) -> Resolution {
        match self.resolver.ask(msisdn, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(resolution, _) => resolution,
            ChainOutcome::Fault(fault, generation) => Resolution {
                subscriber: Subscriber::TryLater { after: None },
                by: generation.by.clone(),
                note: Some(describe_fault(&fault)),
            },
            ChainOutcome::Undecided { last, fault, .. } => Resolution {
                subscriber: Subscriber::TryLater { after: None },
                by: last.map_or_else(|| self.no_plugin.clone(), |last| last.by.clone()),
                note: Some(
                    fault.map_or_else(|| "no resolver is bound".into(), |fault| describe_fault(&fault)),
                ),
            },
        }
    }

    /// Asks the delivery policy for the step after a failed attempt. `None` if there is no policy or it failed; the
    /// built-in retry schedule then applies.
    #[must_use]
    pub fn next(&self, message: &Message, attempt: &Attempt, now: Timestamp) -> Option<DeliveryDecision> {
        match self.delivery.ask((message, attempt), now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(next, _) => Some(next),
            ChainOutcome::Fault(..) | ChainOutcome::Undecided { .. } => None,
        }
    }

    /// Asks the receipt policies for the step after a DLR, or after its absence. The first policy that does not accept
    /// decides, and the first wait counts. `None` if there is no policy, or one failed and its binding does not pass the
    /// question on; then the event counts as accepted.
    #[must_use]
    pub fn decide_receipt(
        &self,
        message: &Message,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        now: Timestamp,
    ) -> Option<ReceiptDecision> {
        self.ask_receipt(ReceiptQuestion { message, submission, event }, now, &mut HostCallLog::Off)
    }

    /// Asks as [`Hooks::decide_receipt`] does, and returns a record of the call for replays, if calls are recorded.
    #[must_use]
    pub fn decide_receipt_recorded(
        &self,
        message: &Message,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        now: Timestamp,
    ) -> (Option<ReceiptDecision>, Option<CallRecord>) {
        let question = ReceiptQuestion { message, submission, event };
        let mut call_log = self.new_call_log();
        let decision = self.ask_receipt(question, now, &mut call_log);
        let record = call_log.is_recording().then(|| {
            let directory = self.deps.environment.directory.load();
            recorded_calls::receipt_call(&question, decision.as_ref(), now, &directory, call_log)
        });
        (decision, record.and_then(|record| self.seal_record(message, record)))
    }

    /// Encrypts a recorded call, if the content of its message is encrypted.
    fn seal_record(&self, message: &Message, record: Box<[u8]>) -> Option<CallRecord> {
        codec::seal_recorded_call(self.options.cipher.as_deref(), message, record)
    }

    fn ask_receipt(
        &self,
        question: ReceiptQuestion<'_>,
        now: Timestamp,
        call_log: &mut HostCallLog,
    ) -> Option<ReceiptDecision> {
        match self.receipt.ask(question, now, call_log, &LazyMessageId::default()) {
            ChainOutcome::Decided(decision, _) => Some(decision),
            ChainOutcome::Undecided { answer, .. } => answer,
            ChainOutcome::Fault(..) => None,
        }
    }

    /// Whether a live binding serves this peer.
    #[must_use]
    pub fn serves_peer(&self, peer: &Arc<str>) -> bool {
        let request = CallbackRequest { peer: peer.clone(), ..CallbackRequest::default() };
        self.peer.chain().serves(PeerQuestion::Callback(&request))
    }

    /// Submits a message to a peer that a plugin serves. May block. A fault is a temporary refusal if the plugin had sent no HTTP
    /// request yet; otherwise the peer may have the message.
    #[must_use]
    pub fn submit(&self, submission: &PeerSubmission, now: Timestamp) -> Submitted {
        self.submit_with(submission, now, HostCallLog::Off).0
    }

    /// Submits as [`Hooks::submit`] does, and returns a record of the call for replays, if calls are recorded and this call
    /// can be recorded: it must have made exactly one HTTP request, and the response must contain nothing that must not be
    /// stored.
    #[must_use]
    pub fn submit_recorded(
        &self,
        submission: &PeerSubmission,
        now: Timestamp,
    ) -> (Submitted, Option<CallRecord>) {
        self.submit_with(submission, now, self.new_call_log())
    }

    fn submit_with(
        &self,
        submission: &PeerSubmission,
        now: Timestamp,
        mut call_log: HostCallLog,
    ) -> (Submitted, Option<CallRecord>) {
        let question = PeerQuestion::Submit(submission);
        let outcome = self.peer.ask(question, now, &mut call_log, &LazyMessageId::default());
        let fault = match outcome {
            ChainOutcome::Decided(PeerAnswer::Submitted(submitted), by) => {
                let record = recorded_calls::submit_call(submission, &submitted, &by, now, call_log);
                let record = record.and_then(|record| self.seal_record(&submission.message, record));
                return (submitted, record);
            }
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => fault,
            ChainOutcome::Decided(PeerAnswer::Called(_), _) | ChainOutcome::Undecided { .. } => {
                let note = Some("no plugin serves the peer".into());
                return (Submitted { outcome: Outcome::NotSent, pause: None, note }, None);
            }
        };
        let outcome = if fault.sent_request {
            uncertain_outcome()
        } else {
            Outcome::Refused { class: ErrorClass::Temporary, code: 0, taken: Vec::new() }
        };
        (Submitted { outcome, pause: None, note: Some(describe_fault(&fault)) }, None)
    }

    /// Lets the plugin of a peer read a callback. May block.
    ///
    /// # Errors
    /// The description of the plugin's fault, or no plugin serves the peer.
    pub fn callback(&self, request: &CallbackRequest, now: Timestamp) -> Result<CallbackAnswer, String> {
        let question = PeerQuestion::Callback(request);
        match self.peer.ask(question, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(PeerAnswer::Called(answer), _) => Ok(*answer),
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
                Err(describe_fault(&fault).into())
            }
            ChainOutcome::Decided(PeerAnswer::Submitted(_), _) | ChainOutcome::Undecided { .. } => {
                Err("no plugin serves the peer".to_owned())
            }
        }
    }
}
