//! A witness of subscribers' turns at a serial peer.

use crate::disk::Disk;
use crate::plugins::{leg_of, number_on};
use engine::{Command, Doing, Engine, Output};
use model::{AddressBytes, Kind, LinkId, Message, MessageId, PeerId, StepKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A subscriber, as the serial peer knows him: by IMSI, or by number.
pub(crate) type Subscriber = (bool, AddressBytes);

pub(crate) fn subscriber(message: &Message, leg: u8) -> Option<Subscriber> {
    let leg = leg_of(message, leg)?;
    Some(match &leg.imsi {
        Some(imsi) => (true, imsi.0.clone()),
        None => (false, number_on(message, leg)),
    })
}

/// What a message does, for which subscriber.
struct Stands {
    id: MessageId,
    message: Arc<Message>,
    doing: Doing,
}

#[derive(Default)]
pub(crate) struct Witness {
    /// How many commands of the run that is gathering have been looked at.
    seen: usize,
}

impl Witness {
    /// The run was written, or lost.
    pub(crate) fn begin(&mut self) {
        self.seen = 0;
    }

    /// After each run of events.
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
        let mut of: HashMap<Subscriber, Vec<Stands>> = HashMap::new();
        let (mut aside, mut parked) = (0, 0);
        for (id, message) in contents {
            let Some(status) = engine.message(id).filter(|status| status.peer == serial) else { continue };
            let Some(name) = subscriber(&message, status.leg) else { continue };
            aside += u64::from(status.doing == Doing::Aside);
            parked += u64::from(status.doing == Doing::Deferred && status.attempts > 0);
            of.entry(name).or_default().push(Stands { id, message, doing: status.doing });
        }
        let status = engine.peers().into_iter().find(|status| status.peer == serial);
        let status = status.unwrap_or_else(|| panic!("seed {seed}: the serial peer is gone"));
        assert_eq!(status.aside, aside, "seed {seed}: {status:?}");
        assert!(status.aside == 0 || status.oldest.is_some(), "seed {seed}: {status:?}");
        assert!(status.parked <= parked + status.uncertain, "seed {seed}: {status:?}, {parked} wait");
        for (name, all) in &of {
            let count = |doing| all.iter().filter(|stands| stands.doing == doing).count();
            let under_way = count(Doing::Submitted) + count(Doing::Deciding);
            assert!(under_way <= 1, "seed {seed}: {under_way} at a time for {name:?}");
            for stands in all.iter().filter(|stands| stands.doing == Doing::Aside) {
                let before = engine.message(stands.id).and_then(|status| status.before);
                let before =
                    before.unwrap_or_else(|| panic!("seed {seed}: {:?} waits for nobody", stands.id));
                let found = all.iter().find(|other| other.id == before.id);
                let found =
                    found.unwrap_or_else(|| panic!("seed {seed}: {:?} waits for {before:?}", stands.id));
                let itself = found.id == stands.id;
                let may = match found.doing {
                    Doing::Submitted | Doing::Deciding | Doing::Deferred | Doing::Uncertain => !itself,
                    Doing::Queued => !itself,
                    // Its content is on its way.
                    Doing::Aside => true,
                    _ => false,
                };
                assert!(may, "seed {seed}: {:?} waits for {before:?}, which is {:?}", stands.id, found.doing);
                let refused = found.doing == Doing::Deferred && lets_others_go_first(engine, found.id);
                assert!(!refused, "seed {seed}: {:?} waits for {before:?}, which lets it pass", stands.id);
            }
        }
        for command in out.commands.get(self.seen..).unwrap_or_default() {
            let Command::Send { link, message, leg, more, .. } = command else { continue };
            let to_serial = links.iter().any(|(known, peer)| known == link && *peer == serial);
            if !to_serial {
                assert!(!more, "seed {seed}: nobody else can be told of more");
                continue;
            }
            let name = subscriber(message, *leg).unwrap_or_else(|| panic!("seed {seed}: no leg"));
            let all = of.get(&name).map_or(&[][..], Vec::as_slice);
            let behind = all.iter().any(|stands| stands.doing == Doing::Aside);
            assert_eq!(*more, behind, "seed {seed}: {:?} says so of {name:?}", message.id);
            let older = all.iter().find(|stands| {
                matches!(stands.doing, Doing::Queued | Doing::Aside)
                    && stands.message.priority == message.priority
                    && stands.id < message.id
            });
            let older = older.map(|stands| stands.id);
            assert_eq!(older, None, "seed {seed}: {:?} left before it", message.id);
        }
        self.seen = out.commands.len();
    }

    /// Nobody who was heard of is still waited for.
    pub(crate) fn check_heard(
        engine: &Engine,
        disk: &Disk,
        out: &Output,
        serial: PeerId,
        heard: &Subscriber,
        seed: u64,
    ) {
        for (message, leg) in Self::waiting_for_alert(engine, disk, out, serial) {
            let him = subscriber(&message, leg).as_ref() == Some(heard);
            assert!(!him, "seed {seed}: {:?} waits though {heard:?} was heard of", message.id);
        }
    }

    /// Messages that wait for their subscriber to be heard of, and the legs on which they do.
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
                && status.doing == Doing::Deferred
                && status.attempts < 100
                && message.scheduled.is_none();
            waits.then(|| (message.clone(), status.leg))
        };
        contents.into_iter().filter_map(waits).collect()
    }
}

/// Whether a message waits that its handset refused, and nothing but it.
fn lets_others_go_first(engine: &Engine, id: MessageId) -> bool {
    let steps = engine.message(id).map(|status| status.steps).unwrap_or_default();
    let last = steps.iter().rev().find(|step| step.kind != StepKind::Replaced);
    last.is_some_and(|step| matches!(step.kind, StepKind::OthersFirst { .. }))
}

/// Whether a message is one to a subscriber, and not one that a serial peer's subscriber has sent.
pub(crate) fn is_text(message: &Message) -> bool {
    message.kind == Kind::Text
}
