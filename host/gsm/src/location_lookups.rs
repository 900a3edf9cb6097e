//! Location lookups: queries the HLR for subscribers with unknown location, and retries messages when a disconnected
//! MSC returns. After a restart, all locations are unknown and MSCs reconnect one by one.

use crate::hlr_lookup::HlrLookup;
use crate::link_input::{LinkInput, LinkInputs};
use crate::mt::ConnId;
use capabilities::HlrFailure;
use gsup::GsupImsi;
use gsup::ctrl::Msisdn;
use model::{Message, MessageId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tokio::sync::mpsc::WeakUnboundedSender;

/// The location of a subscriber.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SubscriberLocation {
    /// Reachable over this connection.
    Connection(ConnId),
    /// At an MSC that is not connected.
    DisconnectedMsc(Arc<str>),
    /// Not known.
    Unknown,
}

/// A message that the engine has submitted and that is not written yet.
#[derive(Debug)]
pub(crate) struct UnsentMessage {
    pub(crate) message: Arc<Message>,
    pub(crate) leg: u8,
    pub(crate) taken: u16,
    pub(crate) more: bool,
}

/// The connection id of inputs from the link itself.
const NO_CONNECTION: ConnId = ConnId::MAX;

/// Pending lookups, and subscribers whose MSC was disconnected.
pub(crate) struct LocationLookups {
    hlr_lookup: Arc<HlrLookup>,
    link: WeakUnboundedSender<LinkInputs>,
    pending: FxHashMap<MessageId, UnsentMessage>,
    missed: FxHashMap<Arc<str>, FxHashSet<GsupImsi>>,
}

impl LocationLookups {
    pub(crate) fn new(hlr_lookup: Arc<HlrLookup>, link: WeakUnboundedSender<LinkInputs>) -> Self {
        Self { hlr_lookup, link, pending: FxHashMap::default(), missed: FxHashMap::default() }
    }

    /// Queries the HLR for the location of this number; [`LinkInput::LocationLookedUp`] follows. Returns the message if
    /// the HLR cannot be queried.
    pub(crate) fn find_recipient(
        &mut self,
        unsent: UnsentMessage,
        number: &[u8],
    ) -> Result<(), UnsentMessage> {
        let msisdn = std::str::from_utf8(number).ok().and_then(|number| Msisdn::new(number).ok());
        let answer = msisdn.and_then(|msisdn| self.hlr_lookup.query(msisdn.into()));
        let Some(answer) = answer else { return Err(unsent) };
        let (id, link) = (unsent.message.id, self.link.clone());
        self.pending.insert(id, unsent);
        tokio::spawn(async move {
            // The result is already recorded in the subscribers.
            let _ = answer.await;
            if let Some(link) = link.upgrade() {
                let _ = link.send((NO_CONNECTION, vec![LinkInput::LocationLookedUp(id)]));
            }
        });
        Ok(())
    }

    /// Queries the HLR for the location of an MO's sender; [`LinkInput::SenderLookedUp`] follows. Returns the request
    /// if the HLR cannot be queried.
    pub(crate) fn find_sender(
        &self,
        conn: ConnId,
        request: gsup::GsupMessage,
    ) -> Result<(), gsup::GsupMessage> {
        let Some(answer) = self.hlr_lookup.query(request.imsi.into()) else { return Err(request) };
        let link = self.link.clone();
        tokio::spawn(async move {
            let answer = answer.await.unwrap_or(Err(HlrFailure::Unreachable));
            if let Some(link) = link.upgrade() {
                let _ = link.send((conn, vec![LinkInput::SenderLookedUp(request, answer)]));
            }
        });
        Ok(())
    }

    /// Takes the message of a finished lookup.
    pub(crate) fn take(&mut self, id: MessageId) -> Option<UnsentMessage> {
        self.pending.remove(&id)
    }

    /// Takes the messages of all pending lookups, oldest first.
    pub(crate) fn take_pending(&mut self) -> Vec<MessageId> {
        let mut ids: Vec<_> = self.pending.drain().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// Records a subscriber whose MSC was disconnected when a message arrived.
    pub(crate) fn note_missed(&mut self, msc: Arc<str>, imsi: GsupImsi) {
        self.missed.entry(msc).or_default().insert(imsi);
    }

    /// Takes the subscribers recorded for an MSC that has reconnected.
    pub(crate) fn take_missed(&mut self, msc: &str) -> Vec<GsupImsi> {
        self.missed.remove(msc).into_iter().flatten().collect()
    }
}
