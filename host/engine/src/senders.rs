//! Messages that have a number of a pool for their sender: taken with the acceptance, or when they are routed again, in the
//! same transaction; given back with their final record.

use crate::Output;
use crate::consent::normal;
use crate::engine::Engine;
use crate::slab::{Slot, State, flag};
use model::{
    Message, MessageId, NoSender, Now, PoolCounts, PoolName, PoolRefusal, RejectReason, SenderWish, Step,
    StepKind, Timestamp, Verdict,
};
use std::time::Duration;

/// How long a message waits for a number before it is routed again although it has not come to its turn.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The same, where there is no pool of that name, and so no turn.
const WITHOUT_POOL: Duration = Duration::from_secs(5);

/// What has become of a message's wish for a sender.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// For its trace.
    pub(crate) step: Option<StepKind>,
    /// It is refused.
    pub(crate) refused: Option<RejectReason>,
    /// It is held, and routed again then: its number is taken later.
    pub(crate) hold: Option<Timestamp>,
}

impl Found {
    fn refused(reason: RejectReason) -> Self {
        Self { refused: Some(reason), ..Self::default() }
    }
}

impl Engine {
    /// Sees to the sender that a router wants for a message which is about to be accepted, or is routed again, and changes
    /// the message accordingly. All else that could refuse the message has been looked at.
    ///
    /// Whoever has told one number of a pool to stop has told all: the next message would come under another.
    pub(crate) fn find_sender(
        &mut self,
        now: Now,
        id: MessageId,
        message: &mut Message,
        out: &mut Output,
    ) -> Found {
        if !matches!(message.routed.verdict, Verdict::Forward(_)) {
            message.routed.sender = None;
        }
        let Some(wish) = &mut message.routed.sender else { return Found::default() };
        wish.given = None;
        let wish = wish.clone();
        if self.has_stopped_pool(message, &wish) {
            return Found::refused(RejectReason::OptedOut);
        }
        // A number is not to be busy, and nobody texting from it, until then.
        let hold = message.scheduled.filter(|at| *at > now.wall);
        if hold.is_some() {
            return Found { hold, ..Found::default() };
        }
        let callee = &message.destination.value;
        match self.pools.take_sender(now, id, &wish, callee, &mut out.batch.pools) {
            Ok(number) => {
                if let Some(wish) = &mut message.routed.sender {
                    wish.given = Some(number.address());
                }
                let step = StepKind::SenderTaken { pool: wish.pool, number };
                Found { step: Some(step), ..Found::default() }
            }
            Err(why) => self.without_sender(now, id, &wish, why),
        }
    }

    fn without_sender(&mut self, now: Now, id: MessageId, wish: &SenderWish, why: PoolRefusal) -> Found {
        let next = match why {
            PoolRefusal::AllBusy { left } | PoolRefusal::AllResting { left } => left,
            PoolRefusal::AllDown | PoolRefusal::Empty => None,
            // It is the wish that is wrong, and that will not change.
            _ => return Found::refused(RejectReason::Fault),
        };
        let mut found =
            Found { step: Some(StepKind::NoSender { pool: wish.pool.clone() }), ..Found::default() };
        match wish.otherwise {
            NoSender::Reject => found.refused = Some(RejectReason::TryLater),
            NoSender::KeepSender => {}
            NoSender::Hold => {
                let wait = if self.pools.stand_in_line(id, &wish.pool) {
                    next.unwrap_or(LONGEST_WAIT).clamp(Duration::from_secs(1), LONGEST_WAIT)
                } else {
                    WITHOUT_POOL
                };
                found.hold = Some(now.wall + wait);
            }
        }
        found
    }

    /// Whether the addressee has told any number of the pool to stop.
    pub(crate) fn has_stopped_pool(&self, message: &Message, wish: &SenderWish) -> bool {
        let asked = !self.consents.is_empty()
            && self.peers.get(message.origin.0 as usize).is_some_and(|peer| peer.settings.opt_out);
        if !asked {
            return false;
        }
        let country = &self.settings.country;
        let stopped = self.consents.stopped_by(&normal(&message.destination.value, country));
        self.pools.has_any(&wish.pool, stopped, country)
    }

    /// Routes messages again for which there is a number now.
    pub(crate) fn call_up(&mut self, now: Now, out: &mut Output) {
        for id in self.pools.called_up() {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && self.slab[slot].state == State::Held
                && !self.slab[slot].has(flag::LOADING)
            {
                self.ask_route(now, slot, out);
            }
        }
    }

    /// A message found on disk has a number, or waits for one.
    pub(crate) fn recover_sender(&mut self, now: Now, slot: Slot, message: &Message) {
        let Some(wish) = &message.routed.sender else { return };
        let held = self.slab[slot].state == State::Held;
        if held && message.scheduled.is_none_or(|at| at <= now.wall) {
            self.pools.stand_in_line(message.id, &wish.pool);
        }
        // An acceptance into the queue does not write steps down.
        let known = |step: &Step| matches!(step.kind, StepKind::SenderTaken { .. });
        let steps = &mut self.slab[slot].side().steps;
        if let Some(number) = self.pools.sender_of(message.id)
            && !steps.iter().any(known)
        {
            let kind = StepKind::SenderTaken { pool: wish.pool.clone(), number };
            steps.insert(0, Step { at: message.accepted_at, kind });
        }
    }

    /// All number pools, with how many of their numbers are to be had, and how many are in which state; in no order.
    #[must_use]
    pub fn pool_counts(&self) -> Vec<(PoolName, usize, PoolCounts)> {
        self.pools.counts()
    }

    /// Messages that have a number of a pool for their sender, and messages that wait for one.
    #[must_use]
    pub fn senders(&self) -> (usize, usize) {
        self.pools.sender_counts()
    }
}
