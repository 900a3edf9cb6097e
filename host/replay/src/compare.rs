use crate::candidate::{CandidateDecision, CandidateLeg, CandidateVerdict};
use crate::compared_legs::{AddressComparison, ComparedLegs};
use archive::{ArchivedLeg, ArchivedMessage, ArchivedVerdict};

/// Whether the candidate's decision is equivalent to the archived one.
///
/// Compared are the peers, the order of their ranks, the shares within a rank, rewritten addresses, and the sender
/// request with all its details. Not compared are the rank numbers themselves, the costs of legs, and the maximum waits
/// of a message for its legs.
pub(crate) fn is_same(message: &ArchivedMessage, decision: &CandidateDecision) -> bool {
    message.sender == decision.sender && same_verdict(message, decision)
}

fn same_verdict(message: &ArchivedMessage, decision: &CandidateDecision) -> bool {
    match (&message.verdict, &decision.verdict) {
        (ArchivedVerdict::Forward(archived), CandidateVerdict::Forward(candidate)) => {
            !is_home(archived) && same_legs(message, archived, candidate)
        }
        (ArchivedVerdict::Forward(archived), CandidateVerdict::Home) => is_home(archived),
        (ArchivedVerdict::Hold(archived), CandidateVerdict::Hold(candidate)) => archived == candidate,
        (ArchivedVerdict::Reject(archived), CandidateVerdict::Reject(candidate)) => archived == candidate,
        _ => false,
    }
}

/// Whether the message is for one of our own subscribers: the resolver determines its destination.
pub(crate) fn is_home(legs: &[ArchivedLeg]) -> bool {
    !legs.is_empty() && legs.iter().all(|leg| leg.resolve)
}

/// If only the trace of a message is left, type and plan of its rewritten addresses are unknown.
pub(crate) fn address_comparison(message: &ArchivedMessage) -> AddressComparison {
    if message.missing.is_some() { AddressComparison::Values } else { AddressComparison::Whole }
}

fn same_legs(message: &ArchivedMessage, archived: &[ArchivedLeg], candidate: &[CandidateLeg]) -> bool {
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
