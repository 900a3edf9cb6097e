//! Records of calls of receipt policies and of plugins of peers, for replays.

use crate::generation::Generation;
use crate::host_call_log::{HostCallKind, HostCallLog};
use crate::peer_calls::{PeerSubmission, Submitted};
use crate::worlds::{Peer, ReceiptQuestion};
use model::{
    Directory, ReceiptDecision, ReceiptVerdict, RecordedReceiptCall, RecordedSubmitCall, SubmitResult,
    Timestamp,
};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The first octets of the SHA-256 of a policy document; they identify the document in a recorded call.
#[must_use]
pub fn policy_digest(policy: &str) -> [u8; 8] {
    let mut first = [0; 8];
    first.iter_mut().zip(Sha256::digest(policy.as_bytes())).for_each(|(octet, from)| *octet = from);
    first
}

/// Whole milliseconds, as plugins see a time.
fn milliseconds(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The record of a call of the receipt policies. `decision`: `None` counts as accept.
pub(crate) fn receipt_call(
    question: &ReceiptQuestion<'_>,
    decision: Option<&ReceiptDecision>,
    now: Timestamp,
    directory: &Directory,
    call_log: HostCallLog,
) -> Box<[u8]> {
    let submission = &question.submission;
    codec::encode_receipt_call(&RecordedReceiptCall {
        at: now,
        attempts: submission.attempts,
        leg: submission.leg,
        peer: directory.name(submission.peer),
        age: milliseconds(submission.age),
        left: milliseconds(submission.left),
        event: question.event,
        verdict: decision.map_or(ReceiptVerdict::Accept, |decision| decision.verdict),
        wait: decision.and_then(|decision| decision.wait),
        host_calls: call_log.into_record(),
    })
}

/// The record of a submission. `None` if it must not be recorded: the call did not make exactly one request, so one may have
/// been a login, or a response contained data that must not be stored.
pub(crate) fn submit_call(
    submission: &PeerSubmission,
    submitted: &Submitted,
    generation: &Generation<Peer>,
    now: Timestamp,
    call_log: HostCallLog,
) -> Option<Box<[u8]>> {
    let requests = call_log.calls().filter(|(kind, _, _)| *kind == HostCallKind::Http).count();
    let result = SubmitResult::of(&submitted.outcome)?;
    let host_calls = call_log.into_record().filter(|_| requests == 1)?;
    Some(codec::encode_submit_call(&RecordedSubmitCall {
        at: now,
        peer: submission.peer.clone(),
        leg: submission.leg,
        attempt: submission.ticket.attempt,
        want_dlr: submission.want_dlr,
        by: generation.by.clone(),
        policy: policy_digest(&generation.binding.policy),
        result,
        host_calls,
    }))
}
