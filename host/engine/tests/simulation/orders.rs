//! An admin who gives orders and takes them back, and a witness who sees to it that they are obeyed.

use crate::Random;
use crate::disk::Disk;
use engine::{Command, Doing, Engine, Event, Hand, OrderWish, Output, ReplyTo};
use model::{
    AddressBytes, Deed, Final, Kind, LinkId, Message, MessageId, Order, OrderId, OrderKind, OrderState,
    PeerId, Scope, StepKind, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Who is there to be named.
pub(crate) struct Parties {
    pub(crate) account: PeerId,
    pub(crate) peers: [PeerId; 3],
}

fn reply() -> ReplyTo {
    ReplyTo { link: LinkId(0), token: 0 }
}

/// Some order, or the end of one, or something done by hand.
pub(crate) fn somebody(random: &mut Random, engine: &Engine, parties: &Parties, purges: bool) -> Event {
    let active: Vec<OrderId> = engine
        .orders()
        .into_iter()
        .filter(|(order, _)| order.state.is_active())
        .map(|(order, _)| order.id)
        .collect();
    let by: Arc<str> = ["ada", "grace"][random.below(2)].into();
    if !active.is_empty() && random.chance(40) {
        return Event::UndoOrder { id: active[random.below(active.len())], by, reply: reply() };
    }
    if random.chance(25) {
        let hand = [Hand::SendAgain, Hand::GiveUp, Hand::Cancel, Hand::Retry][random.below(4)];
        let next = engine.uncertain(None, MessageId(0), 10);
        let any = MessageId(MessageId::FIRST.0 + random.below(200) as u64);
        let id = next.get(random.below(12)).copied().unwrap_or(any);
        return Event::ByHand { id, hand, by, reply: reply() };
    }
    let some_peer = |random: &mut Random| match random.below(4) {
        3 => parties.account,
        index => parties.peers[index],
    };
    let mut scope = Scope {
        peer: random.chance(60).then(|| some_peer(random)),
        account: random.chance(25).then_some(parties.account),
        prefix: random.chance(40).then(|| {
            let prefix = format!("861{}", random.below(6));
            AddressBytes::from_slice(prefix.as_bytes())
        }),
        older_than: random.chance(20).then(|| Duration::from_secs(random.below(20) as u64)),
    };
    let kind = match random.below(10) {
        0..4 => OrderKind::Suspend,
        4 => OrderKind::Drain,
        5..7 => OrderKind::Rebind,
        7 if purges => OrderKind::Purge,
        _ => OrderKind::Cancel,
    };
    let mut to = None;
    if kind == OrderKind::Drain {
        scope = Scope { peer: Some(parties.peers[random.below(3)]), ..Scope::default() };
    }
    if kind == OrderKind::Rebind {
        scope.peer = Some(some_peer(random));
        to = Some(some_peer(random));
    }
    let undo_within = Duration::from_secs(random.below(8) as u64);
    Event::Order {
        wish: Box::new(OrderWish { kind, scope, to, by, why: "why not".into(), undo_within }),
        reply: reply(),
    }
}

/// All orders that still have a say are withdrawn.
pub(crate) fn withdraw_all(engine: &Engine) -> Vec<Event> {
    let active = engine.orders().into_iter().filter(|(order, _)| order.state.is_active());
    active.map(|(order, _)| Event::UndoOrder { id: order.id, by: "ada".into(), reply: reply() }).collect()
}

#[derive(Default)]
pub(crate) struct Witness {
    seen: usize,
}

impl Witness {
    /// The run was written, or lost.
    pub(crate) fn begin(&mut self) {
        self.seen = 0;
    }

    /// After each run of events: nothing has left that an order holds back or sends another way.
    pub(crate) fn check(
        &mut self,
        engine: &Engine,
        disk: &Disk,
        out: &Output,
        links: &[(LinkId, PeerId)],
        (wall, seed): (Timestamp, u64),
    ) {
        let orders = engine.orders();
        for command in out.commands.get(self.seen..).unwrap_or_default() {
            let Command::Send { link, message, .. } = command else { continue };
            let Some((_, peer)) = links.iter().find(|(known, _)| known == link) else { continue };
            for (order, _) in orders.iter().filter(|(order, _)| order.state.is_active()) {
                let same_way = order.kind == OrderKind::Rebind && order.to == Some(message.origin);
                let lets_pass = order.kind == OrderKind::Drain || same_way;
                let id = message.id;
                assert!(
                    lets_pass || !concerns(order, message, *peer, wall),
                    "seed {seed}: {id:?} left for {peer:?} though {order:?}"
                );
            }
        }
        self.seen = out.commands.len();
        let mut contents: BTreeMap<MessageId, ()> = disk.messages.keys().map(|id| (*id, ())).collect();
        contents.extend(out.batch.accepted.iter().map(|message| (message.id, ())));
        let mut held: BTreeMap<OrderId, u64> = BTreeMap::new();
        let mut by_peer: BTreeMap<PeerId, u64> = BTreeMap::new();
        for id in contents.into_keys() {
            let Some(status) = engine.message(id) else { continue };
            assert_eq!(
                status.doing == Doing::Suspended,
                status.order.is_some(),
                "seed {seed}: {id:?} is {:?}",
                status.doing
            );
            if let Some(order) = status.order {
                *held.entry(order).or_default() += 1;
                *by_peer.entry(status.peer).or_default() += 1;
            }
        }
        for (order, count) in &orders {
            let whole = order.kind == OrderKind::Suspend && order.scope.is_whole_peer();
            if !whole {
                let found = held.get(&order.id).copied().unwrap_or(0);
                assert_eq!(*count, found, "seed {seed}: {order:?}");
            }
        }
        for peer in engine.peers() {
            let found = by_peer.get(&peer.peer).copied().unwrap_or(0);
            assert_eq!(peer.suspended, found, "seed {seed}: {peer:?}");
        }
    }
}

/// Whether a message is one of an order's, said once more in other words.
fn concerns(order: &Order, message: &Message, peer: PeerId, wall: Timestamp) -> bool {
    let receipt = matches!(message.kind, Kind::Receipt(_));
    let destination = message.destination.text();
    let prefix = order.scope.prefix.as_ref().map(|prefix| String::from_utf8_lossy(prefix).into_owned());
    let ends = matches!(order.kind, OrderKind::Cancel | OrderKind::Purge);
    let reference = if ends { order.at } else { wall };
    let age = (reference.0 / 1000).saturating_sub(message.accepted_at.0 / 1000);
    let of_kind = match order.kind {
        OrderKind::Cancel | OrderKind::Rebind | OrderKind::Drain => !receipt,
        OrderKind::Suspend => !receipt || order.scope.peer.is_some(),
        OrderKind::Purge => true,
    };
    of_kind
        && (!ends || message.id < order.upto)
        && order.scope.peer.is_none_or(|named| named == peer)
        && order.scope.account.is_none_or(|named| named == message.origin)
        && prefix.is_none_or(|prefix| destination.starts_with(&prefix))
        && order.scope.older_than.is_none_or(|least| age >= least.as_secs())
}

/// What an order has ended, it was not taken back before; and it says how many.
pub(crate) fn check_end(disk: &Disk, seed: u64) {
    let mut ended: BTreeMap<OrderId, u64> = BTreeMap::new();
    let finals = disk.finished.iter().chain(&disk.archived);
    for (id, Final { steps, .. }) in finals {
        for step in steps {
            let StepKind::ByHand { deed: Deed::Cancelled, order: Some(order), .. } = &step.kind else {
                continue;
            };
            let known = disk.orders.get(order);
            let known = known.unwrap_or_else(|| panic!("seed {seed}: {id:?} ended by no order"));
            assert_eq!(known.state, OrderState::Done, "seed {seed}: {id:?} ended by {known:?}");
            *ended.entry(*order).or_default() += 1;
        }
    }
    for order in disk.orders.values() {
        assert!(!order.state.is_active(), "seed {seed}: {order:?}");
        if order.kind == OrderKind::Cancel {
            let found = ended.get(&order.id).copied().unwrap_or(0);
            assert_eq!(order.touched, found, "seed {seed}: {order:?}");
        }
    }
}
