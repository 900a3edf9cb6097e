//! Quality figures of peers for the API, and conversions that integrators report.

use crate::archived_message::archived_message;
use crate::arguments::parse_id;
use crate::problems::shutting_down_problem;
use crate::records::RecordService;
use admin::{Problem, ProblemKind};
use api::{ConversionsResult, PeerFiguresView, RefusedAttempts};
use capabilities::PeerFigures;
use model::{
    AccountScope, Direction, FinalState, Message, MessageId, ObservationKind, PeerId, PeerObservation,
    Timestamp,
};
use std::sync::Arc;
use store::StoredMessage;

/// A message and the peer that accepted it.
struct AcceptedByPeer {
    peer: PeerId,
    origin: Arc<str>,
    message: Arc<Message>,
}

/// Whether a peer accepted a finished message. Not every protocol has message ids.
fn was_accepted(state: FinalState, has_peer_id: bool) -> bool {
    has_peer_id || matches!(state, FinalState::Delivered | FinalState::Relayed)
}

impl RecordService {
    /// Finds a message that a peer has accepted, in memory, store or archive.
    fn accepted_by_peer(&self, id: MessageId) -> Result<Option<AcceptedByPeer>, Problem> {
        let internal = |error: store::StoreError| Problem::new(ProblemKind::Internal, error.to_string());
        let (message, peer) = match self.store.find(id).map_err(internal)? {
            Some(StoredMessage::Waiting(message, _)) => {
                let live = self.core.query(move |engine, _| engine.message(id));
                let status = live.ok_or_else(shutting_down_problem)?;
                let awaits_dlr =
                    |status: &engine::MessageStatus| status.state == engine::MessageState::AwaitingDlr;
                (message, status.filter(awaits_dlr).map(|status| status.peer))
            }
            Some(StoredMessage::Finished(message, ended)) => {
                let peer = ended.peer.filter(|_| was_accepted(ended.state, !ended.peer_id.0.is_empty()));
                (message, peer)
            }
            None => return self.archived_by_peer(id),
        };
        let origin = self.directory.load().name(message.origin);
        Ok(peer.map(|peer| AcceptedByPeer { peer, origin, message: message.into() }))
    }

    fn archived_by_peer(&self, id: MessageId) -> Result<Option<AcceptedByPeer>, Problem> {
        let Some(history) = &self.history else { return Ok(None) };
        let unavailable =
            |error: archive::ArchiveError| Problem::new(ProblemKind::Unavailable, error.to_string());
        let Some(record) = history.get(id).map_err(unavailable)? else { return Ok(None) };
        if !was_accepted(record.state, record.peer_message_id.is_some()) {
            return Ok(None);
        }
        let (origin, peer) = match record.direction {
            Direction::Mt => (&record.account, &record.peer),
            Direction::Mo => (&record.peer, &record.account),
        };
        let names = self.directory.load();
        // The name may no longer be in the configuration.
        let (Some(peer), Some(origin_id)) = (names.id(peer), names.id(origin)) else { return Ok(None) };
        let (mut message, _) = archived_message(&record, origin_id);
        message.routed.changes = record.decoded_trace().and_then(|trace| trace.changes).map(Box::new);
        Ok(Some(AcceptedByPeer { peer, origin: names.name(origin_id), message: message.into() }))
    }
}

fn view(figures: &PeerFigures) -> PeerFiguresView {
    PeerFiguresView {
        window_ms: u64::try_from(capabilities::DEFAULT_QUALITY_WINDOW.as_millis()).unwrap_or(u64::MAX),
        accepted: figures.accepted,
        refused: RefusedAttempts {
            temporary: figures.temporary,
            permanent: figures.permanent,
            absent: figures.absent,
            memory_full: figures.memory_full,
            throttled: figures.throttled,
        },
        unanswered: figures.unanswered,
        delivered: figures.delivered,
        failed: figures.failed,
        conversions: figures.conversions,
        median_ms: figures.median,
        percentile95_ms: figures.percentile95,
    }
}

impl RecordService {
    /// Recent quality figures of a peer.
    pub(crate) fn figures_of_peer(&self, name: &str) -> Result<PeerFiguresView, Problem> {
        if self.directory.load().id(name).is_none() {
            return Err(Problem::new(ProblemKind::NotFound, format!("there is no peer {name:?}")));
        }
        Ok(view(&self.quality.of_peer(name, Timestamp::now())))
    }

    /// Records the first report for each message. With `account`, messages of other accounts are reported as unknown;
    /// so are messages outside the scope.
    pub(crate) fn record_conversions(
        &self,
        ids: &[String],
        account: Option<&str>,
        scope: &AccountScope,
    ) -> Result<ConversionsResult, Problem> {
        let mut result = ConversionsResult::default();
        for text in ids {
            let id = parse_id(text).ok();
            let found = id.map(|id| self.accepted_by_peer(id)).transpose()?.flatten();
            let found = found.filter(|found| scope.has_account(&found.origin));
            let found = found.filter(|found| account.is_none_or(|account| *account == *found.origin));
            let (Some(id), Some(found)) = (id, found) else {
                result.unknown.push(text.clone());
                continue;
            };
            let now = Timestamp::now();
            if !self.conversions.insert(id, now) {
                result.repeated += 1;
                continue;
            }
            result.recorded += 1;
            let AcceptedByPeer { peer, message, .. } = found;
            let kind = ObservationKind::Converted;
            self.peer_observer.record(&[PeerObservation {
                peer,
                origin: message.origin,
                at: now,
                message: Some(message),
                kind,
            }]);
        }
        Ok(result)
    }
}
