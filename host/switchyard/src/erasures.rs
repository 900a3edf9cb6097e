//! Erasures in store and archive, for the admin API.

use crate::archiving::ArchiveReader;
use crate::arguments::parse_id;
use crate::core_handle::{self, CoreHandle};
use crate::problems::shutting_down_problem;
use admin::{Problem, ProblemKind};
use engine::{EngineAnswer, Event};
use model::{ContentErasure, Message, MessageId, Timestamp};
use ports::LinkRegistry;
use std::sync::Arc;
use store::{Store, StoredMessage};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Erases contents of messages.
pub(crate) struct ErasureService {
    pub(crate) core: CoreHandle,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) store: Arc<Store>,
    /// `None`: there is no archive.
    pub(crate) history: Option<ArchiveReader>,
}

impl ErasureService {
    /// Erases contents of finished messages in the store; the journal has it when this returns.
    fn erase_in_store(&self, erasures: Vec<ContentErasure>) -> Result<(), Problem> {
        let event = |reply| Event::EraseContent { erasures, reply };
        match core_handle::request(&self.core, &self.registry, event) {
            Some(EngineAnswer::Done) => Ok(()),
            _ => Err(shutting_down_problem()),
        }
    }
}

/// The refusal to erase the content of a message that has not ended.
fn not_ended(message: &Message) -> Problem {
    let expires = i64::try_from(message.expires_at.0 / 1000).ok();
    let expires = expires.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok()?.format(&Rfc3339).ok());
    let until = expires.map_or(String::new(), |at| format!("; its validity ends at {at}"));
    let detail = format!(
        "message {} has not ended, and its text is needed until then{until}: cancel it, or erase its content when it has ended",
        message.id
    );
    Problem::new(ProblemKind::Conflict, detail)
}

impl admin::Erasures for ErasureService {
    fn erase_content(&self, id: &str, by: &str) -> Result<api::ContentErasureView, Problem> {
        let id: MessageId = parse_id(id)?;
        let erasure = ContentErasure { id, at: Timestamp::now(), by: by.into() };
        let found = self.store.find(id);
        let found = found.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        // The store before the archive: the pump then reads the message without its content, or is told.
        let mut erased_at = match found {
            Some(StoredMessage::Waiting(message, _)) => return Err(not_ended(&message)),
            Some(StoredMessage::Finished(_, ended)) => {
                self.erase_in_store(vec![erasure.clone()])?;
                Some(ended.content_erased_at().unwrap_or(erasure.at))
            }
            None => None,
        };
        if let Some(history) = &self.history {
            let erased = history.runtime.block_on(history.archive.erase_content(vec![erasure]));
            let record = erased.and_then(|_| history.get(id)).map_err(|error| {
                let detail = format!("{error}; repeat the request, so that no row keeps the content");
                Problem::new(ProblemKind::Unavailable, detail)
            })?;
            erased_at = record.and_then(|record| record.content_erased_at).or(erased_at);
        }
        let erased_at = erased_at.ok_or_else(|| {
            let detail = format!("message {id} was never accepted, or was deleted after its retention");
            Problem::new(ProblemKind::NotFound, detail)
        })?;
        tracing::info!(id = id.0, by, "content of a message erased by admin");
        Ok(api::ContentErasureView { id: id.to_string(), content_erased_at: erased_at.0 })
    }
}
