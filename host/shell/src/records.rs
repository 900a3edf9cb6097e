//! What there is to read: the store's messages and the archive's, as one list.

use crate::number::shown;
use crate::segments::{self, SPAN};
use crate::wire::{Direction, Fault, Item, Kind, Page, SegmentItem, Segments};
use crate::{Number, Watch};
use doors::text;
use model::{Address, Final, FinalState, MessageId, Segment, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Found, Store, StoreError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A message as it is kept, wherever that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Its id.
    pub id: MessageId,
    /// Who sent it.
    pub source: Address,
    /// For whom it is.
    pub destination: Address,
    /// Its content.
    pub text: Text,
    /// Which segment of a concatenated message it is, if it is one.
    pub segment: Option<Segment>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How it ended, if it has.
    pub ended: Option<Ended>,
}

/// How a message ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub state: FinalState,
    /// When.
    pub at: Timestamp,
    /// The error code that mattered, 0 where none did.
    pub error: u32,
    /// What the code means, where that is known.
    pub cause: Option<String>,
}

/// What is asked of the archive.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The number, with or without its plus; any where it is not given.
    pub number: Option<Number>,
    /// The number must be the addressee.
    pub inbox: bool,
    /// Only older messages.
    pub before: MessageId,
    /// Only messages that were accepted at these times.
    pub accepted: Option<Range<Timestamp>>,
    /// So many at most.
    pub most: usize,
}

/// Some messages of the archive, newest first.
#[derive(Debug, Default)]
pub struct Older {
    /// The messages.
    pub messages: Vec<Kept>,
    /// There may be more before this one.
    pub next: Option<MessageId>,
}

/// What the appliance knows beside its store. All calls may take their time; they are made on threads that may wait.
pub trait Records: Send + Sync {
    /// What messages that have not ended do, in a word; `None` for those that end just now.
    fn doing(&self, ids: Vec<MessageId>) -> Vec<Option<&'static str>>;

    /// What the error code of a finished message means, where it has one and that is known.
    fn cause(&self, ended: &Final) -> Option<String>;

    /// Messages of the archive; none where there is no archive.
    ///
    /// # Errors
    /// Why it cannot be read, for people.
    fn archived(&self, asked: Asked) -> Result<Older, String>;
}

/// Who looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    /// A subscriber: its own messages, with their texts.
    Subscriber(Number),
    /// An operator: everybody's, without.
    Operator,
}

/// Where to look.
pub(crate) struct Library {
    pub(crate) store: Arc<Store>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) records: Arc<dyn Records>,
}

/// Messages of a list, at most, and where none are named.
pub(crate) const MOST: usize = 500;
pub(crate) const USUAL: usize = 20;
/// How many messages of the number, older ones and newer ones, are searched for a text's other segments in the store.
const AROUND: usize = 500;
/// After so long, a list ends with what was found.
const ENOUGH: Duration = Duration::from_secs(10);

/// Why a text may have more segments than are shown.
const TOO_LONG: &str =
    "not all segments of long texts were looked for, because it took too long; ask for fewer messages";

/// A list that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Of this number; an operator may want everybody's.
    pub(crate) number: Option<Number>,
    /// Only what came for it.
    pub(crate) inbox: bool,
    pub(crate) before: MessageId,
    pub(crate) limit: usize,
}

impl Wanted {
    fn fits(&self, kept: &Kept) -> bool {
        self.number
            .as_ref()
            .is_none_or(|number| number.is(&kept.destination) || !self.inbox && number.is(&kept.source))
    }
}

pub(crate) fn internal(error: &StoreError) -> Fault {
    tracing::error!(%error, "the store cannot be read");
    Fault::new(Kind::Internal, "the appliance cannot read its store; its log says why")
}

/// What a look at store and archive has brought, newest first.
struct Raw {
    messages: Vec<Kept>,
    next: Option<MessageId>,
    incomplete: Option<String>,
}

impl Library {
    /// A page of a list. May take its time.
    pub(crate) fn page(&self, view: &View, wanted: &Wanted) -> Result<Page, Fault> {
        let View::Subscriber(number) = view else {
            let Raw { messages, next, incomplete } = self.raw(wanted)?;
            let texts = messages.into_iter().map(|kept| vec![kept]).collect();
            return Ok(Page {
                messages: self.items(view, texts),
                next: next.map(|id| id.to_string()),
                incomplete,
            });
        };
        // A text stands where its oldest segment does, which is also its id.
        let mut texts: BTreeMap<MessageId, Vec<Kept>> = BTreeMap::new();
        let mut seen: BTreeSet<MessageId> = BTreeSet::new();
        let (begun, mut wanted_now, mut incomplete) = (Instant::now(), wanted.clone(), None);
        let edge = loop {
            let raw = self.raw(&wanted_now)?;
            incomplete = incomplete.or(raw.incomplete);
            for kept in &raw.messages {
                if seen.contains(&kept.id) {
                    continue;
                }
                let text = if begun.elapsed() > ENOUGH {
                    incomplete.get_or_insert_with(|| TOO_LONG.to_owned());
                    segments::text_among(kept, &raw.messages)
                } else {
                    self.whole(number, kept, &raw.messages, &mut incomplete)?
                };
                seen.extend(text.iter().map(|kept| kept.id));
                if let Some(first) = text.first().map(|first| first.id).filter(|first| *first < wanted.before)
                {
                    texts.insert(first, text);
                }
            }
            let Some(edge) = raw.next else { break None };
            if texts.range(edge..).nth(wanted.limit - 1).is_some() || begun.elapsed() > ENOUGH {
                break Some(edge);
            }
            wanted_now.before = edge;
        };
        if let Some(edge) = edge {
            // A text whose oldest segment is older than what was looked at belongs to a later page.
            texts = texts.split_off(&edge);
        }
        let more = texts.len() > wanted.limit;
        let texts: Vec<(MessageId, Vec<Kept>)> = texts.into_iter().rev().take(wanted.limit).collect();
        let next = if more { texts.last().map(|(first, _)| *first) } else { edge };
        let texts = texts.into_iter().map(|(_, text)| text).collect();
        Ok(Page { messages: self.items(view, texts), next: next.map(|id| id.to_string()), incomplete })
    }

    /// Messages of a list, segments of longer texts singly.
    fn raw(&self, wanted: &Wanted) -> Result<Raw, Fault> {
        let enough = wanted.limit + 1;
        // The store first: what leaves it meanwhile is in the archive already.
        let mut all: BTreeMap<MessageId, Kept> = BTreeMap::new();
        for kept in self.stored(wanted, enough)? {
            all.insert(kept.id, kept);
        }
        let (begun, mut before, mut incomplete, mut cut) = (Instant::now(), wanted.before, None, None);
        let mut archived = 0;
        while archived < enough {
            let asked = Asked {
                number: wanted.number.clone(),
                inbox: wanted.inbox,
                before,
                accepted: None,
                most: enough - archived,
            };
            let older = match self.records.archived(asked) {
                Ok(older) => older,
                Err(why) => {
                    incomplete = Some(unreadable(&why));
                    break;
                }
            };
            for kept in older.messages {
                if wanted.fits(&kept) && kept.id < wanted.before {
                    archived += 1;
                    all.entry(kept.id).or_insert(kept);
                }
            }
            let Some(next) = older.next else { break };
            before = next;
            if begun.elapsed() > ENOUGH {
                cut = Some(next);
                break;
            }
        }
        if let Some(cut) = cut {
            // Nothing that is older than what was not looked at.
            all = all.split_off(&cut);
        }
        let more = all.len() > wanted.limit;
        let messages: Vec<Kept> = all.into_values().rev().take(wanted.limit).collect();
        let next = if more { messages.last().map(|last| last.id) } else { cut };
        Ok(Raw { messages, next, incomplete })
    }

    fn stored(&self, wanted: &Wanted, enough: usize) -> Result<Vec<Kept>, Fault> {
        let mut all = Vec::new();
        let Some(number) = &wanted.number else {
            let newest = self.store.newest(wanted.before, enough).map_err(|error| internal(&error))?;
            return Ok(newest.into_iter().filter_map(|found| self.found(found)).collect());
        };
        let mut before = wanted.before;
        while all.len() < enough {
            let ids = self.watch.older(number, before, enough);
            let Some(last) = ids.last() else { break };
            before = *last;
            for id in ids {
                let one = self.store.find(id).map_err(|error| internal(&error))?;
                all.extend(one.and_then(|one| self.found(one)).filter(|kept| wanted.fits(kept)));
            }
        }
        Ok(all)
    }

    /// The text that a message of this number belongs to: its segments as far as they are there, by growing id. `here` are
    /// messages that are known already.
    fn whole(
        &self,
        number: &Number,
        kept: &Kept,
        here: &[Kept],
        incomplete: &mut Option<String>,
    ) -> Result<Vec<Kept>, Fault> {
        if kept.segment.is_none() {
            return Ok(vec![kept.clone()]);
        }
        let mut alike: BTreeMap<MessageId, Kept> = BTreeMap::from([(kept.id, kept.clone())]);
        let add = |alike: &mut BTreeMap<MessageId, Kept>, other: Kept| {
            if segments::are_alike(kept, &other) {
                alike.entry(other.id).or_insert(other);
            }
        };
        let text = segments::text_among(kept, here);
        if segments::is_complete(&text) {
            return Ok(text);
        }
        here.iter().for_each(|other| add(&mut alike, other.clone()));
        for id in self.watch.around(number, kept.id, AROUND) {
            let one = self.store.find(id).map_err(|error| internal(&error))?;
            one.and_then(|one| self.found(one)).into_iter().for_each(|other| add(&mut alike, other));
        }
        let text = segments::text_of(kept.id, alike.clone());
        if segments::is_complete(&text) {
            return Ok(text);
        }
        let asked = Asked {
            number: Some(number.clone()),
            inbox: false,
            before: MessageId(u64::MAX),
            // Twice: the text may have begun a span earlier, and another with its reference a span before that.
            accepted: Some(before(kept.accepted_at, 2 * SPAN)..kept.accepted_at + SPAN),
            most: MOST,
        };
        match self.records.archived(asked) {
            Ok(older) => older.messages.into_iter().for_each(|other| add(&mut alike, other)),
            Err(why) => *incomplete = Some(unreadable(&why)),
        }
        Ok(segments::text_of(kept.id, alike))
    }

    /// The text that a message belongs to, or the message, if it is any of this view's.
    pub(crate) fn one(&self, view: &View, id: MessageId) -> Result<Option<Item>, Fault> {
        let here = self.store.find(id).map_err(|error| internal(&error))?;
        let kept = match here {
            Some(here) => self.found(here),
            None => {
                let before = MessageId(id.0.saturating_add(1));
                let asked = Asked { number: None, inbox: false, before, accepted: None, most: 1 };
                let older = self.records.archived(asked).unwrap_or_default();
                older.messages.into_iter().find(|kept| kept.id == id)
            }
        };
        let Some(kept) = kept else { return Ok(None) };
        let text = match view {
            View::Subscriber(number) if number.is(&kept.source) || number.is(&kept.destination) => {
                self.whole(number, &kept, &[], &mut None)?
            }
            _ => vec![kept],
        };
        Ok(self.items(view, vec![text]).pop())
    }

    fn found(&self, found: Found) -> Option<Kept> {
        let (message, ended) = match found {
            Found::Waiting(message, _) if message.kind != model::Kind::Text => return None,
            Found::Waiting(message, _) => (message, None),
            Found::Finished(message, ended) => (message, Some(ended)),
        };
        let segment = message.segment();
        Some(Kept {
            id: message.id,
            source: message.source,
            destination: message.destination,
            text: message.text,
            segment,
            accepted_at: message.accepted_at,
            ended: ended.map(|ended| Ended {
                state: ended.state,
                at: ended.at,
                error: ended.error,
                cause: self.records.cause(&ended),
            }),
        })
    }

    /// Texts as this view shows them; those that are none of its are left out, however they came here.
    fn items(&self, view: &View, mut texts: Vec<Vec<Kept>>) -> Vec<Item> {
        if let View::Subscriber(number) = view {
            let is_own = |kept: &Kept| number.is(&kept.source) || number.is(&kept.destination);
            texts.retain(|text| text.iter().all(is_own));
        }
        let waiting = texts.iter().flatten().filter(|kept| kept.ended.is_none()).map(|kept| kept.id);
        let waiting: Vec<MessageId> = waiting.collect();
        let mut doing = if waiting.is_empty() { Vec::new() } else { self.records.doing(waiting) }.into_iter();
        let shown = texts.iter().filter_map(|text| {
            let states = text.iter().map(|kept| match &kept.ended {
                Some(ended) => ended.state.name(),
                None => doing.next().flatten().unwrap_or("ending"),
            });
            item(view, text, &states.collect::<Vec<_>>())
        });
        shown.collect()
    }
}

/// A text of one or more segments, which have these states.
fn item(view: &View, text: &[Kept], states: &[&str]) -> Option<Item> {
    let first = text.first()?;
    let (direction, words) = match view {
        View::Operator => (None, None),
        View::Subscriber(number) => {
            let direction = if number.is(&first.destination) { Direction::In } else { Direction::Out };
            let words = match first.segment {
                Some(_) => segments::words(text),
                None => {
                    let (words, coding) = text::show(&first.text);
                    (coding != "binary").then_some(words)
                }
            };
            (Some(direction), words)
        }
    };
    // An operator sees every message, and so every segment.
    let (part, segments) = match (view, first.segment) {
        (View::Operator, Some(segment)) => (Some(format!("{}/{}", segment.number, segment.total)), None),
        (View::Subscriber(_), Some(segment)) => (None, Some(shown_segments(segment.total, text, states))),
        (_, None) => (None, None),
    };
    let ended = || text.iter().filter_map(|kept| kept.ended.as_ref());
    let failed = ended().find(|ended| ended.error != 0);
    Some(Item {
        id: first.id.to_string(),
        at: stamp(first.accepted_at),
        direction,
        from: shown(&first.source),
        to: shown(&first.destination),
        state: state_of(text, states).to_owned(),
        ended_at: ended()
            .map(|ended| ended.at)
            .max()
            .filter(|_| text.iter().all(|kept| kept.ended.is_some()))
            .map(stamp),
        error: failed.map(|ended| ended.error),
        cause: failed.and_then(|ended| ended.cause.clone()),
        text: words,
        length: text.iter().map(|kept| kept.text.octets.len()).sum(),
        part,
        segments,
    })
}

/// The state of a text: what its first segment does that has not ended; then how the first ended that has not reached its
/// addressee; then how all ended.
fn state_of<'a>(text: &[Kept], states: &[&'a str]) -> &'a str {
    let with_states = || text.iter().zip(states);
    let open = with_states().find(|(kept, _)| kept.ended.is_none());
    let is_good = |kept: &Kept| {
        kept.ended
            .as_ref()
            .is_some_and(|ended| matches!(ended.state, FinalState::Delivered | FinalState::Relayed))
    };
    let failed = || with_states().find(|(kept, _)| !is_good(kept));
    open.or_else(failed).or_else(|| with_states().last()).map_or("", |(_, state)| *state)
}

fn shown_segments(total: u8, text: &[Kept], states: &[&str]) -> Segments {
    let one = |(kept, state): (&Kept, &&str)| {
        let number = kept.segment.map_or(1, |segment| segment.number);
        SegmentItem { number, id: kept.id.to_string(), state: (*state).to_owned() }
    };
    let mut present: Vec<SegmentItem> = text.iter().zip(states).map(one).collect();
    present.sort_by_key(|segment| segment.number);
    Segments { total, present }
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

fn unreadable(why: &str) -> String {
    format!("older messages cannot be read now: {why}")
}

/// RFC 3339, UTC.
fn stamp(at: Timestamp) -> String {
    let nanos = i128::from(at.0) * 1_000_000;
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok();
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}
