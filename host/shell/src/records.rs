//! What there is to read: the store's messages and the archive's, as one list.

use crate::number::shown;
use crate::wire::{Direction, Fault, Item, Kind, Page};
use crate::{Number, Watch};
use doors::text;
use model::{Address, Final, FinalState, Message, MessageId, Text, Timestamp};
use std::collections::BTreeMap;
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
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How it ended, if it has.
    pub ended: Option<Ended>,
}

/// How a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub state: FinalState,
    /// When.
    pub at: Timestamp,
    /// The error code that mattered, 0 where none did.
    pub error: u32,
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
/// After so long, a list ends with what was found.
const ENOUGH: Duration = Duration::from_secs(10);

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

fn kept(message: Message, ended: Option<&Final>) -> Kept {
    Kept {
        id: message.id,
        source: message.source,
        destination: message.destination,
        text: message.text,
        accepted_at: message.accepted_at,
        ended: ended.map(|ended| Ended { state: ended.state, at: ended.at, error: ended.error }),
    }
}

fn found(found: Found) -> Option<Kept> {
    match found {
        Found::Waiting(message, _) => (message.kind == model::Kind::Text).then(|| kept(message, None)),
        Found::Finished(message, ended) => Some(kept(message, Some(&ended))),
    }
}

impl Library {
    /// A page of a list. May take its time.
    pub(crate) fn page(&self, view: &View, wanted: &Wanted) -> Result<Page, Fault> {
        let enough = wanted.limit + 1;
        // The store first: what leaves it meanwhile is in the archive already.
        let mut all: BTreeMap<MessageId, Kept> = BTreeMap::new();
        for kept in self.stored(wanted, enough)? {
            all.insert(kept.id, kept);
        }
        let (begun, mut before, mut incomplete, mut cut) = (Instant::now(), wanted.before, None, None);
        let mut archived = 0;
        while archived < enough {
            let asked =
                Asked { number: wanted.number.clone(), inbox: wanted.inbox, before, most: enough - archived };
            let older = match self.records.archived(asked) {
                Ok(older) => older,
                Err(why) => {
                    incomplete = Some(format!("older messages cannot be read now: {why}"));
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
        Ok(Page { messages: self.items(view, messages), next: next.map(|id| id.to_string()), incomplete })
    }

    fn stored(&self, wanted: &Wanted, enough: usize) -> Result<Vec<Kept>, Fault> {
        let mut all = Vec::new();
        let Some(number) = &wanted.number else {
            let newest = self.store.newest(wanted.before, enough).map_err(|error| internal(&error))?;
            return Ok(newest.into_iter().filter_map(found).collect());
        };
        let mut before = wanted.before;
        while all.len() < enough {
            let ids = self.watch.older(number, before, enough);
            let Some(last) = ids.last() else { break };
            before = *last;
            for id in ids {
                let one = self.store.find(id).map_err(|error| internal(&error))?;
                all.extend(one.and_then(found).filter(|kept| wanted.fits(kept)));
            }
        }
        Ok(all)
    }

    /// One message, if it is any of this view's.
    pub(crate) fn one(&self, view: &View, id: MessageId) -> Result<Option<Item>, Fault> {
        let here = self.store.find(id).map_err(|error| internal(&error))?;
        let kept = match here {
            Some(here) => found(here),
            None => {
                let before = MessageId(id.0.saturating_add(1));
                let asked = Asked { number: None, inbox: false, before, most: 1 };
                let older = self.records.archived(asked).unwrap_or_default();
                older.messages.into_iter().find(|kept| kept.id == id)
            }
        };
        Ok(self.items(view, kept.into_iter().collect()).pop())
    }

    /// Messages as this view shows them; those that are none of its are left out, however they came here.
    fn items(&self, view: &View, mut messages: Vec<Kept>) -> Vec<Item> {
        if let View::Subscriber(number) = view {
            messages.retain(|kept| number.is(&kept.source) || number.is(&kept.destination));
        }
        let waiting: Vec<MessageId> =
            messages.iter().filter(|kept| kept.ended.is_none()).map(|kept| kept.id).collect();
        let mut doing = if waiting.is_empty() { Vec::new() } else { self.records.doing(waiting) }.into_iter();
        let shown = messages.iter().map(|kept| {
            let state = match &kept.ended {
                Some(ended) => ended.state.name(),
                None => doing.next().flatten().unwrap_or("ending"),
            };
            item(view, kept, state)
        });
        shown.collect()
    }
}

fn item(view: &View, kept: &Kept, state: &str) -> Item {
    let (direction, words) = match view {
        View::Operator => (None, None),
        View::Subscriber(number) => {
            let direction = if number.is(&kept.destination) { Direction::In } else { Direction::Out };
            let (words, coding) = text::show(&kept.text);
            (Some(direction), (coding != "binary").then_some(words))
        }
    };
    let part = smpp::concat::part_of(kept.text.udhi, &kept.text.octets, &smpp::Tlvs::default());
    Item {
        id: kept.id.to_string(),
        at: stamp(kept.accepted_at),
        direction,
        from: shown(&kept.source),
        to: shown(&kept.destination),
        state: state.to_owned(),
        ended_at: kept.ended.map(|ended| stamp(ended.at)),
        error: kept.ended.map(|ended| ended.error).filter(|error| *error != 0),
        text: words,
        length: kept.text.octets.len(),
        part: part.map(|part| format!("{}/{}", part.number, part.total)),
    }
}

/// RFC 3339, UTC.
fn stamp(at: Timestamp) -> String {
    let nanos = i128::from(at.0) * 1_000_000;
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok();
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}
