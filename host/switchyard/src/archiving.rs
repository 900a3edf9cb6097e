//! Between the store and the archive: what the pump takes out, and what is asked of it afterwards.

use crate::core_loop::{self, CoreHandle};
use crate::traces::archived_message;
use arc_swap::ArcSwap;
use archive::{Archive, BoxError, Cursor, DecodedTrace, Filter, Parties, Record, Source, Wanted};
use doors::Hub;
use engine::{Answer, Event, QueriedState};
use model::{
    Address, Directory, Final, FinalState, Message, MessageId, PeerId, ReceiptRequest, ReceiptState,
    SUBMISSION_IDS, Text,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{FinishedPage, Store};
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

    /// What query_sm is told of an archived message of `origin`'s; of the archived messages of a submission to several
    /// destinations, each by its own id. `shared` says that `id` is known to be that of such a submission.
    pub(crate) async fn states(
        &self,
        origin: PeerId,
        (id, shared): (MessageId, bool),
        source: Option<&Address>,
    ) -> Result<BTreeMap<MessageId, QueriedState>, archive::ArchiveError> {
        let found = self.archive.get(id).await?;
        let shared = shared || found.as_ref().is_some_and(|record| record.submission() == Some(id));
        let records = if shared {
            // The messages have ids from the submission's on; newest first.
            let end = Cursor::before(MessageId(id.0.saturating_add(SUBMISSION_IDS)));
            let most = usize::try_from(SUBMISSION_IDS).unwrap_or(usize::MAX);
            let wanted = Wanted { body: false, trace: true };
            let mut page = self.archive.page(&Filter::default(), Some(end), most, wanted).await?;
            page.records.retain(|record| record.submission() == Some(id));
            page.records
        } else {
            found.into_iter().collect()
        };
        let account = self.directory.load().name(origin);
        let is_asked_for = |record: &Record| {
            let same_source = source.is_none_or(|source| {
                Record::octets(&record.source).is_some_and(|octets| octets == source.value.as_slice())
            });
            *account == *record.account && same_source
        };
        let states = records.iter().filter(|record| is_asked_for(record)).map(|record| {
            let state = QueriedState {
                id: record.id,
                state: receipt_state(record.state),
                final_at: Some(record.ended_at),
                error: u8::try_from(record.error).unwrap_or(u8::MAX),
            };
            (record.id, state)
        });
        Ok(states.collect())
    }

    /// Archived messages with ids below `before` that asked for a DLR, newest first, as far as their DLRs need them.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub(crate) fn reported_before(
        &self,
        filter: &Filter,
        before: MessageId,
    ) -> Result<FinishedPage, archive::ArchiveError> {
        let wanted = Wanted { body: false, trace: true };
        let page = self.archive.page(filter, Some(Cursor::before(before)), 500, wanted);
        let page = self.runtime.block_on(page)?;
        let messages = page.records.iter().filter_map(|record| self.message(record)).collect();
        Ok(FinishedPage { messages, lowest: page.next.map(Cursor::id) })
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
        let tlvs = submission["tlvs"].as_str().and_then(hexadecimal).unwrap_or_default();
        let (message, ended) = archived_message(record, origin, &DecodedTrace::default());
        Some((Message { receipts, tlvs: tlvs.into(), text: Text::default(), ..message }, ended))
    }
}

/// The octets that hexadecimal digits, two an octet, stand for; `None` where they are no such digits.
pub(crate) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
