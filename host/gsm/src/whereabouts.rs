//! Subscribers whose place is not known, or not there at the moment: the HLR is asked, and what was meant for an MSC that is
//! away is tried when it is back. After a restart that is everybody, and MSCs come back one after the other.

use crate::desk::{Input, Inputs};
use crate::mt::ConnId;
use crate::register::Register;
use capabilities::HlrFailure;
use gsup::Imsi;
use gsup::ctrl::Msisdn;
use model::{Message, MessageId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tokio::sync::mpsc::WeakUnboundedSender;

/// Where a subscriber is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Over this connection.
    At(ConnId),
    /// At an MSC that is not connected.
    Away(Arc<str>),
    /// Nobody has said.
    Unknown,
}

/// What the engine has handed over and nobody has written yet.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) message: Arc<Message>,
    pub(crate) leg: u8,
    pub(crate) taken: u16,
    pub(crate) more: bool,
}

/// The inputs of the desk itself have this connection, which is none.
const DESK: ConnId = ConnId::MAX;

/// See above.
pub(crate) struct Whereabouts {
    register: Arc<Register>,
    desk: WeakUnboundedSender<Inputs>,
    asking: FxHashMap<MessageId, Held>,
    missed: FxHashMap<Arc<str>, FxHashSet<Imsi>>,
}

impl Whereabouts {
    pub(crate) fn new(register: Arc<Register>, desk: WeakUnboundedSender<Inputs>) -> Self {
        Self { register, desk, asking: FxHashMap::default(), missed: FxHashMap::default() }
    }

    /// Has the HLR tell where the subscriber of this number is; [`Input::Asked`] follows. Gives it back when there is nobody
    /// to ask.
    pub(crate) fn ask(&mut self, held: Held, number: &[u8]) -> Result<(), Held> {
        let msisdn = std::str::from_utf8(number).ok().and_then(|number| Msisdn::new(number).ok());
        let answer = msisdn.and_then(|msisdn| self.register.ask(msisdn.into()));
        let Some(answer) = answer else { return Err(held) };
        let (id, desk) = (held.message.id, self.desk.clone());
        self.asking.insert(id, held);
        tokio::spawn(async move {
            // Whatever it says, the subscribers have been told of it.
            let _ = answer.await;
            if let Some(desk) = desk.upgrade() {
                let _ = desk.send((DESK, vec![Input::Asked(id)]));
            }
        });
        Ok(())
    }

    /// Has the HLR tell where the sender of an MO is; [`Input::Sender`] follows. Gives it back when there is nobody to ask.
    pub(crate) fn ask_of_sender(&self, conn: ConnId, request: gsup::Message) -> Result<(), gsup::Message> {
        let Some(answer) = self.register.ask(request.imsi.into()) else { return Err(request) };
        let desk = self.desk.clone();
        tokio::spawn(async move {
            let answer = answer.await.unwrap_or(Err(HlrFailure::Unreachable));
            if let Some(desk) = desk.upgrade() {
                let _ = desk.send((conn, vec![Input::Sender(request, answer)]));
            }
        });
        Ok(())
    }

    /// The HLR has said what it knows.
    pub(crate) fn asked(&mut self, id: MessageId) -> Option<Held> {
        self.asking.remove(&id)
    }

    /// What still waits for the HLR's word, oldest first.
    pub(crate) fn give_up(&mut self) -> Vec<MessageId> {
        let mut ids: Vec<_> = self.asking.drain().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// A message was not written since its subscriber's MSC is away.
    pub(crate) fn missed(&mut self, msc: Arc<str>, imsi: Imsi) {
        self.missed.entry(msc).or_default().insert(imsi);
    }

    /// An MSC is there: whom it was missed for.
    pub(crate) fn back(&mut self, msc: &str) -> Vec<Imsi> {
        self.missed.remove(msc).into_iter().flatten().collect()
    }
}
