use crate::consent::{Consents, comparable};
use crate::deciding::Deciding;
use crate::ending::Ending;
use crate::index::{IdIndex, PairIndex};
use crate::keys::Keys;
use crate::ledger::{Parking, ReceiptIndex};
use crate::money::Money;
use crate::orders::Orders;
use crate::peer::{InFlight, Link, Peer};
use crate::pools::Pools;
use crate::random::Random;
use crate::resolving::{Resolving, needs_subscriber};
use crate::slab::{Entry, NONE, Slab, Slot, State, flag};
use crate::submissions::Submissions;
use crate::timer::{Timer, Timers};
use crate::turns::Turns;
use crate::{Answer, Command, Event, Output, Settings};
use model::{Final, FinalState, LinkId, Message, MessageId, Moment, Now, PeerId, Step, StepKind};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How often the engine wants to be called while anything waits, to look for ended validities.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The life of all messages. See the crate's documentation.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) random: Random,
    pub(crate) slab: Slab,
    pub(crate) ids: IdIndex,
    pub(crate) pairs: PairIndex,
    pub(crate) submissions: Submissions,
    pub(crate) receipts: ReceiptIndex,
    pub(crate) parking: Parking,
    pub(crate) peers: Vec<Peer>,
    pub(crate) links: Vec<Option<Link>>,
    pub(crate) link_index: FxHashMap<LinkId, u32>,
    pub(crate) timers: Timers,
    /// Peers that may have something to send.
    pub(crate) dirty: Vec<u32>,
    /// Peers with content to be read back.
    pub(crate) to_load: Vec<u32>,
    pub(crate) next_id: MessageId,
    /// The number of this run's `handed` row.
    pub(crate) handed_seq: u64,
    /// Messages of each `handed` row that have not moved on.
    pub(crate) handed_live: FxHashMap<u64, u32>,
    /// Events that wait for the content of a message.
    pub(crate) waiting_for_content: HashMap<MessageId, Vec<Event>>,
    /// Ends that wait for the content of a message, to write the receipt or to settle the charge.
    pub(crate) ending: HashMap<MessageId, Ending>,
    /// From the first message found on disk until the last: no id may be given out, since it is not known which are free.
    pub(crate) recovering: bool,
    /// Messages that ended meanwhile; their receipts are made when ids are known.
    pub(crate) ended_meanwhile: Vec<MessageId>,
    /// Slots accepted in this run: evicted at its end if they still wait and memory is short.
    pub(crate) fresh: Vec<Slot>,
    /// Uncertain messages by peer group, source and destination, oldest first.
    pub(crate) in_doubt: HashMap<u64, Vec<MessageId>>,
    /// All uncertain messages.
    pub(crate) doubtful: BTreeSet<MessageId>,
    pub(crate) orders: Orders,
    pub(crate) keys: Keys,
    pub(crate) consents: Consents,
    pub(crate) money: Money,
    pub(crate) resolving: Resolving,
    pub(crate) deciding: Deciding,
    pub(crate) turns: Turns,
    pub(crate) pools: Pools,
    /// Messages behind a turn whose content is to be read back.
    pub(crate) to_fetch: Vec<MessageId>,
    pub(crate) cached: usize,
    pub(crate) sweep_at: u32,
    pub(crate) sweep_set: bool,
    pub(crate) parking_set: bool,
    pub(crate) disk_low: bool,
    /// Submissions are refused.
    pub(crate) closed: bool,
    pub(crate) draining: bool,
    pub(crate) totals: Totals,
}

/// Counts since the start, for metrics.
#[derive(Debug, Default, Clone)]
pub struct Totals {
    /// Messages accepted, receipts of ours left out.
    pub accepted: u64,
    /// Submissions refused.
    pub refused: u64,
    /// Messages given to links, attempts counted singly.
    pub submitted: u64,
    /// Ended messages by [`FinalState`], index = octet.
    pub ended: [u64; 8],
    /// Receipts of ours made, and delivered.
    pub receipts_made: u64,
    /// Receipts of ours that an ESME has taken.
    pub receipts_delivered: u64,
    /// Receipts from peers that matched a message.
    pub receipts_matched: u64,
    /// Receipts from peers that never matched one.
    pub receipts_unmatched: u64,
    /// Receipts of ours that were not made because their account's queue was full.
    pub receipts_dropped: u64,
    /// Submissions that were repeated under their key, and answered again.
    pub repeated: u64,
    /// Submissions refused because the addressee has told the sender to stop.
    pub opted_out: u64,
    /// Submissions refused because their ledger account cannot pay.
    pub unpaid: u64,
    /// Hand-overs that ended in doubt.
    pub uncertain: u64,
    /// Messages sent again to settle a doubt.
    pub sent_again: u64,
    /// Attempts that a peer refused, throttling included.
    pub attempts_refused: u64,
    /// Of these, those that said "too fast" or "queue full".
    pub throttled: u64,
    /// Messages whose turn in a queue came while another to the same subscriber went first.
    pub set_aside: u64,
}

/// What a message costs in memory while its content is held, beyond its octets.
const CONTENT_OVERHEAD: usize = 400;

pub(crate) fn content_size(message: &Message) -> usize {
    CONTENT_OVERHEAD + message.text.octets.len() + message.tlvs.len()
}

impl Engine {
    /// An engine with nothing in it.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut random = Random::new(settings.seed);
        Self {
            pairs: PairIndex::new(random.next()),
            submissions: Submissions::default(),
            receipts: ReceiptIndex::new(random.next()),
            keys: Keys::new(random.next()),
            consents: Consents::default(),
            money: Money::new(random.next()),
            resolving: Resolving::new(random.next()),
            deciding: Deciding::default(),
            turns: Turns::new(random.next()),
            pools: Pools::new(settings.seed.rotate_left(17)),
            to_fetch: Vec::new(),
            random,
            settings,
            slab: Slab::new(),
            ids: IdIndex::default(),
            parking: Parking::default(),
            peers: Vec::new(),
            links: Vec::new(),
            link_index: FxHashMap::default(),
            timers: Timers::default(),
            dirty: Vec::new(),
            to_load: Vec::new(),
            next_id: MessageId::FIRST,
            handed_seq: 1,
            handed_live: FxHashMap::default(),
            waiting_for_content: HashMap::new(),
            ending: HashMap::new(),
            recovering: false,
            ended_meanwhile: Vec::new(),
            fresh: Vec::new(),
            in_doubt: HashMap::new(),
            doubtful: BTreeSet::new(),
            orders: Orders::default(),
            cached: 0,
            sweep_at: 0,
            sweep_set: false,
            parking_set: false,
            disk_low: false,
            closed: false,
            draining: false,
            totals: Totals::default(),
        }
    }

    /// Takes one event. What follows from it is in `out`; messages leave their queues only in [`Engine::settle`].
    pub fn apply(&mut self, now: Now, event: Event, out: &mut Output) {
        match event {
            Event::Peer(settings) => self.configure_peer(now, settings, out),
            Event::PeerGone(peer) => self.forget_peer(peer),
            Event::LinkUp { link, peer, window } => self.link_up(link, peer, window),
            Event::LinkPaused { link } => self.link_paused(link),
            Event::LinkDown { link } => self.link_down(now, link, out),
            Event::Accept { message, reply } => self.accept_one(now, *message, reply, out),
            Event::AcceptMany { messages, shared_id, key, reply } => {
                self.accept_many(now, (messages, shared_id), key, reply, out);
            }
            Event::Outcome { link, id, outcome } => self.outcome(now, link, id, outcome, out),
            Event::Receipt { peer, receipt, reply } => self.receipt(now, peer, receipt, reply, out),
            Event::Told { id, receipt } => self.told(now, id, receipt, out),
            Event::Query { .. }
            | Event::Cancel { .. }
            | Event::CancelMatching { .. }
            | Event::Replace { .. }
            | Event::Settle { .. } => self.request(now, event, out),
            Event::Order { wish, reply } => self.give_order(now, *wish, reply, out),
            Event::UndoOrder { id, by, reply } => self.undo_order(now, id, &by, reply, out),
            Event::ByHand { .. } => self.by_hand(now, event, out),
            Event::Loaded { id, message } => self.loaded(now, id, message, out),
            Event::Rerouted { id, routed } => self.rerouted(now, id, routed, out),
            Event::Disk { low } => self.disk_low = low,
            Event::Admission { open } => self.closed = !open,
            Event::Consent { sender, subscriber, stop, reply } => {
                let consent = comparable(&sender, &subscriber, &self.settings.country);
                if self.consents.set(consent.clone(), stop) {
                    out.batch.consents.push((consent, stop));
                }
                if let Some(to) = reply {
                    out.commands.push(Command::Answer { to, answer: Answer::Done });
                }
            }
            Event::Archived { ids, reply } => {
                out.batch.archived.extend(ids);
                out.commands.push(Command::Answer { to: reply, answer: Answer::Done });
            }
            Event::ReportAgain { message, ended, reply } => {
                let answer = self.report_again(now, &message, &ended, out);
                out.commands.push(Command::Answer { to: reply, answer });
            }
            Event::Hooks { resolver, delivery_policy, biller } => {
                self.hooks_changed(now, (resolver, delivery_policy, biller), out);
            }
            Event::ResolverExchanged => self.resolving.asked_again(Moment(u64::MAX)),
            Event::Ledger { operation, reply } => self.ledger_operation(now, operation, reply, out),
            Event::Settled { upto, ok } => self.settled(now, upto, ok, out),
            Event::Resolved { msisdn, resolution } => self.resolved(now, &msisdn, resolution),
            Event::Decided { id, attempt, next } => self.decided(now, id, attempt, next, out),
            Event::Alert { msisdn } => self.alert(now, &msisdn, out),
            Event::Reachable { imsi } => self.reachable(now, &imsi, out),
            Event::Numbered { msisdn, imsi, before } => self.numbered(now, &msisdn, &imsi, before, out),
            Event::Pool { pool, request, by, reply } => {
                let by = (&by, self.settings.pools);
                let answer = self.pools.request(now, &pool, request, by, &mut out.batch.pools);
                out.commands.push(Command::Answer { to: reply, answer: Answer::Pool(answer) });
            }
            Event::Pools { reply } => {
                let answer = Answer::Pools(self.pools.summaries(now));
                out.commands.push(Command::Answer { to: reply, answer });
            }
            Event::Drain => self.draining = true,
        }
    }

    /// Ends a run of events: fires what is due and sends what can be sent. Several runs may share one batch;
    /// [`Engine::seal`] closes it.
    pub fn settle(&mut self, now: Now, out: &mut Output) {
        self.finish_recovered(now, out);
        self.pools.give_back_orphans(now, &mut out.batch.pools);
        self.pools.advance(now, &mut out.batch.pools);
        self.pools.housekeep(now, self.settings.pools, &mut out.batch.pools);
        while let Some(timer) = self.timers.pop_due(now.mono) {
            self.fire(now, timer, out);
        }
        self.move_resolved(now, out);
        self.work_on_orders(now, out);
        loop {
            self.rebind_arrived(now, out);
            while let Some(peer) = self.dirty.pop() {
                self.peers[peer as usize].dirty = false;
                self.dispatch(now, peer, out);
            }
            if self.orders.arrived.is_empty() {
                break;
            }
        }
        self.call_up(now, out);
        self.ask_resolver(out);
        self.evict();
        self.load_ahead(out);
        self.tell_biller(now, out);
        let swept = self.slab.used() > 0 || self.keys.any_to_forget() || self.resolving.remembers();
        if !self.sweep_set && swept {
            self.sweep_set = true;
            self.timers.set(now.mono + SWEEP_EVERY, Timer::Sweep);
        }
    }

    /// Closes a batch that is about to be written; what comes after it belongs to the next one.
    pub fn seal(&mut self, out: &mut Output) {
        out.batch.next_id = self.next_id;
        out.batch.balances = self.money.take_touched();
        self.pools.sealed();
        if !out.batch.handed.is_empty() {
            out.batch.handed_seq = self.handed_seq;
            // Its messages may all have moved on while the batch grew, and others have joined it since.
            if self.handed_live.contains_key(&self.handed_seq) {
                out.batch.handed_done.retain(|seq| *seq != self.handed_seq);
            }
            self.handed_seq += 1;
        }
    }

    /// When [`Engine::settle`] wants to be called, at the latest, though nothing happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.timers.next().into_iter().chain(self.pools.deadline()).min()
    }

    /// Messages that have not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.ids.len()
    }

    /// Counts since the start.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Octets of message content held in memory, as estimated for the limit of [`Settings::body_cache`].
    #[must_use]
    pub fn cached(&self) -> usize {
        self.cached
    }

    fn fire(&mut self, now: Now, timer: Timer, out: &mut Output) {
        match timer {
            Timer::Message(slot, id) => self.message_due(now, slot, id, out),
            Timer::Peer(peer) => {
                self.peers[peer as usize].wake = None;
                self.mark(peer);
            }
            Timer::Parking => self.look_through_parking(now, out),
            // Looked at after every run of events.
            Timer::Settle | Timer::Orders => {}
            Timer::Order(order) => self.order_due(now, order, out),
            Timer::Resolve => self.resolving.asked_again(now.mono),
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
                self.deciding.forget_alert(id);
                if let Some(message) = &self.slab[slot].message
                    && needs_subscriber(message, self.slab[slot].leg)
                {
                    let message = message.clone();
                    self.resolve_first(now, slot, &message, out);
                    return;
                }
                self.requeue(slot);
                if self.slab[slot].state == State::Queued {
                    self.load_if_missing(slot, out);
                }
            }
            State::Held => self.ask_route(now, slot, out),
            State::Queued | State::Aside | State::Suspended | State::Resolving => {
                self.waited_long_enough(now, slot, out);
            }
            State::Free
            | State::Ghost
            | State::Submitted
            | State::Routing
            | State::Deciding
            | State::Uncertain
            | State::Receipt
            | State::Ending => {}
        }
    }

    /// Looks at a part of the slab for ended validities and limits: all of it within a minute, and in small appliances
    /// all of it every second. So a waiting message needs no timer of its own.
    fn sweep(&mut self, now: Now, out: &mut Output) {
        if let Some(left) = self.keys.forget(now.mono) {
            out.batch.keys_done = Some(left);
        }
        self.resolving.forget(now.mono);
        let capacity = self.slab.capacity();
        let share = (capacity / 60).max(65_536).min(capacity);
        for _ in 0..share {
            let slot = self.sweep_at;
            self.sweep_at = if slot as usize + 1 >= capacity { 0 } else { slot + 1 };
            let entry = &self.slab[slot];
            match entry.state {
                State::Free | State::Ghost | State::Submitted | State::Ending => {}
                State::Queued
                | State::Aside
                | State::Suspended
                | State::Deferred
                | State::Held
                | State::Routing
                | State::Resolving
                | State::Deciding => {
                    if entry.expires <= now.mono {
                        self.end(now, slot, FinalState::Expired, None, out);
                    }
                }
                State::Uncertain | State::Receipt => {
                    if entry.due <= now.mono {
                        self.gave_no_sign(now, slot, out);
                    }
                }
            }
        }
    }

    /// The peer with this number, made if it is not known yet.
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

    /// The peer may have something to send.
    pub(crate) fn mark(&mut self, peer: u32) {
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
            self.policy_gone(now, out);
        }
        self.settings.biller = biller;
    }

    fn forget_peer(&mut self, peer: PeerId) {
        if let Some(known) = self.peers.get_mut(peer.0 as usize) {
            known.configured = false;
            self.mark(peer.0);
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
        self.mark(peer.0);
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
            self.moved_on(slot, seq, out);
            self.history(slot, flight);
            self.step(now, slot, StepKind::Unanswered);
            self.in_doubt(now, slot, out);
        }
        self.mark(state.peer.0);
    }

    /// A message of a `handed` row has an outcome; the row goes when all have.
    pub(crate) fn moved_on(&mut self, slot: Slot, seq: u64, out: &mut Output) {
        self.slab[slot].link = NONE;
        self.peer_of(slot).in_flight -= 1;
        if let Some(live) = self.handed_live.get_mut(&seq) {
            *live -= 1;
            if *live == 0 {
                self.handed_live.remove(&seq);
                out.batch.handed_done.push(seq);
            }
        }
    }

    /// Adds a step to a message's trace. The first and the newest are kept.
    pub(crate) fn step(&mut self, now: Now, slot: Slot, kind: StepKind) {
        let steps = &mut self.slab[slot].side().steps;
        if steps.len() >= Final::MAX_STEPS {
            steps.remove(Final::MAX_STEPS / 4);
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

    /// Lets go of the content of what was accepted in this run and did not leave at once, if memory is short.
    fn evict(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        for slot in &fresh {
            if self.slab[*slot].message.is_some() && self.may_evict(*slot) {
                self.evict_one(*slot);
            }
        }
        self.fresh = fresh;
        self.fresh.clear();
    }

    pub(crate) fn evict_one(&mut self, slot: Slot) {
        self.uncache(slot);
        if self.slab[slot].state == State::Queued {
            self.peer_of(slot).evicted += 1;
        }
    }

    /// Frees an entry, or leaves a ghost where a queue still holds its slot.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.uncache(slot);
        let id = self.slab[slot].id;
        self.ids.remove(&self.slab, id);
        if !self.slab[slot].has(flag::OWN_RECEIPT) {
            self.pairs.remove(&mut self.slab, slot);
            self.submissions.leave(id);
        }
        self.slab[slot].side = None;
        if self.slab[slot].has(flag::IN_FIFO) {
            self.make_ghost(slot);
        } else {
            self.slab.remove(slot);
        }
    }

    pub(crate) fn make_ghost(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Ghost;
        let (peer, priority) = (entry.peer.0 as usize, usize::from(entry.priority));
        self.peers[peer].lanes[priority].ghosted(&mut self.slab);
    }

    /// Takes a queued message out of its lane, wherever it stands. Its slot may change.
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
            self.peers[peer].lanes[priority].take_returned(id);
            return slot;
        }
        // The arrival queue holds slots and is not searched: the message moves to another, the old one stays as a ghost.
        let mut ghost = Entry::blank();
        ghost.peer = self.slab[slot].peer;
        ghost.priority = self.slab[slot].priority;
        let own_receipt = self.slab[slot].has(flag::OWN_RECEIPT);
        if !own_receipt {
            self.pairs.remove(&mut self.slab, slot);
        }
        let mut entry = std::mem::replace(&mut self.slab[slot], ghost);
        entry.set(flag::IN_FIFO, false);
        let moved = self.slab.insert(entry);
        self.ids.moved(&self.slab, id, slot, moved);
        if self.orders.is_looking() {
            self.orders.moved.push(id);
        }
        if !own_receipt {
            self.pairs.insert(&mut self.slab, moved);
        }
        for fresh in &mut self.fresh {
            if *fresh == slot {
                *fresh = moved;
            }
        }
        self.slab[slot].set(flag::IN_FIFO, true);
        self.make_ghost(slot);
        moved
    }

    /// A message comes into a queue from which an order may send it another way.
    pub(crate) fn arrived(&mut self, slot: Slot) {
        let (id, peer) = (self.slab[slot].id, self.slab[slot].peer);
        // After a start all are looked at.
        if !self.recovering && self.orders.rebinds_from(peer) {
            self.orders.arrived.push(id);
        }
    }

    /// Puts a message into its peer's queue, at the place that its id gives it; at a serial peer perhaps behind others to
    /// its subscriber.
    pub(crate) fn requeue(&mut self, slot: Slot) {
        self.slab[slot].due = Moment(u64::MAX);
        self.arrived(slot);
        if self.back_behind_turn(slot) {
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
        self.peers[peer_index].lanes[priority].put_back(&self.slab, slot);
        self.mark(peer.0);
    }

    pub(crate) fn load_if_missing(&mut self, slot: Slot, out: &mut Output) {
        let entry = &mut self.slab[slot];
        if entry.message.is_none() && !entry.has(flag::LOADING) {
            entry.set(flag::LOADING, true);
            out.commands.push(crate::Command::Load { ids: vec![entry.id] });
        }
    }
}
