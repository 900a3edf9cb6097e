use crate::candidate::{CandidateDecision, CandidateVerdict};
use crate::compared_legs::{AddressComparison, ComparedLegs, PeerLeg};
use archive::ArchivedMessage;
use model::Verdict;

/// Whether the candidate's decision is equivalent to the archived one.
///
/// It compares the peers, the order of their ranks, the shares within a rank, rewritten addresses, the sender request
/// with all details, and the changes of the message. It ignores the rank numbers themselves, the costs of legs, and the
/// maximum waits of a message for its legs.
pub(crate) fn is_same(message: &ArchivedMessage, decision: &CandidateDecision) -> bool {
    message.sender == decision.sender
        && message.changes == decision.changes
        && same_verdict(message, decision)
}

fn same_verdict(message: &ArchivedMessage, decision: &CandidateDecision) -> bool {
    let CandidateVerdict::Decided(candidate) = &decision.verdict else { return false };
    match (&message.verdict, candidate) {
        (Verdict::Forward(archived), Verdict::Forward(legs)) => {
            match (message.verdict.is_home(), candidate.is_home()) {
                (false, false) => same_legs(message, archived, legs),
                (archived, candidate) => archived == candidate,
            }
        }
        (archived, candidate) => archived == candidate,
    }
}

/// The way in which rewritten addresses are compared. If only the trace of a message is left, their types and plans are
/// unknown.
pub(crate) fn address_comparison(message: &ArchivedMessage) -> AddressComparison {
    if message.missing.is_some() { AddressComparison::Values } else { AddressComparison::Whole }
}

fn same_legs(message: &ArchivedMessage, archived: &[PeerLeg], candidate: &[PeerLeg]) -> bool {
    match (archived, candidate) {
        // Fast path: most messages have one plain leg.
        ([archived], [candidate])
            if archived.source.is_none()
                && archived.destination.is_none()
                && candidate.source.is_none()
                && candidate.destination.is_none() =>
        {
            archived.peer == candidate.peer
        }
        _ => {
            archived.len() == candidate.len()
                && ComparedLegs::of(archived)
                    .is_same(&ComparedLegs::of(candidate), address_comparison(message))
        }
    }
}
