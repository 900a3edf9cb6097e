//! Requery: a peer does not know the subscriber. The number may have moved, so it is resolved once more.

use crate::Output;
use crate::engine::Engine;
use crate::leg_subscriber::imsi_on_leg;
use crate::leg_subscriber::number_on_leg;
use crate::slab::Slot;
use model::{Imsi, Message, Now, Step, StepKind, Verdict};
use std::time::Duration;

/// An answer younger than this when its message was sent counts as fresh.
const MAX_FRESH_AGE: Duration = Duration::from_secs(60);

/// Maximum number of requeries of a number for one message and leg.
const MAX_REQUERIES: usize = 3;

impl Engine {
    /// The peer does not know the subscriber of a message's leg, or the number has moved to another (`moved`). Drops
    /// the cached answer. Returns true if the number is requeried and the message is retried with the result.
    pub(crate) fn requery_subscriber(&mut self, now: Now, slot: Slot, moved: bool, out: &mut Output) -> bool {
        let (Some(message), leg) = (self.slab[slot].message.clone(), self.slab[slot].leg) else {
            return false;
        };
        let Some(imsi) = imsi_on_leg(&message, leg).cloned() else { return false };
        self.resolver_state.invalidate(&number_on_leg(&message, leg), &imsi);
        let steps = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.steps);
        if !self.settings.resolver || !is_requery_useful(steps, &imsi, moved) {
            return false;
        }
        let mut message = Message::clone(&message);
        let Verdict::Forward(legs) = &mut message.routed.verdict else { return false };
        let Some(own) = legs.get_mut(usize::from(leg)).filter(|leg| leg.resolve) else { return false };
        own.imsi = None;
        self.release_subscriber_lock(slot);
        self.slab[slot].subscriber = 0;
        // If one subscriber has segments of the message, another one cannot complete it.
        self.slab[slot].history_mut().segments.clear();
        self.add_step(now, slot, StepKind::SubscriberRequeried { imsi });
        let message = self.replace_content(slot, message, out);
        self.begin_leg(now, slot, &message, out);
        true
    }
}

/// Whether the answer of a refused message may have been outdated; `moved`: it is known to be.
fn is_requery_useful(steps: &[Step], imsi: &Imsi, moved: bool) -> bool {
    let mut times = 0;
    let mut attempts = 0;
    let mut left_at = None;
    let mut worth = moved.then_some(true);
    for step in steps.iter().rev() {
        match &step.kind {
            StepKind::SubscriberRequeried { imsi: before } => {
                times += 1;
                if before == imsi || times >= MAX_REQUERIES {
                    return false;
                }
            }
            StepKind::Submitted { .. } => {
                attempts += 1;
                left_at = left_at.or(Some(step.at));
            }
            StepKind::Resolved { cached, .. } if worth.is_none() => {
                let age = left_at.map_or(Duration::ZERO, |left| left - step.at);
                worth = Some(*cached || attempts > 1 || age > MAX_FRESH_AGE);
            }
            StepKind::NextLeg { .. } | StepKind::Rerouted { .. } => break,
            _ => {}
        }
    }
    worth.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{AddressBytes, PeerId, Timestamp};

    fn imsi(digits: &str) -> Imsi {
        Imsi(AddressBytes::from_slice(digits.as_bytes()))
    }

    fn asks(steps: &[(u64, StepKind)], digits: &str) -> bool {
        asks_of(steps, digits, false)
    }

    fn asks_of(steps: &[(u64, StepKind)], digits: &str, moved: bool) -> bool {
        let steps: Vec<Step> = steps
            .iter()
            .map(|(second, kind)| Step { at: Timestamp(second * 1000), kind: kind.clone() })
            .collect();
        is_requery_useful(&steps, &imsi(digits), moved)
    }

    #[test]
    fn old_answers_are_requeried_and_fresh_ones_are_not() {
        let resolved = |cached| StepKind::Resolved { peer: PeerId(1), cached };
        let submitted = |attempt| StepKind::Submitted { peer: PeerId(1), attempt };
        let refused = StepKind::Refused { code: 2 };
        assert!(asks(&[(0, resolved(true)), (0, submitted(1)), (1, refused.clone())], "1"));
        let new = [(0, resolved(false)), (60, submitted(1)), (61, refused.clone())];
        assert!(!asks(&new, "1"));
        assert!(asks_of(&new, "1", true), "the number is known to have moved");
        let again = [&[(0, StepKind::SubscriberRequeried { imsi: imsi("1") })], &new[..]].concat();
        assert!(!asks_of(&again, "1", true), "and to have come back");
        assert!(asks(&[(0, resolved(false)), (61, submitted(1)), (62, refused.clone())], "1"), "it has aged");
        let second = [(0, resolved(false)), (1, submitted(1)), (2, refused.clone()), (9, submitted(2))];
        assert!(asks(&second, "1"), "it has served an attempt before");
        // On another leg the count starts again.
        let next = StepKind::NextLeg { peer: PeerId(2) };
        let other = StepKind::SubscriberRequeried { imsi: imsi("1") };
        let again = [(0, other.clone()), (1, resolved(false)), (1, submitted(2)), (2, next)];
        let again = [&again[..], &[(3, resolved(true)), (3, submitted(3))]].concat();
        assert!(asks(&again, "1"));
    }

    #[test]
    fn requeries_are_bounded() {
        let resolved = StepKind::Resolved { peer: PeerId(1), cached: true };
        let submitted = StepKind::Submitted { peer: PeerId(1), attempt: 1 };
        let mut steps = vec![(0, resolved.clone()), (0, submitted.clone())];
        assert!(asks(&steps, "1"));
        for (times, digits) in ["1", "2", "3"].into_iter().enumerate() {
            steps.push((1, StepKind::SubscriberRequeried { imsi: imsi(digits) }));
            steps.extend([(1, resolved.clone()), (1, submitted.clone())]);
            assert!(!asks(&steps, digits), "the same again");
            assert_eq!(asks(&steps, "9"), times < 2, "{times}");
        }
    }
}
