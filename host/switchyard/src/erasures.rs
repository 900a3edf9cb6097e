//! Erasures in store and archive, for the admin API.

use crate::archiving::ArchiveReader;
use crate::arguments::parse_id;
use crate::core_handle::{self, CoreHandle};
use crate::event_sinks::EventSinkService;
use crate::problems::shutting_down_problem;
use admin::{Problem, ProblemKind};
use arc_swap::ArcSwap;
use engine::{EngineAnswer, Event};
use model::{
    AccountScope, Address, ContentErasure, Direction, Directory, Message, MessageId, NumberDisplay, Timestamp,
};
use ports::LinkRegistry;
use std::sync::Arc;
use store::{ScanStep, Store, StoredMessage};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Erases contents of messages.
pub(crate) struct ErasureService {
    pub(crate) core: CoreHandle,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) store: Arc<Store>,
    /// `None`: there is no archive.
    pub(crate) history: Option<ArchiveReader>,
    pub(crate) event_sinks: Arc<EventSinkService>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
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

impl ErasureService {
    /// Name of the account that submitted a message; `None` if no account did, or the message is unknown.
    fn submitter_of(&self, id: MessageId) -> Result<Option<String>, Problem> {
        let found = self.store.find(id);
        let found = found.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        if let Some(found) = found {
            return Ok(Some(self.directory.load().name(found.message().origin).to_string()));
        }
        let Some(history) = &self.history else { return Ok(None) };
        let record = history.get(id);
        let record = record.map_err(|error| Problem::new(ProblemKind::Unavailable, error.to_string()))?;
        let submitted = record.filter(|record| record.direction == Direction::Mt);
        Ok(submitted.map(|record| record.account))
    }
}

/// Maximum number of store records per scan step.
const SCAN_STEP: usize = 20_000;

/// Messages of a number in the store.
#[derive(Default)]
struct NumberInStore {
    in_flight: u64,
    finished: u64,
    /// Number of finished messages whose content was erased now.
    erased: u64,
}

impl ErasureService {
    /// Erases the contents of a number's finished messages in the store, and counts its messages.
    fn erase_number_in_store(
        &self,
        digits: &str,
        at: Timestamp,
        by: &Arc<str>,
    ) -> Result<NumberInStore, Problem> {
        let is_it = |address: &Address| address.text().trim_start_matches('+') == digits;
        let mut found = NumberInStore::default();
        let mut before = MessageId(i64::MAX.unsigned_abs());
        loop {
            let scan = self.store.scan_backwards(before, SCAN_STEP, 1_000, |_, summary| {
                if is_it(&summary.source) || is_it(&summary.destination) {
                    ScanStep::Take
                } else {
                    ScanStep::Skip
                }
            });
            let scan = scan.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
            let mut erasures = Vec::new();
            for stored in scan.found {
                match stored {
                    StoredMessage::Waiting(..) => found.in_flight += 1,
                    StoredMessage::Finished(message, ended) => {
                        found.finished += 1;
                        if ended.content_erased_at().is_none() {
                            erasures.push(ContentErasure { id: message.id, at, by: by.clone() });
                        }
                    }
                }
            }
            if !erasures.is_empty() {
                found.erased += erasures.len() as u64;
                self.erase_in_store(erasures)?;
            }
            match scan.edge {
                Some(edge) => before = edge,
                None => return Ok(found),
            }
        }
    }

    /// Descriptions of places that may still contain a number after its erasure in store and archive.
    fn not_reached(&self) -> Vec<String> {
        let sinks = admin::EventSinkStates::event_sinks(&*self.event_sinks);
        let mut places = vec![
            "journal: its records are overwritten after journal-retention of [engine]".to_owned(),
            "backups that were taken earlier".to_owned(),
            "the audit log, where the number is the subject of an admin's operation".to_owned(),
        ];
        places.extend(sinks.iter().map(|sink| match sink.kind.as_str() {
            "cdr" => format!("CDR files of {}", sink.name),
            _ => format!("events that were sent to event sink {}", sink.name),
        }));
        places
    }
}

/// The refusal to erase the content of an unfinished message.
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
    fn erase_content(
        &self,
        id: &str,
        by: &str,
        scope: &AccountScope,
    ) -> Result<api::ContentErasureView, Problem> {
        let id: MessageId = parse_id(id)?;
        let missing = || {
            let detail = format!("message {id} was never accepted, or was deleted after its retention");
            Problem::new(ProblemKind::NotFound, detail)
        };
        if *scope != AccountScope::Everything
            && !self.submitter_of(id)?.is_some_and(|account| scope.has_account(&account))
        {
            return Err(missing());
        }
        let erasure = ContentErasure { id, at: Timestamp::now(), by: by.into() };
        let found = self.store.find(id);
        let found = found.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        // The store before the archive: then the pump either reads the message without its content, or is notified.
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
        let erased_at = erased_at.ok_or_else(missing)?;
        tracing::info!(id = id.0, by, "content of a message erased by admin");
        Ok(api::ContentErasureView { id: id.to_string(), content_erased_at: erased_at.0 })
    }

    fn erase_number(&self, number: &str, by: &str) -> Result<api::NumberErasureView, Problem> {
        let digits = number.strip_prefix('+').unwrap_or(number);
        if !(5..=20).contains(&digits.len()) || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
            let detail = "number: must be 5 to 20 digits, with or without a plus sign";
            return Err(Problem::new(ProblemKind::BadRequest, detail));
        }
        let mut octets = [0; 8];
        getrandom::fill(&mut octets)
            .map_err(|error| Problem::new(ProblemKind::Internal, format!("no random numbers: {error}")))?;
        let (id, at, by): (_, _, Arc<str>) = (model::hex(&octets), Timestamp::now(), by.into());
        // The store before the archive: a message that is archived in the meantime is found there.
        let stored = self.erase_number_in_store(digits, at, &by)?;
        let archived = match &self.history {
            Some(history) => {
                let erased = history.runtime.block_on(history.archive.erase_number(digits, at, &by));
                erased.map_err(|error| {
                    let detail = format!("{error}; repeat the request: it continues");
                    Problem::new(ProblemKind::Unavailable, detail)
                })?
            }
            None => archive::NumberErasure { is_complete: true, ..Default::default() },
        };
        let wanted = digits.to_owned();
        let opt_outs = self.core.query(move |engine, _| {
            let all = engine.opt_outs(usize::MAX);
            let is_it = |octets: &[u8]| octets.strip_prefix(b"+").unwrap_or(octets) == wanted.as_bytes();
            all.iter().filter(|one| is_it(&one.subscriber) || is_it(&one.sender)).count()
        });
        let opt_outs = opt_outs.ok_or_else(shutting_down_problem)?;
        tracing::info!(
            id,
            by = &*by,
            rows = archived.rows,
            in_flight = stored.in_flight,
            "number erased by admin"
        );
        Ok(api::NumberErasureView {
            id,
            at: at.0,
            number: NumberDisplay::Masked.text(number),
            rows: archived.rows,
            contents: archived.contents + stored.erased,
            in_flight: stored.in_flight,
            awaiting_archive: stored.finished,
            opt_outs_kept: opt_outs as u64,
            complete: archived.is_complete && stored.in_flight == 0 && stored.finished == 0,
            not_reached: self.not_reached(),
        })
    }
}
