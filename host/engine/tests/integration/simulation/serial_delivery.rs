//! The witness of serial delivery.

use crate::simulation::disk::Disk;
use crate::simulation::plugins::number_on;
use engine::{Engine, EngineCommand, MessageState, Output};
use model::{AddressBytes, LinkId, Message, MessageId, MessageKind, PeerId, StepKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A subscriber at the serial peer: by IMSI, or by number.
pub(crate) type Subscriber = (bool, AddressBytes);

pub(crate) fn subscriber(message: &Message, leg: u8) -> Option<Subscriber> {
    let leg = message.routed.verdict.leg(leg)?;
    Some(match &leg.imsi {
        Some(imsi) => (true, imsi.0.clone()),
        None => (false, number_on(message, leg)),
    })
}

/// The state of a message, and its subscriber.
struct SubscriberMessage {
    id: MessageId,
    message: Arc<Message>,
    state: MessageState,
}

#[derive(Default)]
pub(crate) struct Witness {
    /// The number of commands of the current run that were checked.
    seen: usize,
}

impl Witness {
    /// The run was written, or lost.
    pub(crate) fn begin(&mut self) {
        self.seen = 0;
    }

    /// Checks after each run of events.
    pub(crate) fn check(
        &mut self,
        engine: &Engine,
        disk: &Disk,
        out: &Output,
        serial: PeerId,
        links: &[(LinkId, PeerId)],
        seed: u64,
    ) {
        let mut contents: BTreeMap<MessageId, Arc<Message>> = disk.messages.clone();
        for message in out.batch.accepted.iter().chain(&out.batch.replaced) {
            contents.insert(message.id, message.clone());
        }
        let mut of: HashMap<Subscriber, Vec<SubscriberMessage>> = HashMap::new();
        let (mut subscriber_locked, mut blocked) = (0, 0);
        for (id, message) in contents {
            let Some(status) = engine.message(id).filter(|status| status.peer == serial) else { continue };
            let Some(name) = subscriber(&message, status.leg) else { continue };
            subscriber_locked += u64::from(status.state == MessageState::SubscriberLocked);
            blocked += u64::from(status.state == MessageState::Deferred && status.attempts > 0);
            of.entry(name).or_default().push(SubscriberMessage { id, message, state: status.state });
        }
        let status = engine.peers().into_iter().find(|status| status.peer == serial);
        let status = status.unwrap_or_else(|| panic!("seed {seed}: the serial peer is gone"));
        assert_eq!(status.subscriber_locked, subscriber_locked, "seed {seed}: {status:?}");
        assert!(status.subscriber_locked == 0 || status.oldest.is_some(), "seed {seed}: {status:?}");
        assert!(
            status.blocked_subscribers <= blocked + status.uncertain,
            "seed {seed}: {status:?}, {blocked} wait"
        );
        for (name, all) in &of {
            let count = |state| all.iter().filter(|candidate| candidate.state == state).count();
            let under_way = count(MessageState::Submitted) + count(MessageState::Deciding);
            assert!(under_way <= 1, "seed {seed}: {under_way} at a time for {name:?}");
            for candidate in all.iter().filter(|candidate| candidate.state == MessageState::SubscriberLocked)
            {
                let before = engine.message(candidate.id).and_then(|status| status.lock_holder);
                let before =
                    before.unwrap_or_else(|| panic!("seed {seed}: {:?} waits for nobody", candidate.id));
                let found = all.iter().find(|other| other.id == before.id);
                let found =
                    found.unwrap_or_else(|| panic!("seed {seed}: {:?} waits for {before:?}", candidate.id));
                let itself = found.id == candidate.id;
                let may = match found.state {
                    MessageState::Submitted
                    | MessageState::Deciding
                    | MessageState::Deferred
                    | MessageState::Uncertain => !itself,
                    MessageState::Queued => !itself,
                    // Its content is loading.
                    MessageState::SubscriberLocked => true,
                    _ => false,
                };
                assert!(
                    may,
                    "seed {seed}: {:?} waits for {before:?}, which is {:?}",
                    candidate.id, found.state
                );
                let refused =
                    found.state == MessageState::Deferred && is_moved_behind_others(engine, found.id);
                assert!(!refused, "seed {seed}: {:?} waits for {before:?}, which lets it pass", candidate.id);
            }
        }
        for command in out.commands.get(self.seen..).unwrap_or_default() {
            let EngineCommand::Send { link, message, leg, more, .. } = command else { continue };
            let to_serial = links.iter().any(|(known, peer)| known == link && *peer == serial);
            if !to_serial {
                assert!(!more, "seed {seed}: only a serial peer is told that more messages wait");
                continue;
            }
            let name = subscriber(message, *leg).unwrap_or_else(|| panic!("seed {seed}: no leg"));
            let all = of.get(&name).map_or(&[][..], Vec::as_slice);
            let behind = all.iter().any(|candidate| candidate.state == MessageState::SubscriberLocked);
            assert_eq!(*more, behind, "seed {seed}: {:?} has a wrong waiting flag for {name:?}", message.id);
            let older = all.iter().find(|candidate| {
                matches!(candidate.state, MessageState::Queued | MessageState::SubscriberLocked)
                    && candidate.message.priority == message.priority
                    && candidate.id < message.id
            });
            let older = older.map(|candidate| candidate.id);
            assert_eq!(older, None, "seed {seed}: {:?} left before it", message.id);
        }
        self.seen = out.commands.len();
    }

    /// Checks that no message waits for an alerted subscriber.
    pub(crate) fn check_alerted(
        engine: &Engine,
        disk: &Disk,
        out: &Output,
        serial: PeerId,
        alerted: &Subscriber,
        seed: u64,
    ) {
        for (message, leg) in Self::waiting_for_alert(engine, disk, out, serial) {
            let is_subscriber = subscriber(&message, leg).as_ref() == Some(alerted);
            assert!(!is_subscriber, "seed {seed}: {:?} waits though {alerted:?} was alerted", message.id);
        }
    }

    /// The messages that wait for an alert, and their legs.
    pub(crate) fn waiting_for_alert(
        engine: &Engine,
        disk: &Disk,
        out: &Output,
        serial: PeerId,
    ) -> Vec<(Arc<Message>, u8)> {
        let written =
            out.batch.accepted.iter().chain(&out.batch.replaced).map(|message| (message.id, message));
        let contents: BTreeMap<_, _> =
            disk.messages.iter().map(|(id, message)| (*id, message)).chain(written).collect();
        let waits = |(id, message): (MessageId, &Arc<Message>)| {
            let status = engine.message(id).filter(|status| status.peer == serial)?;
            let waits = status.steps.iter().rev().find(|step| step.kind != StepKind::Replaced);
            let waits = waits.is_some_and(|step| matches!(step.kind, StepKind::AwaitingAlert { .. }))
                && status.state == MessageState::Deferred
                && status.attempts < 100
                && message.scheduled.is_none();
            waits.then(|| (message.clone(), status.leg))
        };
        contents.into_iter().filter_map(waits).collect()
    }
}

/// Whether a message is deferred because its handset refused this particular message.
fn is_moved_behind_others(engine: &Engine, id: MessageId) -> bool {
    let steps = engine.message(id).map(|status| status.steps).unwrap_or_default();
    let last = steps.iter().rev().find(|step| step.kind != StepKind::Replaced);
    last.is_some_and(|step| matches!(step.kind, StepKind::MovedBehindOthers { .. }))
}

/// Whether a message goes to a subscriber, and was not sent by a subscriber of the serial peer.
pub(crate) fn is_text(message: &Message) -> bool {
    message.kind == MessageKind::Text
}
