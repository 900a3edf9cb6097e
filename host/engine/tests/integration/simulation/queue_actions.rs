//! An admin who creates and withdraws queue actions, and the witness of their effect.

use crate::simulation::Random;
use crate::simulation::disk::Disk;
use engine::{AdminAction, Engine, EngineCommand, Event, MessageState, NewQueueAction, Output, ReplyTo};
use model::{
    AddressBytes, AdminActionKind, FinalRecord, LinkId, Message, MessageId, MessageKind, PeerId, QueueAction,
    QueueActionId, QueueActionKind, QueueActionScope, QueueActionState, StepKind, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The account and the peers of the world.
pub(crate) struct Parties {
    pub(crate) account: PeerId,
    pub(crate) peers: [PeerId; 3],
}

fn reply() -> ReplyTo {
    ReplyTo { link: LinkId(0), token: 0 }
}

/// A random queue action, its withdrawal, or an action on one message.
pub(crate) fn random_event(random: &mut Random, engine: &Engine, parties: &Parties, purges: bool) -> Event {
    let active: Vec<QueueActionId> = engine
        .queue_actions()
        .into_iter()
        .filter(|(action, _)| action.state.is_active())
        .map(|(action, _)| action.id)
        .collect();
    let by: Arc<str> = ["ada", "grace"][random.below(2)].into();
    if !active.is_empty() && random.chance(40) {
        return Event::UndoQueueAction { id: active[random.below(active.len())], by, reply: reply() };
    }
    if random.chance(25) {
        let action = [AdminAction::SendAgain, AdminAction::GiveUp, AdminAction::Cancel, AdminAction::Retry]
            [random.below(4)];
        let next = engine.uncertain(None, MessageId(0), 10);
        let any = MessageId(MessageId::FIRST.0 + random.below(200) as u64);
        let id = next.get(random.below(12)).copied().unwrap_or(any);
        return Event::AdminAction { id, action, by, reply: reply() };
    }
    let some_peer = |random: &mut Random| match random.below(4) {
        3 => parties.account,
        index => parties.peers[index],
    };
    let mut scope = QueueActionScope {
        peer: random.chance(60).then(|| some_peer(random)),
        account: random.chance(25).then_some(parties.account),
        prefix: random.chance(40).then(|| {
            let prefix = format!("861{}", random.below(6));
            AddressBytes::from_slice(prefix.as_bytes())
        }),
        older_than: random.chance(20).then(|| Duration::from_secs(random.below(20) as u64)),
    };
    let kind = match random.below(10) {
        0..4 => QueueActionKind::Suspend,
        4 => QueueActionKind::Drain,
        5..7 => QueueActionKind::Reroute,
        7 if purges => QueueActionKind::Purge,
        _ => QueueActionKind::Cancel,
    };
    let mut to = None;
    if kind == QueueActionKind::Drain {
        scope =
            QueueActionScope { peer: Some(parties.peers[random.below(3)]), ..QueueActionScope::default() };
    }
    if kind == QueueActionKind::Reroute {
        scope.peer = Some(some_peer(random));
        to = Some(some_peer(random));
    }
    let undo_within = Duration::from_secs(random.below(8) as u64);
    Event::QueueAction {
        request: Box::new(NewQueueAction { kind, scope, to, by, reason: "why not".into(), undo_within }),
        reply: reply(),
    }
}

/// Withdraws all active queue actions.
pub(crate) fn withdraw_all(engine: &Engine) -> Vec<Event> {
    let active = engine.queue_actions().into_iter().filter(|(action, _)| action.state.is_active());
    active
        .map(|(action, _)| Event::UndoQueueAction { id: action.id, by: "ada".into(), reply: reply() })
        .collect()
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

    /// Checks after each run of events that no held or rerouted message has left.
    pub(crate) fn check(
        &mut self,
        engine: &Engine,
        disk: &Disk,
        out: &Output,
        links: &[(LinkId, PeerId)],
        (wall, seed): (Timestamp, u64),
    ) {
        let actions = engine.queue_actions();
        for command in out.commands.get(self.seen..).unwrap_or_default() {
            let EngineCommand::Send { link, message, .. } = command else { continue };
            let Some((_, peer)) = links.iter().find(|(known, _)| known == link) else { continue };
            for (action, _) in actions.iter().filter(|(action, _)| action.state.is_active()) {
                let same_way = action.kind == QueueActionKind::Reroute && action.to == Some(message.origin);
                let lets_pass = action.kind == QueueActionKind::Drain || same_way;
                let id = message.id;
                assert!(
                    lets_pass || !matches_action(action, message, *peer, wall),
                    "seed {seed}: {id:?} left for {peer:?} though {action:?}"
                );
            }
        }
        self.seen = out.commands.len();
        let mut contents: BTreeMap<MessageId, ()> = disk.messages.keys().map(|id| (*id, ())).collect();
        contents.extend(out.batch.accepted.iter().map(|message| (message.id, ())));
        let mut held: BTreeMap<QueueActionId, u64> = BTreeMap::new();
        let mut by_peer: BTreeMap<PeerId, u64> = BTreeMap::new();
        for id in contents.into_keys() {
            let Some(status) = engine.message(id) else { continue };
            assert_eq!(
                status.state == MessageState::Suspended,
                status.held_by.is_some(),
                "seed {seed}: {id:?} is {:?}",
                status.state
            );
            if let Some(action) = status.held_by {
                *held.entry(action).or_default() += 1;
                *by_peer.entry(status.peer).or_default() += 1;
            }
        }
        for (action, count) in &actions {
            let whole = action.kind == QueueActionKind::Suspend && action.scope.is_whole_peer();
            if !whole {
                let found = held.get(&action.id).copied().unwrap_or(0);
                assert_eq!(*count, found, "seed {seed}: {action:?}");
            }
        }
        for peer in engine.peers() {
            let found = by_peer.get(&peer.peer).copied().unwrap_or(0);
            assert_eq!(peer.suspended, found, "seed {seed}: {peer:?}");
        }
    }
}

/// Whether a message matches an action: an independent implementation.
fn matches_action(action: &QueueAction, message: &Message, peer: PeerId, wall: Timestamp) -> bool {
    let dlr = matches!(message.kind, MessageKind::Dlr(_));
    let destination = message.destination.text();
    let prefix = action.scope.prefix.as_ref().map(|prefix| String::from_utf8_lossy(prefix).into_owned());
    let ends = matches!(action.kind, QueueActionKind::Cancel | QueueActionKind::Purge);
    let reference = if ends { action.at } else { wall };
    let age = (reference.0 / 1000).saturating_sub(message.accepted_at.0 / 1000);
    let of_kind = match action.kind {
        QueueActionKind::Cancel | QueueActionKind::Reroute | QueueActionKind::Drain => !dlr,
        QueueActionKind::Suspend => !dlr || action.scope.peer.is_some(),
        QueueActionKind::Purge => true,
    };
    of_kind
        && (!ends || message.id < action.before_id)
        && action.scope.peer.is_none_or(|named| named == peer)
        && action.scope.account.is_none_or(|named| named == message.origin)
        && prefix.is_none_or(|prefix| destination.starts_with(&prefix))
        && action.scope.older_than.is_none_or(|least| age >= least.as_secs())
}

/// Checks that no cancelled message was withdrawn before, and the number of cancelled ones.
pub(crate) fn check_end(disk: &Disk, seed: u64) {
    let mut ended: BTreeMap<QueueActionId, u64> = BTreeMap::new();
    let finals = disk.finished.iter().chain(&disk.archived);
    for (id, FinalRecord { steps, .. }) in finals {
        for step in steps {
            let StepKind::AdminAction {
                action: AdminActionKind::Cancelled, queue_action: Some(action), ..
            } = &step.kind
            else {
                continue;
            };
            let known = disk.queue_actions.get(action);
            let known = known.unwrap_or_else(|| panic!("seed {seed}: {id:?} ended by no queue action"));
            assert_eq!(known.state, QueueActionState::Done, "seed {seed}: {id:?} ended by {known:?}");
            *ended.entry(*action).or_default() += 1;
        }
    }
    for action in disk.queue_actions.values() {
        assert!(!action.state.is_active(), "seed {seed}: {action:?}");
        if action.kind == QueueActionKind::Cancel {
            let found = ended.get(&action.id).copied().unwrap_or(0);
            assert_eq!(action.affected, found, "seed {seed}: {action:?}");
        }
    }
}
