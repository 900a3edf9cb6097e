//! Reads messages from the store and the archive as one list.

use crate::number::display_number;
use crate::segments::{self, MAX_SEGMENT_SPREAD};
use crate::wire::{
    ShellDirection, ShellFault, ShellFaultKind, ShellMessage, ShellPage, ShellSegment, ShellSegments,
};
use crate::{MailboxIndex, SubscriberNumber};
use model::{Address, FinalRecord, FinalState, MessageId, Segment, Text, Timestamp};
use ports::text;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Store, StoreError, StoredMessage};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A message from the store or the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellRecord {
    /// The message id.
    pub id: MessageId,
    /// The sender.
    pub source: Address,
    /// The recipient.
    pub destination: Address,
    /// The content.
    pub text: Text,
    /// The segment of a concatenated message.
    pub segment: Option<Segment>,
    /// Time of acceptance.
    pub accepted_at: Timestamp,
    /// The final state, if the message is finished.
    pub end: Option<ShellRecordEnd>,
}

/// The final state of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellRecordEnd {
    /// The state.
    pub state: FinalState,
    /// Time of the state.
    pub at: Timestamp,
    /// The error code, or 0.
    pub error: u32,
    /// The meaning of the error code, if known.
    pub cause: Option<String>,
}

/// A query to the archive.
#[derive(Debug, Clone)]
pub struct ShellArchiveQuery {
    /// Only messages of this number, with or without a plus sign; all if `None`.
    pub number: Option<SubscriberNumber>,
    /// Only messages to the number.
    pub inbox: bool,
    /// Only older messages.
    pub before: MessageId,
    /// Only messages accepted in this period.
    pub accepted: Option<Range<Timestamp>>,
    /// Maximum number of messages.
    pub limit: usize,
}

/// A page of archived messages, newest first.
#[derive(Debug, Default)]
pub struct ShellArchivePage {
    /// The messages.
    pub messages: Vec<ShellRecord>,
    /// The id to continue from, if there may be more.
    pub next: Option<MessageId>,
}

/// Access to message states and the archive. The methods may block; call them on threads that may wait.
pub trait ShellRecordSource: Send + Sync {
    /// The states of unfinished messages; `None` for messages that finish at the moment.
    fn current_states(&self, ids: Vec<MessageId>) -> Vec<Option<&'static str>>;

    /// The meaning of a finished message's error code, if it has one and it is known.
    fn describe_error(&self, end: &FinalRecord) -> Option<String>;

    /// Searches archived messages; empty without an archive.
    ///
    /// # Errors
    /// A description, if the archive cannot be read.
    fn search_archive(&self, query: ShellArchiveQuery) -> Result<ShellArchivePage, String>;
}

/// The viewer of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Viewer {
    /// A subscriber: own messages, with text.
    Subscriber(SubscriberNumber),
    /// An operator: all messages, without text.
    Operator,
}

/// Reads and joins messages of the store and the archive.
pub(crate) struct RecordReader {
    pub(crate) store: Arc<Store>,
    pub(crate) mailbox_index: Arc<MailboxIndex>,
    pub(crate) records: Arc<dyn ShellRecordSource>,
}

/// Maximum and default number of messages in a list.
pub(crate) const MAX_LIMIT: usize = 500;
pub(crate) const DEFAULT_LIMIT: usize = 20;
/// Number of older and of newer messages in the store that are searched for other segments of a text.
const SEGMENT_SEARCH_RADIUS: usize = 500;
/// Time after which a list ends early.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Note that segments may be missing.
const SEGMENTS_INCOMPLETE: &str =
    "segments of long texts may be missing, because the search took too long; request fewer messages";

/// A list query.
#[derive(Debug, Clone)]
pub(crate) struct ListQuery {
    /// Only messages of this number; `None` for all, operators only.
    pub(crate) number: Option<SubscriberNumber>,
    /// Only messages to the number.
    pub(crate) inbox: bool,
    pub(crate) before: MessageId,
    pub(crate) limit: usize,
}

impl ListQuery {
    fn fits(&self, record: &ShellRecord) -> bool {
        self.number.as_ref().is_none_or(|number| {
            number.matches(&record.destination) || !self.inbox && number.matches(&record.source)
        })
    }
}

pub(crate) fn internal(error: &StoreError) -> ShellFault {
    tracing::error!(%error, "store cannot be read");
    ShellFault::new(ShellFaultKind::Internal, "the appliance cannot read its store; see its log")
}

/// A page of single messages from store and archive, newest first.
struct RawPage {
    messages: Vec<ShellRecord>,
    next: Option<MessageId>,
    incomplete: Option<String>,
}

impl RecordReader {
    /// Reads a page of a list. May block.
    pub(crate) fn page(&self, view: &Viewer, query: &ListQuery) -> Result<ShellPage, ShellFault> {
        let Viewer::Subscriber(number) = view else {
            let RawPage { messages, next, incomplete } = self.raw_page(query)?;
            let texts = messages.into_iter().map(|record| vec![record]).collect();
            return Ok(ShellPage {
                messages: self.message_views(view, texts),
                next: next.map(|id| id.to_string()),
                incomplete,
            });
        };
        // A text is listed at its oldest segment, whose id it has.
        let mut texts: BTreeMap<MessageId, Vec<ShellRecord>> = BTreeMap::new();
        let mut seen: BTreeSet<MessageId> = BTreeSet::new();
        let (started, mut page_query, mut incomplete) = (Instant::now(), query.clone(), None);
        let oldest_searched = loop {
            let raw_page = self.raw_page(&page_query)?;
            incomplete = incomplete.or(raw_page.incomplete);
            for record in &raw_page.messages {
                if seen.contains(&record.id) {
                    continue;
                }
                let text = if started.elapsed() > LIST_TIMEOUT {
                    incomplete.get_or_insert_with(|| SEGMENTS_INCOMPLETE.to_owned());
                    segments::text_in_page(record, &raw_page.messages)
                } else {
                    self.complete_text(number, record, &raw_page.messages, &mut incomplete)?
                };
                seen.extend(text.iter().map(|record| record.id));
                if let Some(first) = text.first().map(|first| first.id).filter(|first| *first < query.before)
                {
                    texts.insert(first, text);
                }
            }
            let Some(oldest_searched) = raw_page.next else { break None };
            if texts.range(oldest_searched..).nth(query.limit - 1).is_some()
                || started.elapsed() > LIST_TIMEOUT
            {
                break Some(oldest_searched);
            }
            page_query.before = oldest_searched;
        };
        if let Some(oldest_searched) = oldest_searched {
            // A text whose oldest segment was not searched belongs to a later page.
            texts = texts.split_off(&oldest_searched);
        }
        let more = texts.len() > query.limit;
        let texts: Vec<(MessageId, Vec<ShellRecord>)> = texts.into_iter().rev().take(query.limit).collect();
        let next = if more { texts.last().map(|(first, _)| *first) } else { oldest_searched };
        let texts = texts.into_iter().map(|(_, text)| text).collect();
        Ok(ShellPage {
            messages: self.message_views(view, texts),
            next: next.map(|id| id.to_string()),
            incomplete,
        })
    }

    /// Reads a page without joining segments.
    fn raw_page(&self, query: &ListQuery) -> Result<RawPage, ShellFault> {
        let wanted_count = query.limit + 1;
        // Read the store first: a message that leaves the store in the meantime is in the archive already.
        let mut all: BTreeMap<MessageId, ShellRecord> = BTreeMap::new();
        for record in self.load_from_store(query, wanted_count)? {
            all.insert(record.id, record);
        }
        let (started, mut before, mut incomplete, mut oldest_searched) =
            (Instant::now(), query.before, None, None);
        let mut archived = 0;
        while archived < wanted_count {
            let archive_query = ShellArchiveQuery {
                number: query.number.clone(),
                inbox: query.inbox,
                before,
                accepted: None,
                limit: wanted_count - archived,
            };
            let archive_page = match self.records.search_archive(archive_query) {
                Ok(archive_page) => archive_page,
                Err(reason) => {
                    incomplete = Some(archive_unreadable(&reason));
                    break;
                }
            };
            for record in archive_page.messages {
                if query.fits(&record) && record.id < query.before {
                    archived += 1;
                    all.entry(record.id).or_insert(record);
                }
            }
            let Some(next) = archive_page.next else { break };
            before = next;
            if started.elapsed() > LIST_TIMEOUT {
                oldest_searched = Some(next);
                break;
            }
        }
        if let Some(oldest_searched) = oldest_searched {
            // Drop messages older than the searched range.
            all = all.split_off(&oldest_searched);
        }
        let more = all.len() > query.limit;
        let messages: Vec<ShellRecord> = all.into_values().rev().take(query.limit).collect();
        let next = if more { messages.last().map(|last| last.id) } else { oldest_searched };
        Ok(RawPage { messages, next, incomplete })
    }

    fn load_from_store(
        &self,
        query: &ListQuery,
        wanted_count: usize,
    ) -> Result<Vec<ShellRecord>, ShellFault> {
        let mut all = Vec::new();
        let Some(number) = &query.number else {
            let newest = self.store.newest(query.before, wanted_count).map_err(|error| internal(&error))?;
            return Ok(newest.into_iter().filter_map(|found| self.record_of(found)).collect());
        };
        let mut before = query.before;
        while all.len() < wanted_count {
            let ids = self.mailbox_index.older(number, before, wanted_count);
            let Some(last) = ids.last() else { break };
            before = *last;
            for id in ids {
                let found = self.store.find(id).map_err(|error| internal(&error))?;
                all.extend(found.and_then(|found| self.record_of(found)).filter(|record| query.fits(record)));
            }
        }
        Ok(all)
    }

    /// The known segments of the text that contains a message, by ascending id. `known_records` are messages that were
    /// read already.
    fn complete_text(
        &self,
        number: &SubscriberNumber,
        record: &ShellRecord,
        known_records: &[ShellRecord],
        incomplete: &mut Option<String>,
    ) -> Result<Vec<ShellRecord>, ShellFault> {
        if record.segment.is_none() {
            return Ok(vec![record.clone()]);
        }
        let mut candidates: BTreeMap<MessageId, ShellRecord> = BTreeMap::from([(record.id, record.clone())]);
        let add = |candidates: &mut BTreeMap<MessageId, ShellRecord>, other: ShellRecord| {
            if segments::are_segments_of_same_text(record, &other) {
                candidates.entry(other.id).or_insert(other);
            }
        };
        let text = segments::text_in_page(record, known_records);
        if segments::is_complete(&text) {
            return Ok(text);
        }
        known_records.iter().for_each(|other| add(&mut candidates, other.clone()));
        for id in self.mailbox_index.around(number, record.id, SEGMENT_SEARCH_RADIUS) {
            let found = self.store.find(id).map_err(|error| internal(&error))?;
            found
                .and_then(|found| self.record_of(found))
                .into_iter()
                .for_each(|other| add(&mut candidates, other));
        }
        let text = segments::group_containing(record.id, candidates.clone());
        if segments::is_complete(&text) {
            return Ok(text);
        }
        let query = ShellArchiveQuery {
            number: Some(number.clone()),
            inbox: false,
            before: MessageId(u64::MAX),
            // Twice, since the text may start one spread earlier, and another text with its reference one spread before
            // that.
            accepted: Some(
                before(record.accepted_at, 2 * MAX_SEGMENT_SPREAD)..record.accepted_at + MAX_SEGMENT_SPREAD,
            ),
            limit: MAX_LIMIT,
        };
        match self.records.search_archive(query) {
            Ok(archive_page) => {
                archive_page.messages.into_iter().for_each(|other| add(&mut candidates, other));
            }
            Err(reason) => *incomplete = Some(archive_unreadable(&reason)),
        }
        Ok(segments::group_containing(record.id, candidates))
    }

    /// The text that contains a message, if the viewer may see it.
    pub(crate) fn message_for(
        &self,
        view: &Viewer,
        id: MessageId,
    ) -> Result<Option<ShellMessage>, ShellFault> {
        let known_records = self.store.find(id).map_err(|error| internal(&error))?;
        let record = match known_records {
            Some(known_records) => self.record_of(known_records),
            None => {
                let before = MessageId(id.0.saturating_add(1));
                let query =
                    ShellArchiveQuery { number: None, inbox: false, before, accepted: None, limit: 1 };
                let archive_page = self.records.search_archive(query).unwrap_or_default();
                archive_page.messages.into_iter().find(|record| record.id == id)
            }
        };
        let Some(record) = record else { return Ok(None) };
        let text = match view {
            Viewer::Subscriber(number)
                if number.matches(&record.source) || number.matches(&record.destination) =>
            {
                self.complete_text(number, &record, &[], &mut None)?
            }
            _ => vec![record],
        };
        Ok(self.message_views(view, vec![text]).pop())
    }

    fn record_of(&self, found: StoredMessage) -> Option<ShellRecord> {
        let (message, end) = match found {
            StoredMessage::Waiting(message, _) if message.kind != model::MessageKind::Text => return None,
            StoredMessage::Waiting(message, _) => (message, None),
            StoredMessage::Finished(message, end) => (message, Some(end)),
        };
        let segment = message.segment();
        Some(ShellRecord {
            id: message.id,
            source: message.source,
            destination: message.destination,
            text: message.text,
            segment,
            accepted_at: message.accepted_at,
            end: end.map(|end| ShellRecordEnd {
                state: end.state,
                at: end.at,
                error: end.error,
                cause: self.records.describe_error(&end),
            }),
        })
    }

    /// Renders texts for the viewer. Texts that the viewer may not see are dropped.
    fn message_views(&self, view: &Viewer, mut texts: Vec<Vec<ShellRecord>>) -> Vec<ShellMessage> {
        if let Viewer::Subscriber(number) = view {
            let is_own =
                |record: &ShellRecord| number.matches(&record.source) || number.matches(&record.destination);
            texts.retain(|text| text.iter().all(is_own));
        }
        let waiting = texts.iter().flatten().filter(|record| record.end.is_none()).map(|record| record.id);
        let waiting: Vec<MessageId> = waiting.collect();
        let mut states =
            if waiting.is_empty() { Vec::new() } else { self.records.current_states(waiting) }.into_iter();
        let display_number = texts.iter().filter_map(|text| {
            let states = text.iter().map(|record| match &record.end {
                Some(end) => end.state.name(),
                None => states.next().flatten().unwrap_or("ending"),
            });
            message_view(view, text, &states.collect::<Vec<_>>())
        });
        display_number.collect()
    }
}

/// Renders a text of one or more segments with these states.
fn message_view(view: &Viewer, text: &[ShellRecord], states: &[&str]) -> Option<ShellMessage> {
    let first = text.first()?;
    let (direction, joined_text) = match view {
        Viewer::Operator => (None, None),
        Viewer::Subscriber(number) => {
            let direction =
                if number.matches(&first.destination) { ShellDirection::In } else { ShellDirection::Out };
            let joined_text = match first.segment {
                Some(_) => segments::joined_text(text),
                None => {
                    let (joined_text, coding) = text::display(&first.text);
                    (coding != "binary").then_some(joined_text)
                }
            };
            (Some(direction), joined_text)
        }
    };
    // An operator sees each segment as a message.
    let (part, segments) = match (view, first.segment) {
        (Viewer::Operator, Some(segment)) => (Some(format!("{}/{}", segment.number, segment.total)), None),
        (Viewer::Subscriber(_), Some(segment)) => (None, Some(segment_view(segment.total, text, states))),
        (_, None) => (None, None),
    };
    let end = || text.iter().filter_map(|record| record.end.as_ref());
    let failed = end().find(|end| end.error != 0);
    Some(ShellMessage {
        id: first.id.to_string(),
        at: rfc3339(first.accepted_at),
        direction,
        from: display_number(&first.source),
        to: display_number(&first.destination),
        state: combined_state(text, states).to_owned(),
        ended_at: end()
            .map(|end| end.at)
            .max()
            .filter(|_| text.iter().all(|record| record.end.is_some()))
            .map(rfc3339),
        error: failed.map(|end| end.error),
        cause: failed.and_then(|end| end.cause.clone()),
        text: joined_text,
        length: text.iter().map(|record| record.text.octets.len()).sum(),
        part,
        segments,
    })
}

/// The state of a text: the state of the first unfinished segment, else of the first failed one, else of the last.
fn combined_state<'a>(text: &[ShellRecord], states: &[&'a str]) -> &'a str {
    let with_states = || text.iter().zip(states);
    let open = with_states().find(|(record, _)| record.end.is_none());
    let is_good = |record: &ShellRecord| {
        record
            .end
            .as_ref()
            .is_some_and(|end| matches!(end.state, FinalState::Delivered | FinalState::Relayed))
    };
    let failed = || with_states().find(|(record, _)| !is_good(record));
    open.or_else(failed).or_else(|| with_states().last()).map_or("", |(_, state)| *state)
}

fn segment_view(total: u8, text: &[ShellRecord], states: &[&str]) -> ShellSegments {
    let found = |(record, state): (&ShellRecord, &&str)| {
        let number = record.segment.map_or(1, |segment| segment.number);
        ShellSegment { number, id: record.id.to_string(), state: (*state).to_owned() }
    };
    let mut present: Vec<ShellSegment> = text.iter().zip(states).map(found).collect();
    present.sort_by_key(|segment| segment.number);
    ShellSegments { total, present }
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

fn archive_unreadable(reason: &str) -> String {
    format!("older messages cannot be read now: {reason}")
}

/// Formats a time as RFC 3339 in UTC.
fn rfc3339(at: Timestamp) -> String {
    let nanos = i128::from(at.0) * 1_000_000;
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok();
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}
