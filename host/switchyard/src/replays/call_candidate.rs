//! Candidates for calls that are recorded after a message's acceptance: receipt policies, and plugins of peers.

use super::{UNKNOWN_PEER, routed_message};
use crate::replays::request_differences::{described_parts, request_differences};
use crate::replays::trace_calls::calls_of_trace;
use arc_swap::ArcSwap;
use archive::ArchivedMessage;
use bytes::Bytes;
use hooks::{DryRun, PeerSubmission, RepeatedSubmitCall};
use model::{
    AcceptedSubmission, Directory, Hook, Message, Outcome, PluginVersion, ReceiptEvent, ReceiptVerdict,
    RecordedReceiptCall, RecordedSubmitCall, SubmitResult, SubmitTicket,
};
use replay::{Candidate, CandidateDecision, CandidateVerdict, RepeatedCall};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The plugins that the calls are repeated with.
pub(super) enum CallChain {
    /// Receipt policies.
    Receipts(DryRun),
    /// Plugins of peers. `live`: the plugins that serve now; the candidate's requests are compared to theirs.
    Peers { candidate: DryRun, live: Option<DryRun> },
}

/// A candidate to which the recorded calls of each message are repeated.
pub(super) struct CallCandidate {
    pub(super) chain: CallChain,
    pub(super) directory: Arc<ArcSwap<Directory>>,
    pub(super) unknown_version: Arc<PluginVersion>,
}

impl Candidate for CallCandidate {
    /// Not called: this candidate decides about calls.
    fn decide(&self, _: &ArchivedMessage) -> CandidateDecision {
        CandidateDecision::new(CandidateVerdict::Pass)
    }

    fn repeat_calls(&self, archived: &ArchivedMessage) -> Option<Vec<RepeatedCall>> {
        let hook = match self.chain {
            CallChain::Receipts(_) => Hook::Receipt,
            CallChain::Peers { .. } => Hook::Peer,
        };
        let records: Vec<&Bytes> =
            archived.calls.iter().filter(|(of, _)| *of == hook).map(|(_, record)| record).collect();
        let of_trace = match hook {
            Hook::Receipt if records.is_empty() => {
                archived.decoded_trace().map(|trace| calls_of_trace(archived, &trace)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        if records.is_empty() && of_trace.is_empty() {
            return Some(Vec::new());
        }
        let (message, is_origin_unknown) =
            routed_message(archived, &self.directory.load(), &self.unknown_version);
        let message = Arc::new(message);
        let mut calls = match &self.chain {
            CallChain::Receipts(policies) if records.is_empty() => {
                let mut calls = self.repeat_receipt_calls(policies, &message, &of_trace);
                mark_inexact(&mut calls, "a DLR of a trace, without the answers of the host");
                calls
            }
            CallChain::Receipts(policies) => {
                let recorded =
                    records.iter().filter_map(|record| decoded(codec::decode_receipt_call(record)));
                self.repeat_receipt_calls(policies, &message, &recorded.collect::<Vec<_>>())
            }
            CallChain::Peers { candidate, live } => {
                let has_pool_sender = archived.sender.is_some();
                let repeat = |record| Self::repeat_submit_call((candidate, live), &message, record);
                let mut calls: Vec<_> = records.into_iter().filter_map(repeat).collect();
                if has_pool_sender {
                    mark_inexact(&mut calls, "the number that the message had as its sender");
                }
                calls
            }
        };
        if is_origin_unknown {
            mark_inexact(&mut calls, "an unknown account or peer");
        }
        Some(calls)
    }
}

impl CallCandidate {
    fn repeat_receipt_calls(
        &self,
        policies: &DryRun,
        message: &Message,
        recorded: &[RecordedReceiptCall],
    ) -> Vec<RepeatedCall> {
        let mut calls: Vec<RepeatedCall> = Vec::new();
        let mut has_changed = false;
        for recorded in recorded {
            let mut call = self.repeat_receipt_call(policies, message, recorded);
            // After another decision, the further calls would have been different.
            has_changed |= calls.last().is_some_and(|last| last.candidate.as_ref() != Ok(&last.recorded));
            if has_changed {
                call.inexact_because = Some(Cow::Borrowed("an earlier decision on the message is another"));
            }
            calls.push(call);
        }
        calls
    }

    fn repeat_receipt_call(
        &self,
        policies: &DryRun,
        message: &Message,
        recorded: &RecordedReceiptCall,
    ) -> RepeatedCall {
        let peer = self.directory.load().id(&recorded.peer);
        let submission = AcceptedSubmission {
            attempts: recorded.attempts,
            leg: recorded.leg,
            peer: peer.unwrap_or(UNKNOWN_PEER),
            age: recorded.age,
            left: recorded.left,
        };
        let host_calls = recorded.host_calls.as_deref().unwrap_or_default();
        let event = recorded.event;
        let again = policies.decide_receipt_again(message, submission, event, recorded.at, host_calls);
        let missing = again.missing.map(Cow::Borrowed);
        let unknown = peer.is_none().then_some(Cow::Borrowed("an unknown account or peer"));
        let (candidate, note) = match again.decision {
            Ok(decision) => {
                let verdict = decision.as_ref().map_or(ReceiptVerdict::Accept, |decision| decision.verdict);
                let wait = decision.as_ref().and_then(|decision| decision.wait);
                (Ok(describe_decision(event, verdict, wait)), decision.and_then(|decision| decision.note))
            }
            Err(fault) => (Err(Cow::Borrowed(fault.kind.name())), Some(fault.summary().into())),
        };
        RepeatedCall {
            recorded: describe_decision(event, recorded.verdict, recorded.wait),
            candidate,
            note,
            inexact_because: unknown.or(missing),
            request: Vec::new(),
        }
    }

    /// Repeats a submit call; `None` if the candidate does not serve the peer, or the record is damaged.
    fn repeat_submit_call(
        (candidate, live): (&DryRun, &Option<DryRun>),
        message: &Arc<Message>,
        record: &Bytes,
    ) -> Option<RepeatedCall> {
        let recorded = decoded(codec::decode_submit_call(record))?;
        let submission = PeerSubmission {
            peer: recorded.peer.clone(),
            message: message.clone(),
            leg: recorded.leg,
            ticket: SubmitTicket { at: recorded.at, attempt: recorded.attempt },
            want_dlr: recorded.want_dlr,
        };
        if !candidate.serves(&submission) {
            return None;
        }
        let again = candidate.submit_again(&submission, recorded.at, &recorded.host_calls);
        let live = live.as_ref().filter(|live| live.serves(&submission));
        let reference = live.map(|live| live.submit_again(&submission, recorded.at, &recorded.host_calls));
        let request = reference
            .as_ref()
            .map(|live| request_differences(&live.requests, &again.requests))
            .unwrap_or_default();
        let peer = &recorded.peer;
        let (result, note) = match &again.submitted {
            Ok(submitted) => {
                let result = SubmitResult::of(&submitted.outcome).map(|result| result.to_string());
                let result = result.unwrap_or_else(|| "not sent".to_owned());
                let other_id =
                    if has_other_id(&again, reference.as_ref()) { ", with another id" } else { "" };
                let parts = described_parts(&request);
                (Ok(format!("{peer}: {result}{other_id}{parts}")), submitted.note.clone())
            }
            Err(fault) => (Err(Cow::Borrowed(fault.kind.name())), Some(fault.summary().into())),
        };
        let inexact_because = if again.missing.is_some() {
            again.missing
        } else {
            live.map_or(Some("no plugin serves the peer now"), |live| {
                (!is_recorded_version(live, &submission, &recorded))
                    .then_some("another version or policy submitted it, so the requests were not the same")
            })
        };
        Some(RepeatedCall {
            recorded: format!("{peer}: {}", recorded.result),
            candidate: result,
            note,
            inexact_because: inexact_because.map(Cow::Borrowed),
            request,
        })
    }
}

fn mark_inexact(calls: &mut [RepeatedCall], why: &'static str) {
    for call in calls {
        call.inexact_because.get_or_insert(Cow::Borrowed(why));
    }
}

fn decoded<T>(record: Result<T, codec::RecordError>) -> Option<T> {
    record.inspect_err(|error| tracing::warn!(%error, "recorded call not readable")).ok()
}

/// Whether the live plugin is the one that submitted the message, with the same policy.
fn is_recorded_version(live: &DryRun, submission: &PeerSubmission, recorded: &RecordedSubmitCall) -> bool {
    live.policy_for(submission).is_some_and(|(policy, by)| policy == recorded.policy && *by == *recorded.by)
}

fn has_other_id(again: &RepeatedSubmitCall, live: Option<&RepeatedSubmitCall>) -> bool {
    let ids = |call: &RepeatedSubmitCall| match &call.submitted {
        Ok(hooks::Submitted { outcome: Outcome::Accepted { ids }, .. }) => Some(ids.clone()),
        _ => None,
    };
    match (ids(again), live.and_then(ids)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// Describes the event and the decision.
fn describe_decision(event: ReceiptEvent, verdict: ReceiptVerdict, wait: Option<Duration>) -> String {
    let (event, verdict) = match event {
        // Of the answer to an acceptance, only the wait counts.
        ReceiptEvent::Accepted => ("accepted by the peer".to_owned(), ReceiptVerdict::Accept),
        ReceiptEvent::Timeout => ("no DLR in time".to_owned(), verdict),
        ReceiptEvent::Dlr(dlr) => (format!("DLR {}, error {}", dlr.state.name(), dlr.error), verdict),
    };
    let wait = wait.map(|wait| format!(", ask again after {} s", wait.as_secs_f32())).unwrap_or_default();
    format!("{event}: {verdict}{wait}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DlrFacts, DlrState};

    #[test]
    fn decisions_are_described_with_their_event() {
        let dlr = ReceiptEvent::Dlr(DlrFacts {
            is_final: true,
            state: DlrState::Undeliverable,
            error: 8,
            network_error: None,
            latency: Duration::from_secs(1),
        });
        let remap = ReceiptVerdict::Remap { state: DlrState::Expired, error: 4 };
        let wait = Some(Duration::from_millis(1_500));
        for (event, verdict, wait, text) in [
            (dlr, ReceiptVerdict::NextLeg, None, "DLR undeliverable, error 8: next leg"),
            (dlr, remap, None, "DLR undeliverable, error 8: remap to expired, error 4"),
            (
                ReceiptEvent::Timeout,
                ReceiptVerdict::Accept,
                wait,
                "no DLR in time: accept, ask again after 1.5 s",
            ),
            // The verdict on an acceptance has no effect.
            (ReceiptEvent::Accepted, ReceiptVerdict::NextLeg, None, "accepted by the peer: accept"),
        ] {
            assert_eq!(describe_decision(event, verdict, wait), text);
        }
    }
}
