use crate::candidate::{Judged, JudgedLeg, Judgement};
use crate::legs::{Legs, Rewrites};
use archive::{ArchivedLeg, ArchivedMessage, ArchivedVerdict};

/// Whether the candidate decides as was decided.
///
/// Compared are the peers, the order of their ranks, shares within a rank, rewritten addresses and the pool that the sender is
/// to come from, with all that is asked of it; not the numbers that ranks have, nor what legs cost, nor how long a message
/// waits for them.
pub(crate) fn same(message: &ArchivedMessage, judged: &Judged) -> bool {
    message.sender == judged.sender && same_verdict(message, judged)
}

fn same_verdict(message: &ArchivedMessage, judged: &Judged) -> bool {
    match (&message.verdict, &judged.verdict) {
        (ArchivedVerdict::Forward(was), Judgement::Forward(is)) => {
            !is_home(was) && same_legs(message, was, is)
        }
        (ArchivedVerdict::Forward(was), Judgement::Home) => is_home(was),
        (ArchivedVerdict::Hold(was), Judgement::Hold(is)) => was == is,
        (ArchivedVerdict::Reject(was), Judgement::Reject(is)) => was == is,
        _ => false,
    }
}

/// A message for a subscriber of ours: where it goes is up to the resolver.
pub(crate) fn is_home(legs: &[ArchivedLeg]) -> bool {
    !legs.is_empty() && legs.iter().all(|leg| leg.resolve)
}

/// Of messages whose trace alone is left, type and plan of rewritten addresses are not known.
pub(crate) fn rewrites(message: &ArchivedMessage) -> Rewrites {
    if message.lacking.is_some() { Rewrites::Values } else { Rewrites::Whole }
}

fn same_legs(message: &ArchivedMessage, was: &[ArchivedLeg], is: &[JudgedLeg]) -> bool {
    match (was, is) {
        // Most messages have one plain leg.
        ([was], [is])
            if was.source.is_none()
                && was.destination.is_none()
                && is.source.is_none()
                && is.destination.is_none() =>
        {
            was.peer == is.peer
        }
        _ => was.len() == is.len() && Legs::of(was).same(&Legs::of(is), rewrites(message)),
    }
}
