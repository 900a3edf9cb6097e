//! Repetition of recorded calls of receipt policies and of plugins of peers.

use super::{DryRun, DryRunChain, TracedDryRun, into_answer, wrong_hook_fault};
use crate::Fault;
use crate::chain::ChainOutcome;
use crate::fault_examples::LazyMessageId;
use crate::host_answer::HostAnswer;
use crate::host_call_log::HostCallLog;
use crate::peer_calls::{PeerSubmission, Submitted};
use crate::worlds::{PeerAnswer, PeerQuestion, ReceiptQuestion};
use capabilities::FetchRequest;
use model::{AcceptedSubmission, Message, PluginVersion, ReceiptDecision, ReceiptEvent, Timestamp};
use std::sync::Arc;

/// The answer of receipt policies to a recorded question.
#[derive(Debug, Clone)]
pub struct RepeatedReceiptCall {
    /// The decision; `None` if there is no policy.
    pub decision: Result<Option<ReceiptDecision>, Fault>,
    /// The first kind of host call that the record did not answer.
    pub missing: Option<&'static str>,
}

/// The result of a recorded submission that a plugin of a peer repeats.
#[derive(Debug, Clone)]
pub struct RepeatedSubmitCall {
    /// The outcome.
    pub submitted: Result<Submitted, Fault>,
    /// The HTTP requests that the plugin would have sent, with names of secrets in place of secrets. The first request got
    /// the recorded answer.
    pub requests: Vec<FetchRequest>,
    /// The first kind of host call that the record did not answer.
    pub missing: Option<&'static str>,
}

impl DryRun {
    /// Asks the receipt policies; host calls are answered from this record.
    #[must_use]
    pub fn decide_receipt_again(
        &self,
        message: &Message,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        now: Timestamp,
        call_log: &[u8],
    ) -> RepeatedReceiptCall {
        let question = ReceiptQuestion { message, submission, event };
        self.ask_receipt_again(question, now, &mut HostCallLog::replaying(call_log)).0
    }

    /// Asks as [`DryRun::decide_receipt_again`] does, and traces the call.
    #[must_use]
    pub fn trace_receipt_again(
        &self,
        message: &Message,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        now: Timestamp,
        call_log: &[u8],
    ) -> TracedDryRun<RepeatedReceiptCall> {
        let mut call_log = HostCallLog::replaying_traced(call_log);
        let question = ReceiptQuestion { message, submission, event };
        let (outcome, by) = self.ask_receipt_again(question, now, &mut call_log);
        TracedDryRun { outcome, by, host_answers: HostAnswer::all(&call_log) }
    }

    fn ask_receipt_again(
        &self,
        question: ReceiptQuestion<'_>,
        now: Timestamp,
        call_log: &mut HostCallLog,
    ) -> (RepeatedReceiptCall, Option<Arc<PluginVersion>>) {
        let DryRunChain::Receipt(chain) = &self.chain else {
            return (RepeatedReceiptCall { decision: Err(wrong_hook_fault()), missing: None }, None);
        };
        let outcome = chain.ask(question, now, call_log, &self.reporter, &LazyMessageId::default());
        let (decision, by) = match outcome {
            ChainOutcome::Decided(decision, by) => (Ok(Some(decision)), Some(by.by.clone())),
            ChainOutcome::Undecided { answer, last, .. } => (Ok(answer), last.map(|last| last.by.clone())),
            ChainOutcome::Fault(fault, by) => (Err(fault), Some(by.by.clone())),
        };
        (RepeatedReceiptCall { decision, missing: call_log.missing() }, by)
    }

    /// Whether a plugin of the chain serves the peer of this submission.
    #[must_use]
    pub fn serves(&self, submission: &PeerSubmission) -> bool {
        let DryRunChain::Peer(chain) = &self.chain else { return false };
        chain.serves(PeerQuestion::Submit(submission))
    }

    /// The digest of the policy document of the plugin that serves the peer of this submission, and the plugin's version.
    #[must_use]
    pub fn policy_for(&self, submission: &PeerSubmission) -> Option<([u8; 8], &PluginVersion)> {
        let DryRunChain::Peer(chain) = &self.chain else { return None };
        let generation = chain.serving(PeerQuestion::Submit(submission))?;
        Some((crate::recorded_calls::policy_digest(&generation.binding.policy), &generation.by))
    }

    /// Repeats a recorded submission; host calls are answered from this record. Nothing is sent, and secrets are replaced by
    /// their names.
    #[must_use]
    pub fn submit_again(
        &self,
        submission: &PeerSubmission,
        now: Timestamp,
        call_log: &[u8],
    ) -> RepeatedSubmitCall {
        let DryRunChain::Peer(chain) = &self.chain else {
            let submitted = Err(wrong_hook_fault());
            return RepeatedSubmitCall { submitted, requests: Vec::new(), missing: None };
        };
        let mut call_log = HostCallLog::replaying(call_log);
        let question = PeerQuestion::Submit(submission);
        let outcome = chain.ask(question, now, &mut call_log, &self.reporter, &LazyMessageId::default());
        let submitted = match into_answer(outcome) {
            Ok(PeerAnswer::Submitted(submitted)) => Ok(submitted),
            Ok(PeerAnswer::Called(_)) => Err(wrong_hook_fault()),
            Err(fault) => Err(fault),
        };
        RepeatedSubmitCall { submitted, missing: call_log.missing(), requests: call_log.take_requests() }
    }
}
