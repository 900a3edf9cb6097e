use crate::counts::{CountedEvent, PeerCounts};
use crate::day_quotas::DayQuotas;
use crate::decision_limits::DecisionLimits;
use crate::delivery_policy_state::DeliveryPolicyState;
use crate::dlrs::{DlrIndex, OrphanDlrs};
use crate::idempotency_keys::IdempotencyKeys;
use crate::index::{IdIndex, PairIndex};
use crate::ledger::Ledger;
use crate::leg_subscriber::needs_subscriber;
use crate::lookups::Lookups;
use crate::opt_out::{OptOuts, normalised_pair};
use crate::pace_limits::PaceLimits;
use crate::peer::{InFlight, Link, Peer};
use crate::pools::Pools;
use crate::queue_actions::rules::QueueActions;
use crate::receipt_state::ReceiptState;
use crate::remote_attempt_index::RemoteAttempts;
use crate::resolver_queue::Resolver;
use crate::slab::{Entry, NONE, PendingFinish, Slab, Slot, State, flag};
use crate::submissions::Submissions;
use crate::subscriber_lock::SubscriberLocks;
use crate::timer::{Timer, Timers};
use crate::{EngineAnswer, EngineCommand, Event, Output, Settings};
use model::{
    CallRecord, FinalRecord, FinalState, LinkId, Message, MessageId, Moment, Now, ObservationKind, PeerId,
    Random, Step, StepKind,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Interval between two sweeps for expired validities and limits, while anything waits.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The engine: all live messages, peers and links. See the crate documentation.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) random: Random,
    pub(crate) slab: Slab,
    pub(crate) ids: IdIndex,
    pub(crate) pairs: PairIndex,
    pub(crate) submissions: Submissions,
    pub(crate) dlr_index: DlrIndex,
    pub(crate) orphan_dlrs: OrphanDlrs,
    pub(crate) peers: Vec<Peer>,
    pub(crate) links: Vec<Option<Link>>,
    pub(crate) link_index: FxHashMap<LinkId, u32>,
    pub(crate) timers: Timers,
    /// Peers with a message that may be sendable.
    pub(crate) dirty: Vec<u32>,
    /// Peers whose evicted content is loaded ahead of its turn.
    pub(crate) load_candidates: Vec<u32>,
    pub(crate) next_id: MessageId,
    /// The number of this run's row of table `handed`.
    pub(crate) submit_row: u64,
    /// Per row of table `handed`: submit attempts without outcome.
    pub(crate) submit_row_live: FxHashMap<u64, u32>,
    /// Events that wait for the content of a message.
    pub(crate) waiting_for_content: HashMap<MessageId, Vec<Event>>,
    /// Finished messages whose content is needed for the DLR or the ledger.
    pub(crate) ending: HashMap<MessageId, PendingFinish>,
    /// Set from the first recovered message to the last: no id may be assigned, because the free ids are unknown.
    pub(crate) recovering: bool,
    /// Messages that ended during recovery; their DLRs are created once ids can be assigned.
    pub(crate) ended_during_recovery: Vec<MessageId>,
    /// Slots accepted in this run: evicted at its end if they still wait and memory is short.
    pub(crate) newly_cached: Vec<Slot>,
    /// Uncertain messages by peer group, source and destination, oldest first.
    pub(crate) uncertain_by_pair: HashMap<u64, Vec<MessageId>>,
    /// All uncertain messages.
    pub(crate) uncertain_ids: BTreeSet<MessageId>,
    /// All messages in quarantine.
    pub(crate) quarantined_ids: BTreeSet<MessageId>,
    pub(crate) queue_actions: QueueActions,
    pub(crate) idempotency_keys: IdempotencyKeys,
    pub(crate) opt_outs: OptOuts,
    pub(crate) ledger: Ledger,
    pub(crate) resolver_state: Resolver,
    pub(crate) lookups: Lookups,
    pub(crate) policy: DeliveryPolicyState,
    pub(crate) receipts: ReceiptState,
    /// Records of submissions by plugins whose outcome is the next event. A record does not start a history: without a
    /// history, a first attempt is only in its link's list.
    pub(crate) submit_records: HashMap<MessageId, CallRecord>,
    pub(crate) remote_attempts: RemoteAttempts,
    pub(crate) subscriber_locks: SubscriberLocks,
    pub(crate) pools: Pools,
    pub(crate) pace_limits: PaceLimits,
    pub(crate) decision_limits: DecisionLimits,
    pub(crate) day_quotas: DayQuotas,
    /// Messages behind a subscriber lock whose content must be loaded.
    pub(crate) content_requests: Vec<MessageId>,
    pub(crate) cached: usize,
    pub(crate) sweep_at: u32,
    pub(crate) sweep_set: bool,
    pub(crate) orphan_sweep_set: bool,
    pub(crate) disk_low: bool,
    /// Submissions are refused.
    pub(crate) admission_closed: bool,
    pub(crate) draining: bool,
    pub(crate) totals: Totals,
}

/// Counters since the start, for metrics.
#[derive(Debug, Default, Clone)]
pub struct Totals {
    /// Messages accepted, without DLRs for submitters.
    pub accepted: u64,
    /// Submissions refused.
    pub refused: u64,
    /// Submit attempts.
    pub submitted: u64,
    /// Finished messages by [`FinalState`]; the index is its octet.
    pub ended: [u64; 8],
    /// DLRs created for submitters.
    pub dlrs_made: u64,
    /// DLRs that a submitter has accepted.
    pub dlrs_delivered: u64,
    /// DLRs from peers that matched a message.
    pub dlrs_matched: u64,
    /// DLRs from the peers of earlier legs.
    pub late_dlrs: u64,
    /// DLRs whose state or error code the receipt policy replaced.
    pub dlrs_remapped: u64,
    /// Messages that the receipt policy sent to their next leg.
    pub second_legs: u64,
    /// DLRs from peers that expired without a match.
    pub dlrs_unmatched: u64,
    /// DLRs not created because the account's queue was full.
    pub dlrs_dropped: u64,
    /// Submissions repeated under their idempotency key and answered from it.
    pub repeated: u64,
    /// Submissions refused because the addressee has opted out.
    pub opted_out: u64,
    /// Submissions refused because the ledger account cannot pay.
    pub unpaid: u64,
    /// Messages put into quarantine.
    pub quarantined: u64,
    /// Messages accepted and dropped by a screen.
    pub dropped_by_screens: u64,
    /// Submit attempts that ended as uncertain.
    pub uncertain: u64,
    /// Uncertain messages sent again.
    pub sent_again: u64,
    /// Attempts refused by a peer, including throttling.
    pub attempts_refused: u64,
    /// Of these, attempts refused as throttled or queue full.
    pub throttled: u64,
    /// Messages that reached the head of their queue while another message held the subscriber lock.
    pub subscriber_locked: u64,
}

/// Memory per message whose content is cached, beyond the octets of its content.
const CONTENT_OVERHEAD: usize = 400;

pub(crate) fn content_size(message: &Message) -> usize {
    CONTENT_OVERHEAD + message.text.octets.len() + message.tlvs.len() + message.protocol_fields.len()
}

impl Engine {
    /// An empty engine.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut random = Random::new(settings.seed);
        Self {
            pairs: PairIndex::new(random.next()),
            submissions: Submissions::default(),
            dlr_index: DlrIndex::new(random.next()),
            idempotency_keys: IdempotencyKeys::new(random.next()),
            opt_outs: OptOuts::default(),
            ledger: Ledger::new(random.next()),
            resolver_state: Resolver::new(random.next()),
            lookups: Lookups::default(),
            policy: DeliveryPolicyState::default(),
            receipts: ReceiptState::default(),
            submit_records: HashMap::new(),
            remote_attempts: RemoteAttempts::default(),
            subscriber_locks: SubscriberLocks::new(random.next()),
            pace_limits: PaceLimits::default(),
            decision_limits: DecisionLimits::default(),
            day_quotas: DayQuotas::default(),
            pools: Pools::new(settings.seed.rotate_left(17)),
            content_requests: Vec::new(),
            next_id: MessageId::first_of(settings.partition),
            random,
            settings,
            slab: Slab::new(),
            ids: IdIndex::default(),
            orphan_dlrs: OrphanDlrs::default(),
            peers: Vec::new(),
            links: Vec::new(),
            link_index: FxHashMap::default(),
            timers: Timers::default(),
            dirty: Vec::new(),
            load_candidates: Vec::new(),
            submit_row: 1,
            submit_row_live: FxHashMap::default(),
            waiting_for_content: HashMap::new(),
            ending: HashMap::new(),
            recovering: false,
            ended_during_recovery: Vec::new(),
            newly_cached: Vec::new(),
            uncertain_by_pair: HashMap::new(),
            uncertain_ids: BTreeSet::new(),
            quarantined_ids: BTreeSet::new(),
            queue_actions: QueueActions::default(),
            cached: 0,
            sweep_at: 0,
            sweep_set: false,
            orphan_sweep_set: false,
            disk_low: false,
            admission_closed: false,
            draining: false,
            totals: Totals::default(),
        }
    }

    /// Applies one event. The results are in `out`; messages leave their queues only in [`Engine::advance`].
    pub fn apply(&mut self, now: Now, event: Event, out: &mut Output) {
        match event {
            Event::Peer(settings) => self.configure_peer(now, settings, out),
            Event::Pace(settings) => self.configure_pace(now, &settings),
            Event::Notice(notice) => out.batch.notices.push(notice),
            Event::PeerRemoved(peer) => self.forget_peer(peer),
            Event::LinkUp { link, peer, window } => self.link_up(link, peer, window),
            Event::LinkPaused { link } => self.link_paused(link),
            Event::LinkDown { link } => self.link_down(now, link, out),
            Event::Flush { link } => out.commands.push(EngineCommand::Flushed { link }),
            Event::Accept { message, reply } => self.accept_one(now, *message, reply, out),
            Event::AcceptMany { messages, shared_id, key, reply } => {
                self.accept_many(now, (messages, shared_id), key, reply, out);
            }
            Event::Outcome { link, id, outcome } => self.outcome(now, link, id, outcome, out),
            Event::AttemptOutcome { id, attempt, outcome } => {
                self.attempt_outcome(now, id, attempt, outcome, out);
            }
            Event::Dlr { peer, dlr, reply } => self.dlr_received(now, peer, dlr, reply, out),
            Event::QueryResult { id, dlr } => self.query_result(now, id, dlr, out),
            Event::Query { .. }
            | Event::Cancel { .. }
            | Event::CancelMatching { .. }
            | Event::Replace { .. }
            | Event::SettleUncertain { .. } => self.request(now, event, out),
            Event::QueueAction { request, reply } => self.create_queue_action(now, *request, reply, out),
            Event::UndoQueueAction { id, by, reply } => self.undo_queue_action(now, id, &by, reply, out),
            Event::AdminAction { .. } => self.admin_action(now, event, out),
            Event::Loaded { id, message } => self.loaded(now, id, message, out),
            Event::Rerouted { id, routed, text } => self.rerouted(now, id, (routed, text), out),
            Event::DiskSpace { low } => self.disk_low = low,
            Event::Admission { open } => self.admission_closed = !open,
            Event::OptOut { sender, subscriber, stop, reply } => {
                let opt_out = normalised_pair(&sender, &subscriber, &self.settings.country);
                if self.opt_outs.set(opt_out.clone(), stop) {
                    out.batch.opt_outs.push((opt_out, stop));
                }
                if let Some(to) = reply {
                    out.commands.push(EngineCommand::Answer { to, answer: EngineAnswer::Done });
                }
            }
            Event::Archived { ids, reply } => {
                out.batch.archived.extend(ids);
                out.commands.push(EngineCommand::Answer { to: reply, answer: EngineAnswer::Done });
            }
            Event::EraseContent { mut erasures, reply } => {
                // The text of a message that has not ended is still needed.
                erasures.retain(|erasure| self.message(erasure.id).is_none());
                out.batch.erased.extend(erasures);
                out.commands.push(EngineCommand::Answer { to: reply, answer: EngineAnswer::Done });
            }
            Event::ResendDlr { message, ended, reply } => {
                let answer = self.resend_dlr(now, &message, &ended, out);
                out.commands.push(EngineCommand::Answer { to: reply, answer });
            }
            Event::HooksChanged { resolver, delivery_policy, receipt, biller } => {
                self.hooks_changed(now, (resolver, delivery_policy, biller), out);
                self.receipt_policy_changed(now, receipt, out);
            }
            Event::ResolverReplaced => self.resolver_state.requeue_due(Moment(u64::MAX)),
            Event::Ledger { operation, reply } => self.ledger_operation(now, operation, reply, out),
            Event::BillerNotified { upto, ok } => self.biller_notified(now, upto, ok, out),
            Event::LookedUp { number, lookup } => self.looked_up(now, number, &lookup, out),
            Event::Resolved { msisdn, resolution } => self.resolved(now, &msisdn, resolution),
            Event::Decided { id, attempt, next } => self.policy_decided(now, id, attempt, next, out),
            Event::ReceiptDecided { id, question, decision } => {
                self.receipt_decided(now, id, question, decision, out);
            }
            Event::CallRecorded { id, hook, record } => self.call_recorded(now, id, hook, record),
            Event::Alert { msisdn } => self.subscriber_alert(now, &msisdn, out),
            Event::SubscriberReachable { network, imsi } => {
                self.subscriber_reachable(now, &imsi, out);
                self.alert_partitions(network, &imsi, out);
            }
            Event::SubscriberLearned { msisdn, imsi, before } => {
                self.subscriber_learned(now, &msisdn, &imsi, before, out);
            }
            Event::Pool { pool, request, by, reply } => {
                let by = (&by, self.settings.pools);
                let answer = self.pools.request(now, &pool, request, by, &mut out.batch.pools);
                out.commands.push(EngineCommand::Answer { to: reply, answer: EngineAnswer::Pool(answer) });
            }
            Event::Pools { reply } => {
                let answer = EngineAnswer::Pools(self.pools.summaries(now));
                out.commands.push(EngineCommand::Answer { to: reply, answer });
            }
            Event::Drain => self.draining = true,
        }
    }

    /// Ends a run of events: fires due timers and sends what can be sent. Several runs may share one batch;
    /// [`Engine::seal`] closes it.
    pub fn advance(&mut self, now: Now, out: &mut Output) {
        self.finish_recovered(now, out);
        self.pools.release_orphans(now, &mut out.batch.pools);
        self.pools.advance(now, &mut out.batch.pools);
        self.pools.maintain(now, self.settings.pools, &mut out.batch.pools);
        while let Some(timer) = self.timers.pop_due(now.mono) {
            self.fire(now, timer, out);
        }
        self.advance_receipts(now, out);
        self.move_resolved(now, out);
        self.run_queue_actions(now, out);
        loop {
            self.reroute_arrived(now, out);
            while let Some(peer) = self.dirty.pop() {
                self.peers[peer as usize].dirty = false;
                self.dispatch(now, peer, out);
            }
            if self.queue_actions.arrived.is_empty() {
                break;
            }
        }
        self.schedule_limits(now);
        self.reroute_callable(now, out);
        self.ask_resolver(out);
        self.ask_lookups(out);
        self.evict();
        self.load_ahead(out);
        self.notify_biller(now, out);
        let swept =
            self.slab.used() > 0 || self.idempotency_keys.any_to_forget() || self.resolver_state.has_cached();
        if !self.sweep_set && swept {
            self.sweep_set = true;
            self.timers.set(now.mono + SWEEP_EVERY, Timer::Sweep);
        }
    }

    /// Closes a batch before it is written. Later results belong to the next batch.
    pub fn seal(&mut self, out: &mut Output) {
        out.batch.next_id = self.next_id;
        out.batch.balances = self.ledger.take_changed();
        out.batch.pace_days.extend(self.pace_limits.take_changed());
        out.batch.pace_days.extend(self.day_quotas.take_changed());
        self.pools.sealed();
        if !out.batch.submit_attempts.is_empty() {
            out.batch.submit_row = self.submit_row;
            if self.submit_row_live.contains_key(&self.submit_row) {
                out.batch.submit_rows_done.retain(|seq| *seq != self.submit_row);
            }
            self.submit_row += 1;
        }
    }

    /// The latest time at which [`Engine::advance`] must be called if no event arrives.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.timers.next().into_iter().chain(self.pools.deadline()).min()
    }

    /// The number of live messages.
    #[must_use]
    pub fn live(&self) -> usize {
        self.ids.len()
    }

    /// Counters since the start.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The counters of all peers and accounts: as a peer, and as a submitter.
    pub fn counts(&self) -> impl Iterator<Item = (PeerId, &PeerCounts, &PeerCounts)> {
        self.peers.iter().map(|peer| (peer.settings.peer, &peer.counts, &peer.submitter_counts))
    }

    /// Estimated octets of cached message content; [`Settings::body_cache`] limits them.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.cached
    }

    fn fire(&mut self, now: Now, timer: Timer, out: &mut Output) {
        match timer {
            Timer::Message(slot, id) => self.message_due(now, slot, id, out),
            Timer::Peer(peer) => {
                self.peers[peer as usize].wake = None;
                self.mark_dirty(peer);
            }
            Timer::OrphanDlrs => self.sweep_orphan_dlrs(now, out),
            // [`Engine::advance`] handles these after every run of events.
            Timer::NotifyBiller | Timer::QueueActions => {}
            Timer::UndoWindow(id) => self.undo_window_over(now, id, out),
            Timer::PaceLimit(limit) => self.limit_due(now, limit),
            Timer::Resolve => self.resolver_state.requeue_due(now.mono),
            Timer::Lookup => self.requeue_lookups(now),
            Timer::Sweep => {
                self.sweep_set = false;
                self.sweep(now, out);
            }
        }
    }

    fn message_due(&mut self, now: Now, slot: Slot, id: MessageId, out: &mut Output) {
        let entry = &self.slab[slot];
        if entry.id != id || entry.due > now.mono {
            return;
        }
        match entry.state {
            State::Deferred => {
                self.peer_of(slot).deferred -= 1;
                self.policy.forget_alert(id);
                if let Some(message) = &self.slab[slot].message
                    && needs_subscriber(message, self.slab[slot].leg)
                {
                    let message = message.clone();
                    self.resolve_leg(now, slot, &message, out);
                    return;
                }
                self.requeue(slot);
                if self.slab[slot].state == State::Queued {
                    self.load_if_missing(slot, out);
                }
            }
            State::Held => self.request_routing(now, slot, out),
            State::AwaitingLookup => self.lookup_timed_out(now, slot, out),
            State::Queued | State::SubscriberLocked | State::Suspended | State::Paced | State::Resolving => {
                self.leg_wait_expired(now, slot, out);
            }
            State::AwaitingDlr if self.receipts.waits.contains_key(&id) => {
                self.receipt_wait_expired(now, slot, out);
            }
            State::Free
            | State::Tombstone
            | State::Submitted
            | State::Quarantined
            | State::Routing
            | State::Deciding
            | State::Uncertain
            | State::AwaitingDlr
            | State::Ending => {}
        }
    }

    /// Checks a part of the slab for expired validities and limits: the whole slab within a minute, a small slab
    /// every second. A waiting message therefore needs no timer of its own.
    fn sweep(&mut self, now: Now, out: &mut Output) {
        if let Some(left) = self.idempotency_keys.forget(now.mono) {
            out.batch.idempotency_keys_done = Some(left);
        }
        self.resolver_state.forget(now.mono);
        let capacity = self.slab.capacity();
        let share = (capacity / 60).max(65_536).min(capacity);
        for _ in 0..share {
            let slot = self.sweep_at;
            self.sweep_at = if slot as usize + 1 >= capacity { 0 } else { slot + 1 };
            let entry = &self.slab[slot];
            match entry.state {
                State::Free | State::Tombstone | State::Submitted | State::Ending => {}
                State::Queued
                | State::SubscriberLocked
                | State::Suspended
                | State::Paced
                | State::Deferred
                | State::Held
                | State::Quarantined
                | State::AwaitingLookup
                | State::Routing
                | State::Resolving
                | State::Deciding => {
                    if entry.expires <= now.mono {
                        self.end(now, slot, FinalState::Expired, None, out);
                    }
                }
                State::Uncertain | State::AwaitingDlr => {
                    // If the receipt policy has set a wait, its timer calls the policy first.
                    if entry.due <= now.mono && !self.receipts.precedes_dlr_timeout(entry.id) {
                        self.dlr_wait_expired(now, slot, out);
                    }
                }
            }
        }
    }

    /// The peer with this id; created if it is unknown.
    pub(crate) fn peer_mut(&mut self, peer: PeerId) -> &mut Peer {
        let index = peer.0 as usize;
        while self.peers.len() <= index {
            let id = PeerId(u32::try_from(self.peers.len()).unwrap_or(u32::MAX));
            self.peers.push(Peer::new(id));
        }
        &mut self.peers[index]
    }

    pub(crate) fn peer_of(&mut self, slot: Slot) -> &mut Peer {
        let peer = self.slab[slot].peer;
        self.peer_mut(peer)
    }

    /// Marks a peer that may have a sendable message.
    pub(crate) fn mark_dirty(&mut self, peer: u32) {
        if let Some(known) = self.peers.get_mut(peer as usize)
            && !known.dirty
        {
            known.dirty = true;
            self.dirty.push(peer);
        }
    }

    fn hooks_changed(&mut self, now: Now, bound: (bool, bool, bool), out: &mut Output) {
        let (resolver, delivery_policy, biller) = bound;
        if self.settings.biller != biller {
            self.biller_changed();
        }
        if self.settings.resolver != resolver {
            self.resolver_changed();
        }
        self.settings.resolver = resolver;
        self.settings.delivery_policy = delivery_policy;
        if !delivery_policy {
            self.policy_unbound(now, out);
        }
        self.settings.biller = biller;
    }

    fn forget_peer(&mut self, peer: PeerId) {
        if let Some(known) = self.peers.get_mut(peer.0 as usize) {
            known.configured = false;
            self.mark_dirty(peer.0);
        }
    }

    fn link_up(&mut self, link: LinkId, peer: PeerId, window: u32) {
        self.peer_mut(peer);
        let state = Link { id: link, peer, window: window.max(1), paused: false, in_flight: Vec::new() };
        let place = match self.links.iter().position(Option::is_none) {
            Some(place) => {
                self.links[place] = Some(state);
                place
            }
            None => {
                self.links.push(Some(state));
                self.links.len() - 1
            }
        };
        let index = u32::try_from(place).unwrap_or(NONE);
        self.link_index.insert(link, index);
        self.peers[peer.0 as usize].links.push(index);
        self.mark_dirty(peer.0);
    }

    fn link_paused(&mut self, link: LinkId) {
        if let Some(index) = self.link_index.get(&link)
            && let Some(Some(state)) = self.links.get_mut(*index as usize)
        {
            state.paused = true;
        }
    }

    fn link_down(&mut self, now: Now, link: LinkId, out: &mut Output) {
        let Some(index) = self.link_index.remove(&link) else { return };
        let Some(state) = self.links.get_mut(index as usize).and_then(Option::take) else { return };
        let peer = &mut self.peers[state.peer.0 as usize];
        peer.links.retain(|other| *other != index);
        for flight in state.in_flight {
            let InFlight { slot, seq, .. } = flight;
            self.complete_submit(slot, seq, out);
            self.start_history(slot, flight);
            self.add_step(now, slot, StepKind::Unanswered);
            self.observe(now, slot, ObservationKind::Unanswered, out);
            self.mark_uncertain(now, slot, out);
        }
        self.mark_dirty(state.peer.0);
    }

    /// Records the outcome of a submit attempt. The row is removed once all its attempts have an outcome.
    pub(crate) fn complete_submit(&mut self, slot: Slot, seq: u64, out: &mut Output) {
        self.slab[slot].link = NONE;
        self.peer_of(slot).in_flight -= 1;
        if let Some(live) = self.submit_row_live.get_mut(&seq) {
            *live -= 1;
            if *live == 0 {
                self.submit_row_live.remove(&seq);
                out.batch.submit_rows_done.push(seq);
            }
        }
    }

    /// Appends a step to a message's trace. A full trace keeps the first and the newest steps.
    pub(crate) fn add_step(&mut self, now: Now, slot: Slot, kind: StepKind) {
        let steps = &mut self.slab[slot].history_mut().steps;
        if steps.len() >= FinalRecord::MAX_STEPS {
            steps.remove(FinalRecord::MAX_STEPS / 4);
        }
        steps.push(Step { at: now.wall, kind });
    }

    pub(crate) fn cache(&mut self, slot: Slot, message: Arc<Message>) {
        self.cached += content_size(&message);
        if let Some(old) = self.slab[slot].message.replace(message) {
            self.cached -= content_size(&old);
        }
    }

    pub(crate) fn uncache(&mut self, slot: Slot) -> Option<Arc<Message>> {
        let message = self.slab[slot].message.take()?;
        self.cached = self.cached.saturating_sub(content_size(&message));
        Some(message)
    }

    /// If memory is short, evicts the content of messages that were accepted in this run and are still queued.
    fn evict(&mut self) {
        let fresh = std::mem::take(&mut self.newly_cached);
        for slot in &fresh {
            if self.slab[*slot].message.is_some() && self.may_evict(*slot) {
                self.evict_one(*slot);
            }
        }
        self.newly_cached = fresh;
        self.newly_cached.clear();
    }

    pub(crate) fn evict_one(&mut self, slot: Slot) {
        self.uncache(slot);
        if self.slab[slot].state == State::Queued {
            self.peer_of(slot).evicted += 1;
        }
    }

    /// Frees an entry, or leaves a tombstone while a queue still holds its slot.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.uncache(slot);
        let id = self.slab[slot].id;
        self.forget_earlier_legs(slot);
        self.forget_decision_limits(id);
        self.ids.remove(&self.slab, id);
        self.remote_attempts.remove(id);
        if !self.slab[slot].has(flag::OWN_DLR) {
            self.pairs.remove(&mut self.slab, slot);
            self.submissions.leave(id);
        }
        self.slab[slot].history = None;
        if self.slab[slot].has(flag::IN_FIFO) {
            self.make_tombstone(slot);
        } else {
            self.slab.remove(slot);
        }
    }

    pub(crate) fn make_tombstone(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Tombstone;
        let (peer, priority) = (entry.peer.0 as usize, usize::from(entry.priority));
        self.peers[peer].lanes[priority].add_tombstone(&mut self.slab);
    }

    /// Removes a queued message from its lane, wherever it stands. Its slot may change.
    pub(crate) fn leave_queue(&mut self, slot: Slot) -> Slot {
        let (id, priority, peer) = {
            let entry = &self.slab[slot];
            (entry.id, usize::from(entry.priority), entry.peer.0 as usize)
        };
        self.peers[peer].queued -= 1;
        if self.slab[slot].message.is_none() {
            self.peers[peer].evicted = self.peers[peer].evicted.saturating_sub(1);
        }
        if !self.slab[slot].has(flag::IN_FIFO) {
            self.peers[peer].lanes[priority].remove_returned(id);
            return slot;
        }
        // The arrival queue holds slots and is not searched: the message moves to another slot, and the old one stays
        // as a tombstone.
        let mut tombstone = Entry::blank();
        tombstone.peer = self.slab[slot].peer;
        tombstone.priority = self.slab[slot].priority;
        let is_own_dlr = self.slab[slot].has(flag::OWN_DLR);
        if !is_own_dlr {
            self.pairs.remove(&mut self.slab, slot);
        }
        let mut entry = std::mem::replace(&mut self.slab[slot], tombstone);
        entry.set(flag::IN_FIFO, false);
        let moved = self.slab.insert(entry);
        self.ids.moved(&self.slab, id, slot, moved);
        if self.queue_actions.is_scanning() {
            self.queue_actions.moved.push(id);
        }
        if !is_own_dlr {
            self.pairs.insert(&mut self.slab, moved);
        }
        for fresh in &mut self.newly_cached {
            if *fresh == slot {
                *fresh = moved;
            }
        }
        self.slab[slot].set(flag::IN_FIFO, true);
        self.make_tombstone(slot);
        moved
    }

    /// Notes a message that enters a queue with an active reroute.
    pub(crate) fn note_arrival(&mut self, slot: Slot) {
        let (id, peer) = (self.slab[slot].id, self.slab[slot].peer);
        // After a start, the reroute scans all messages.
        if !self.recovering && self.queue_actions.reroutes_from(peer) {
            self.queue_actions.arrived.push(id);
        }
    }

    /// Puts a message into its peer's queue, at the place of its id. At a serial peer it may wait behind other
    /// messages to the subscriber.
    pub(crate) fn requeue(&mut self, slot: Slot) {
        self.slab[slot].due = Moment(u64::MAX);
        self.note_arrival(slot);
        if self.requeue_behind_lock(slot) {
            return;
        }
        let entry = &mut self.slab[slot];
        entry.state = State::Queued;
        let (peer, priority, missing) = (entry.peer, usize::from(entry.priority), entry.message.is_none());
        let peer_index = peer.0 as usize;
        self.peer_mut(peer).queued += 1;
        if missing {
            self.peers[peer_index].evicted += 1;
        }
        self.peers[peer_index].lanes[priority].reinsert(&self.slab, slot);
        self.mark_dirty(peer.0);
    }

    pub(crate) fn load_if_missing(&mut self, slot: Slot, out: &mut Output) {
        let entry = &mut self.slab[slot];
        if entry.message.is_none() && !entry.has(flag::LOADING) {
            entry.set(flag::LOADING, true);
            out.commands.push(crate::EngineCommand::Load { ids: vec![entry.id] });
        }
    }

    /// Counts for the message's peer and for the account that submitted it.
    pub(crate) fn count(&mut self, slot: Slot, counted: CountedEvent) {
        let entry = &self.slab[slot];
        let (peer, origin, own) = (entry.peer, entry.origin, entry.has(flag::OWN_DLR));
        // A message that never had a peer counts for its account only.
        let ended_nowhere = matches!(counted, CountedEvent::Ended(_)) && peer == origin;
        if !ended_nowhere {
            counted.add_to(&mut self.peer_mut(peer).counts);
        }
        if !own {
            counted.add_to(&mut self.peer_mut(origin).submitter_counts);
        }
    }

    /// Counts the response time of an attempt that began at `since`.
    pub(crate) fn count_answer(&mut self, now: Now, slot: Slot, since: Option<Moment>) {
        if let Some(since) = since {
            self.count(slot, CountedEvent::Answered { after: now.mono - since });
        }
    }
}
