//! Connects store and archive: the source of the pump, and queries of the archive.

use crate::archived_message::archived_message;
use crate::core_handle::{self, CoreHandle};
use arc_swap::ArcSwap;
use archive::{
    Archive, ArchiveFilter, DecodedTrace, FinishedSource, PeerDirectory, Record, RecordFields, SourceError,
};
use engine::{EngineAnswer, Event, QueriedState};
use model::{
    Address, Directory, DlrState, FinalRecord, FinalState, Message, MessageId, PeerId, SUBMISSION_IDS, Text,
};
use ports::LinkRegistry;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{FinishedPage, Store};
use tokio::runtime::Handle;

/// The store as the source of the pump. Messages are removed by an engine event, like every other change.
pub(crate) struct FinishedMessages {
    pub(crate) core: CoreHandle,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) peer_roles: Arc<ArcSwap<crate::peer_roles::PeerRoles>>,
}

impl PeerDirectory for FinishedMessages {
    fn name(&self, id: PeerId) -> Arc<str> {
        self.directory.load().name(id)
    }

    fn is_account(&self, id: PeerId) -> bool {
        self.peer_roles.load().is_account(id)
    }
}

impl FinishedSource for FinishedMessages {
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<(Message, FinalRecord)>, SourceError> {
        Ok(self.store.finished_after(after, most)?)
    }

    fn remove(&self, ids: Vec<MessageId>) -> Result<(), SourceError> {
        match core_handle::request(&self.core, &self.registry, |reply| Event::Archived { ids, reply }) {
            Some(EngineAnswer::Done) => Ok(()),
            _ => Err("the core has ended".into()),
        }
    }

    fn backlog(&self) -> u64 {
        self.store.counts().map_or(0, |(_, finished)| finished)
    }
}

/// The archive for blocking threads.
#[derive(Clone)]
pub(crate) struct ArchiveReader {
    pub(crate) archive: Archive,
    pub(crate) runtime: Handle,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
}

/// The DLR state of a final state.
pub(crate) fn dlr_state_of(state: FinalState) -> DlrState {
    match state {
        FinalState::Delivered => DlrState::Delivered,
        FinalState::Relayed => DlrState::Accepted,
        FinalState::Failed => DlrState::Undeliverable,
        FinalState::Expired => DlrState::Expired,
        FinalState::Cancelled => DlrState::Deleted,
        FinalState::Rejected => DlrState::Rejected,
        FinalState::Unknown => DlrState::Unknown,
    }
}

impl ArchiveReader {
    /// One archived message, with its trace.
    pub(crate) fn get(&self, id: MessageId) -> Result<Option<Record>, archive::ArchiveError> {
        self.runtime.block_on(self.archive.get(id))
    }

    /// The states that query_sm returns for an archived message of `origin`, or for the archived messages of a
    /// submission with several destinations, by their ids. `shared` is set if `id` is known to be the id of such a
    /// submission.
    pub(crate) async fn states(
        &self,
        origin: PeerId,
        (id, shared): (MessageId, bool),
        source: Option<&Address>,
    ) -> Result<BTreeMap<MessageId, QueriedState>, archive::ArchiveError> {
        let found = self.archive.get(id).await?;
        let shared = shared || found.as_ref().is_some_and(|record| record.submission() == Some(id));
        let records = if shared {
            // The ids of a submission's messages begin with the submission's id; newest first.
            let end = MessageId(id.0.saturating_add(SUBMISSION_IDS));
            let most = usize::try_from(SUBMISSION_IDS).unwrap_or(usize::MAX);
            let fields = RecordFields { body: false, trace: true };
            let mut page = self.archive.page(&ArchiveFilter::default(), Some(end), most, fields).await?;
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
                state: dlr_state_of(record.state),
                final_at: Some(record.ended_at),
                error: u8::try_from(record.error).unwrap_or(u8::MAX),
            };
            (record.id, state)
        });
        Ok(states.collect())
    }

    /// Archived messages with ids below `before` for which a DLR was requested, newest first, with the fields that a
    /// DLR needs.
    ///
    /// # Errors
    /// Fails if the archive cannot be read.
    pub(crate) fn dlr_page_before(
        &self,
        filter: &ArchiveFilter,
        before: MessageId,
    ) -> Result<FinishedPage, archive::ArchiveError> {
        let fields = RecordFields { body: false, trace: true };
        let page = self.archive.page(filter, Some(before), 500, fields);
        let page = self.runtime.block_on(page)?;
        let messages = page.records.iter().filter_map(|record| self.message(record)).collect();
        Ok(FinishedPage { messages, lowest: page.next })
    }

    /// A message with the fields that a DLR needs; `None` if no DLR was requested or the account does not exist any
    /// more.
    fn message(&self, record: &Record) -> Option<(Message, FinalRecord)> {
        let origin = self.directory.load().id(&record.account)?;
        let DecodedTrace { dlr_request, tlvs, protocol_fields, .. } = record.decoded_trace()?;
        let good = matches!(record.state, FinalState::Delivered | FinalState::Relayed);
        if !(if good { dlr_request.on_success } else { dlr_request.on_failure }) {
            return None;
        }
        let (message, ended) = archived_message(record, origin);
        let (tlvs, protocol_fields) = (tlvs.into(), protocol_fields.into());
        Some((Message { dlr_request, tlvs, protocol_fields, text: Text::default(), ..message }, ended))
    }
}
