//! Between the store and the archive: what the pump takes out, and what is asked of it afterwards.

use crate::core_loop::{self, CoreHandle};
use arc_swap::ArcSwap;
use archive::{Archive, BoxError, Filter, Parties, Record, Source, Wanted};
use doors::Hub;
use engine::{Answer, Event, QueriedState};
use model::{
    Address, DecidedBy, Directory, Final, FinalState, Kind, Message, MessageId, PeerId, PeerMessageId,
    Priority, ReceiptRequest, ReceiptState, RejectReason, Routed, Text, Timestamp, Verdict,
};
use std::sync::Arc;
use store::Store;
use tokio::runtime::Handle;

/// The store as the pump sees it. Finished messages leave by an event, as everything changes by one.
pub(crate) struct Finished {
    pub(crate) core: CoreHandle,
    pub(crate) hub: Arc<Hub>,
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) parties: Arc<ArcSwap<crate::routing::Parties>>,
}

impl Parties for Finished {
    fn name(&self, id: PeerId) -> Arc<str> {
        self.directory.load().name(id)
    }

    fn is_account(&self, id: PeerId) -> bool {
        self.parties.load().is_account(id)
    }
}

impl Source for Finished {
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<(Message, Final)>, BoxError> {
        Ok(self.store.finished_after(after, most)?)
    }

    fn removed(&self, ids: Vec<MessageId>) -> Result<(), BoxError> {
        match core_loop::ask(&self.core, &self.hub, |reply| Event::Archived { ids, reply }) {
            Some(Answer::Done) => Ok(()),
            _ => Err("the core has ended".into()),
        }
    }

    fn backlog(&self) -> u64 {
        self.store.counts().map_or(0, |(_, finished)| finished)
    }
}

/// The archive, for threads that may wait.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) archive: Archive,
    pub(crate) runtime: Handle,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
}

/// The state that a finished message is told in.
pub(crate) fn receipt_state(state: FinalState) -> ReceiptState {
    match state {
        FinalState::Delivered => ReceiptState::Delivered,
        FinalState::Relayed => ReceiptState::Accepted,
        FinalState::Failed => ReceiptState::Undeliverable,
        FinalState::Expired => ReceiptState::Expired,
        FinalState::Cancelled => ReceiptState::Deleted,
        FinalState::Rejected => ReceiptState::Rejected,
        FinalState::Unknown => ReceiptState::Unknown,
    }
}

impl History {
    /// One archived message, with its trace.
    pub(crate) fn get(&self, id: MessageId) -> Result<Option<Record>, archive::ArchiveError> {
        self.runtime.block_on(self.archive.get(id))
    }

    /// What query_sm is told of an archived message of `origin`'s.
    pub(crate) async fn state(
        &self,
        origin: PeerId,
        id: MessageId,
        source: Option<&Address>,
    ) -> Result<Option<QueriedState>, archive::ArchiveError> {
        let Some(record) = self.archive.get(id).await? else { return Ok(None) };
        let is_its = *self.directory.load().name(origin) == *record.account;
        let same_source = source.is_none_or(|source| {
            Record::octets(&record.source).is_some_and(|octets| octets == source.value.as_slice())
        });
        Ok((is_its && same_source).then(|| QueriedState {
            id,
            state: receipt_state(record.state),
            final_at: Some(record.ended_at),
            error: u8::try_from(record.error).unwrap_or(u8::MAX),
        }))
    }

    /// The archived messages of an account and a time range that asked for a receipt, a page at a time, as far as their
    /// receipts need them.
    pub(crate) fn reported(
        &self,
        filter: &Filter,
        mut each: impl FnMut(Message, Final) -> bool,
    ) -> Result<(), archive::ArchiveError> {
        let mut cursor = None;
        loop {
            let wanted = Wanted { body: false, trace: true };
            let page = self.runtime.block_on(self.archive.page(filter, cursor, 500, wanted))?;
            for record in &page.records {
                if let Some((message, ended)) = self.message(record)
                    && !each(message, ended)
                {
                    return Ok(());
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// A message as its receipt needs it; `None` where none was asked for or its account is gone.
    fn message(&self, record: &Record) -> Option<(Message, Final)> {
        let origin = self.directory.load().id(&record.account)?;
        let trace: serde_json::Value = serde_json::from_str(record.trace.as_ref()?.get()).ok()?;
        let submission = &trace["submission"];
        let bits = submission["receipts"].as_u64().and_then(|bits| u8::try_from(bits).ok()).unwrap_or(0);
        let receipts = ReceiptRequest::from_bits(bits);
        let good = matches!(record.state, FinalState::Delivered | FinalState::Relayed);
        if !(if good { receipts.on_success } else { receipts.on_failure }) {
            return None;
        }
        let address = |ton, npi, text: &str| {
            Address::new(ton, npi, &Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec()))
        };
        let tlvs = submission["tlvs"].as_str().and_then(hexadecimal).unwrap_or_default();
        let message = Message {
            id: record.id,
            kind: Kind::Text,
            origin,
            source: address(record.source_ton, record.source_npi, &record.source),
            destination: address(record.destination_ton, record.destination_npi, &record.destination),
            service_type: bytes::Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::new(record.priority),
            receipts,
            replace_if_present: false,
            text: Text::default(),
            tlvs: tlvs.into(),
            accepted_at: record.accepted_at,
            scheduled: None,
            expires_at: Timestamp(0),
            routed: Routed {
                verdict: Verdict::Reject(RejectReason::NoRoute),
                by: Arc::new(DecidedBy {
                    plugin: record.router.clone(),
                    version: record.router_version.clone(),
                }),
                note: None,
                sender: None,
                quote: None,
                seen: None,
                faulted: None,
            },
        };
        let ended = Final {
            state: record.state,
            at: record.ended_at,
            error: record.error,
            peer: None,
            peer_id: PeerMessageId::default(),
            steps: Vec::new(),
        };
        Some((message, ended))
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
