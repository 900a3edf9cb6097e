//! Pool numbers as senders: leased when the message is accepted or routed again, in the same transaction; released
//! with its final record.

use crate::Output;
use crate::engine::Engine;
use crate::opt_out::normalised_number;
use crate::slab::{Slot, State, flag};
use model::{
    Message, MessageId, Now, PoolCounts, PoolName, PoolRefusal, RejectReason, SenderFallback, SenderRequest,
    Step, StepKind, Timestamp, Verdict,
};
use std::time::Duration;

/// How long a message waits for a number before it is routed again.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The same, if the pool does not exist.
const MISSING_POOL_WAIT: Duration = Duration::from_secs(5);

/// The result of a sender request.
#[derive(Debug, Default)]
pub(crate) struct SenderResult {
    /// The step for the trace.
    pub(crate) step: Option<StepKind>,
    /// The message is refused.
    pub(crate) refused: Option<RejectReason>,
    /// The message is held until then, and leases its number later.
    pub(crate) hold: Option<Timestamp>,
}

impl SenderResult {
    fn refused(reason: RejectReason) -> Self {
        Self { refused: Some(reason), ..Self::default() }
    }
}

impl Engine {
    /// Leases the sender that a router requests for a message, and changes the message accordingly. All other
    /// refusals have been checked before.
    ///
    /// An opt-out of one number of a pool covers the pool, since the next message might use another number.
    pub(crate) fn lease_sender(
        &mut self,
        now: Now,
        id: MessageId,
        message: &mut Message,
        out: &mut Output,
    ) -> SenderResult {
        if !matches!(message.routed.verdict, Verdict::Forward(_)) {
            message.routed.sender = None;
        }
        let Some(request) = &mut message.routed.sender else { return SenderResult::default() };
        request.leased = None;
        let request = request.clone();
        if self.is_pool_opted_out(message, &request) {
            return SenderResult::refused(RejectReason::OptedOut);
        }
        // Otherwise the number would be busy and unused until then.
        let hold = message.scheduled.filter(|at| *at > now.wall);
        if hold.is_some() {
            return SenderResult { hold, ..SenderResult::default() };
        }
        let callee = &message.destination.value;
        match self.pools.lease_sender(now, id, &request, callee, &mut out.batch.pools) {
            Ok(number) => {
                if let Some(request) = &mut message.routed.sender {
                    request.leased = Some(number.address());
                }
                let step = StepKind::SenderLeased { pool: request.pool, number };
                SenderResult { step: Some(step), ..SenderResult::default() }
            }
            Err(why) => self.apply_sender_fallback(now, id, &request, why),
        }
    }

    fn apply_sender_fallback(
        &mut self,
        now: Now,
        id: MessageId,
        request: &SenderRequest,
        why: PoolRefusal,
    ) -> SenderResult {
        let next = match why {
            PoolRefusal::AllBusy { remaining } | PoolRefusal::AllInQuarantine { remaining } => remaining,
            PoolRefusal::AllDown | PoolRefusal::Empty => None,
            // The request itself is wrong, and that will not change.
            _ => return SenderResult::refused(RejectReason::Fault),
        };
        let mut found = SenderResult {
            step: Some(StepKind::SenderUnavailable { pool: request.pool.clone() }),
            ..SenderResult::default()
        };
        match request.otherwise {
            SenderFallback::Reject => found.refused = Some(RejectReason::TryLater),
            SenderFallback::KeepSender => {}
            SenderFallback::Hold => {
                let wait = if self.pools.wait_for_number(id, &request.pool) {
                    next.unwrap_or(MAX_WAIT).clamp(Duration::from_secs(1), MAX_WAIT)
                } else {
                    MISSING_POOL_WAIT
                };
                found.hold = Some(now.wall + wait);
            }
        }
        found
    }

    /// Whether the addressee has opted out of any number of the pool.
    pub(crate) fn is_pool_opted_out(&self, message: &Message, request: &SenderRequest) -> bool {
        let is_checked = !self.opt_outs.is_empty()
            && self.peers.get(message.origin.0 as usize).is_some_and(|peer| peer.settings.opt_out);
        if !is_checked {
            return false;
        }
        let country = &self.settings.country;
        let stopped =
            self.opt_outs.senders_stopped_by(&normalised_number(&message.destination.value, country));
        self.pools.contains_any(&request.pool, stopped, country)
    }

    /// Routes messages again for which a number is free now.
    pub(crate) fn reroute_callable(&mut self, now: Now, out: &mut Output) {
        for id in self.pools.take_callable() {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && self.slab[slot].state == State::Held
                && !self.slab[slot].has(flag::LOADING)
            {
                self.request_routing(now, slot, out);
            }
        }
    }

    /// Recovers the lease of a message, or its place among those that wait for a number.
    pub(crate) fn recover_sender(&mut self, now: Now, slot: Slot, message: &Message) {
        let Some(request) = &message.routed.sender else { return };
        let held = self.slab[slot].state == State::Held;
        if held && message.scheduled.is_none_or(|at| at <= now.wall) {
            self.pools.wait_for_number(message.id, &request.pool);
        }
        // Acceptance into a queue writes no steps.
        let known = |step: &Step| matches!(step.kind, StepKind::SenderLeased { .. });
        let steps = &mut self.slab[slot].history_mut().steps;
        if let Some(number) = self.pools.leased_number(message.id)
            && !steps.iter().any(known)
        {
            let kind = StepKind::SenderLeased { pool: request.pool.clone(), number };
            steps.insert(0, Step { at: message.accepted_at, kind });
        }
    }

    /// All number pools, with the number of ready numbers and the numbers by state; in no order.
    #[must_use]
    pub fn pool_counts(&self) -> Vec<(PoolName, usize, PoolCounts)> {
        self.pools.counts()
    }

    /// The number of messages that hold a pool number, and the number of messages that wait for one.
    #[must_use]
    pub fn senders(&self) -> (usize, usize) {
        self.pools.sender_counts()
    }
}
