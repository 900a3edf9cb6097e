//! Messages as one list, whether they wait, have ended or are in the archive; and what an admin does with one.

use crate::appliance::{Switchyard, gone};
use crate::core_loop;
use crate::orders::shown_address;
use crate::records::time;
use admin::{Hand, Kind, Problem, view};
use archive::{Cursor, Filter, Record, Side, Wanted};
use engine::{Answer, Doing, Event};
use model::{
    Address, Final, FinalState, Message, MessageId, PeerId, Refusal, SUBMISSION_IDS, Timestamp, Verdict,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::record::Glance;
use store::{Found, Seen};

/// Records of the store that one page looks at.
const LOOKS: usize = 20_000;
/// How far the wall clock may have been put back while messages were accepted: ids grow, times may not.
const SLACK: u64 = 3_600_000;

/// What a message does that has not ended, in a word.
pub(crate) fn doing_word(doing: Doing) -> &'static str {
    match doing {
        Doing::Queued | Doing::Aside => "queued",
        Doing::Suspended => "suspended",
        Doing::Submitted => "submitted",
        Doing::Deferred => "deferred",
        Doing::Held => "held",
        Doing::Resolving => "resolving",
        Doing::Deciding => "deciding",
        Doing::Uncertain => "uncertain",
        Doing::AwaitingReceipt => "responded",
        Doing::Ending => "ending",
    }
}

const DOINGS: [&str; 10] = [
    "queued",
    "suspended",
    "submitted",
    "deferred",
    "held",
    "resolving",
    "deciding",
    "uncertain",
    "responded",
    "ending",
];

/// What is looked for.
struct Search {
    /// Without plus signs in front.
    number: Option<String>,
    submission: Option<MessageId>,
    /// Whose messages.
    subscriber: Option<Subscriber>,
    /// Nobody of that name has ever been here: `Some(None)`.
    account: Option<Option<PeerId>>,
    peer: Option<Option<PeerId>>,
    /// A word for what messages do that have not ended.
    doing: Option<String>,
    ended: Option<FinalState>,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// A subscriber whose messages are looked for.
struct Subscriber {
    imsi: String,
    /// The number that the subscriber has now, where a core network knows it; without a plus sign.
    number: Option<String>,
}

impl Subscriber {
    /// Whether a message comes from this subscriber or goes to it. `imsi` is the subscriber that was found behind its
    /// destination: a number that was another subscriber's before has messages of both.
    fn has(&self, source: &str, destination: &str, imsi: Option<&str>) -> bool {
        let number = self.number.as_deref();
        match imsi {
            Some(imsi) if imsi == self.imsi => true,
            Some(_) => number == Some(bare(source)),
            None => number.is_some_and(|number| number == bare(source) || number == bare(destination)),
        }
    }

    fn has_message(&self, message: &Message) -> bool {
        let imsi = match &message.routed.verdict {
            Verdict::Forward(legs) => legs.iter().find_map(|leg| leg.imsi.as_ref()),
            Verdict::Hold(_) | Verdict::Reject(_) => None,
        };
        let imsi = imsi.map(|imsi| String::from_utf8_lossy(&imsi.0));
        self.has(&message.source.text(), &message.destination.text(), imsi.as_deref())
    }

    fn has_record(&self, record: &Record) -> bool {
        let trace: Option<Value> =
            record.trace.as_ref().and_then(|trace| serde_json::from_str(trace.get()).ok());
        let legs = trace.as_ref().and_then(|trace| trace["route"]["legs"].as_array());
        let imsi = legs.into_iter().flatten().find_map(|leg| leg["imsi"].as_str());
        self.has(&record.source, &record.destination, imsi)
    }
}

fn bare(number: &str) -> &str {
    number.trim_start_matches('+')
}

impl Search {
    fn glance(&self, id: MessageId, glance: &Glance) -> Seen {
        if self.submission.is_some_and(|submission| id < submission) {
            return Seen::Enough;
        }
        if self.from.is_some_and(|from| glance.accepted_at.0.saturating_add(SLACK) < from.0) {
            return Seen::Enough;
        }
        let is = |number: &str, address: &Address| bare(&address.text()) == number;
        let fits = !glance.own_receipt
            && self.from.is_none_or(|from| glance.accepted_at >= from)
            && self.until.is_none_or(|until| glance.accepted_at < until)
            && self
                .number
                .as_deref()
                .is_none_or(|number| is(number, &glance.source) || is(number, &glance.destination));
        if fits { Seen::Wanted } else { Seen::Passed }
    }

    fn is_of(&self, submission: Option<MessageId>) -> bool {
        self.submission.is_none() || self.submission == submission
    }

    fn is_of_subscriber(&self, message: &Message) -> bool {
        self.subscriber.as_ref().is_none_or(|subscriber| subscriber.has_message(message))
    }

    fn fits(&self, origin: PeerId, peer: Option<PeerId>) -> bool {
        let is = |wanted: Option<PeerId>, one: Option<PeerId>| wanted.is_some() && wanted == one;
        // What comes from the network is its addressee's.
        self.account.is_none_or(|account| is(account, Some(origin)) || is(account, peer))
            && self.peer.is_none_or(|wanted| is(wanted, peer))
    }
}

impl Switchyard {
    /// The number, without a plus sign, that a subscriber has now; `None` where no core network tells it.
    fn number_of(&self, imsi: &str) -> Result<Option<String>, Problem> {
        let imsi = imsi.parse().map_err(|_| {
            let detail = format!("imsi: is {imsi:?}, and must be 6 to 15 digits");
            Problem::new(Kind::BadRequest, detail)
        })?;
        let key = gsm::SubscriberKey::Imsi(imsi);
        let found = |network: &Arc<gsm::Network>| network.subscriber(&key).ok().flatten()?.msisdn;
        Ok(self.networks.iter().find_map(found))
    }

    fn search(&self, wanted: &view::WantedMessages) -> Result<Search, Problem> {
        let at = |name: &str, text: Option<&str>| {
            let Some(text) = text else { return Ok(None) };
            let bad = || {
                let detail = format!(
                    "{name}: is {text:?}, and must be a time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch"
                );
                Problem::new(Kind::BadRequest, detail)
            };
            time(text).map(Some).ok_or_else(bad)
        };
        let id = |name: &Option<String>| name.as_deref().map(|name| self.directory.load().id(name));
        let ended = wanted
            .state
            .as_deref()
            .and_then(|word| FinalState::ALL.into_iter().find(|state| state.name() == word));
        let doing = wanted.state.clone().filter(|word| DOINGS.contains(&word.as_str()));
        if let Some(word) = wanted.state.as_deref().filter(|_| ended.is_none() && doing.is_none()) {
            let ends: Vec<&str> = FinalState::ALL.iter().map(|state| state.name()).collect();
            let detail =
                format!("state: is {word:?}, and must be one of {}, {}", DOINGS.join(", "), ends.join(", "));
            return Err(Problem::new(Kind::BadRequest, detail));
        }
        let subscriber = match (wanted.imsi.as_deref(), &wanted.number) {
            (None, _) => None,
            (Some(_), Some(_)) => {
                return Err(Problem::new(Kind::BadRequest, "imsi: cannot be given together with number"));
            }
            (Some(imsi), None) => {
                let number = self.number_of(imsi)?;
                Some(Subscriber { imsi: imsi.to_owned(), number })
            }
        };
        Ok(Search {
            submission: wanted.submission.as_deref().map(Self::parse_id).transpose()?,
            subscriber,
            number: wanted.number.as_deref().map(|number| bare(number).to_owned()),
            account: id(&wanted.account),
            peer: id(&wanted.peer),
            doing,
            ended,
            from: at("from", wanted.from.as_deref())?,
            until: at("until", wanted.until.as_deref())?,
        })
    }

    fn row(
        &self,
        message: &Message,
        peer: Option<PeerId>,
        state: (&str, bool),
        open: bool,
    ) -> view::MessageRow {
        view::MessageRow {
            id: message.id.to_string(),
            at: message.accepted_at.0,
            state: state.0.to_owned(),
            finished: state.1,
            account: self.name_of(message.origin),
            peer: peer.map_or(String::new(), |peer| self.name_of(peer)),
            source: shown_address(&message.source, open),
            destination: shown_address(&message.destination, open),
            length: message.text.octets.len(),
        }
    }

    /// What the store has, down to where it was looked at.
    fn here(
        &self,
        search: &Search,
        before: MessageId,
        (limit, open): (usize, bool),
        rows: &mut BTreeMap<MessageId, view::MessageRow>,
    ) -> Result<Option<MessageId>, Problem> {
        let (mut before, mut left) = (before, LOOKS);
        loop {
            let most = limit + 1 - rows.len();
            let looked = self.store.look_back(before, left, most, |id, glance| search.glance(id, glance));
            let mut looked = looked.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
            looked.found.retain(|found| {
                let (Found::Waiting(message, _) | Found::Finished(message, _)) = found;
                search.is_of_subscriber(message)
            });
            let waiting: Vec<MessageId> = looked
                .found
                .iter()
                .filter_map(|found| match found {
                    Found::Waiting(message, _) => Some(message.id),
                    Found::Finished(..) => None,
                })
                .collect();
            let statuses = self.doing_of(waiting)?;
            for found in looked.found {
                match found {
                    Found::Waiting(message, _) => {
                        // It may end just now.
                        let (doing, peer) =
                            statuses.get(&message.id).copied().unwrap_or((Doing::Ending, None));
                        let word = doing_word(doing);
                        let wanted = search.ended.is_none()
                            && search.is_of(message.submission)
                            && search.doing.as_deref().is_none_or(|wanted| wanted == word);
                        if wanted && search.fits(message.origin, peer) {
                            rows.insert(message.id, self.row(&message, peer, (word, false), open));
                        }
                    }
                    Found::Finished(message, ended) => {
                        let Final { state, peer, .. } = ended;
                        let wanted = search.doing.is_none()
                            && search.is_of(message.submission)
                            && search.ended.is_none_or(|wanted| wanted == state);
                        if wanted && search.fits(message.origin, peer) {
                            rows.insert(message.id, self.row(&message, peer, (state.name(), true), open));
                        }
                    }
                }
            }
            left = left.saturating_sub(looked.looks);
            match looked.edge {
                Some(edge) if left > 0 && rows.len() <= limit => before = edge,
                edge => return Ok(edge),
            }
        }
    }

    fn doing_of(&self, ids: Vec<MessageId>) -> Result<BTreeMap<MessageId, (Doing, Option<PeerId>)>, Problem> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let look = move |engine: &engine::Engine, _| {
            let one =
                |id: &MessageId| engine.message(*id).map(|status| (*id, (status.doing, Some(status.peer))));
            ids.iter().filter_map(one).collect()
        };
        self.core.look(look).ok_or_else(gone)
    }

    /// What the archive has, likewise.
    fn in_archive(
        &self,
        (wanted, search): (&view::WantedMessages, &Search),
        before: MessageId,
        open: bool,
        rows: &mut BTreeMap<MessageId, view::MessageRow>,
    ) -> Result<Option<MessageId>, Problem> {
        let Some(history) = self.history.as_ref().filter(|_| search.doing.is_none()) else { return Ok(None) };
        let number = match &search.subscriber {
            // The archive knows messages by number.
            Some(Subscriber { number: None, .. }) => return Ok(None),
            Some(Subscriber { number, .. }) => number.clone(),
            None => wanted.number.clone(),
        };
        let filter = Filter {
            number,
            side: Side::Either,
            account: wanted.account.clone(),
            peer: wanted.peer.clone(),
            state: search.ended,
            direction: None,
            from: search.from,
            until: search.until,
            first: search.submission,
        };
        // The trace says what it was submitted with, and to which subscriber it went.
        let parts = Wanted { body: true, trace: search.submission.is_some() || search.subscriber.is_some() };
        let patience = Duration::from_millis(wanted.patience_ms);
        let after = Some(Cursor::before(before));
        let page = history.archive.page_within(&filter, after, wanted.limit, parts, patience);
        let page = history.runtime.block_on(page).map_err(|error| {
            Problem::new(Kind::Unavailable, format!("the archive cannot be read: {error}"))
        })?;
        let is_wanted = |record: &&Record| {
            search.is_of(record.submission())
                && search.subscriber.as_ref().is_none_or(|subscriber| subscriber.has_record(record))
        };
        for record in page.records.iter().filter(is_wanted) {
            rows.entry(record.id).or_insert_with(|| archived_row(record, open));
        }
        Ok(page.next.map(Cursor::id))
    }
}

fn archived_row(record: &Record, open: bool) -> view::MessageRow {
    let number = |text: &str| shown_address(&Address::new(0, 0, text.as_bytes()), open);
    view::MessageRow {
        id: record.id.to_string(),
        at: record.accepted_at.0,
        state: record.state.name().to_owned(),
        finished: true,
        account: record.account.clone(),
        peer: record.peer.clone(),
        source: number(&record.source),
        destination: number(&record.destination),
        length: record.body.as_ref().map_or(0, Vec::len),
    }
}

impl admin::Messages for Switchyard {
    fn find_messages(&self, wanted: &view::WantedMessages, open: bool) -> Result<view::MessagePage, Problem> {
        let search = self.search(wanted)?;
        let before = match wanted.cursor.as_deref() {
            Some(cursor) => Self::parse_id(cursor).map_err(|_| {
                Problem::new(Kind::BadRequest, format!("cursor: {cursor:?} is no page's `next`"))
            })?,
            None => MessageId(i64::MAX.unsigned_abs()),
        };
        // The messages of a submission have ids from its own on.
        let end = search.submission.map(|submission| MessageId(submission.0.saturating_add(SUBMISSION_IDS)));
        let before = end.map_or(before, |end| end.min(before));
        let mut rows = BTreeMap::new();
        // The store first: what leaves it meanwhile is in the archive already.
        let here = self.here(&search, before, (wanted.limit, open), &mut rows)?;
        let older = self.in_archive((wanted, &search), before, open, &mut rows)?;
        // Below where both were looked at something may be missing.
        let edge = here.max(older);
        if let Some(edge) = edge {
            rows = rows.split_off(&edge);
        }
        let more = rows.len() > wanted.limit;
        let mut messages: Vec<(MessageId, view::MessageRow)> = rows.into_iter().rev().collect();
        messages.truncate(wanted.limit);
        let next = if more { messages.last().map(|(id, _)| *id) } else { edge };
        Ok(view::MessagePage {
            messages: messages.into_iter().map(|(_, row)| row).collect(),
            next: next.map(|id| id.to_string()),
            incomplete: search.subscriber.filter(|subscriber| subscriber.number.is_none()).map(|_| {
                "no core network tells the subscriber's number now: only messages to the subscriber that are not in the \
                 archive yet are found by IMSI"
                    .to_owned()
            }),
        })
    }

    fn by_hand(&self, id: &str, hand: Hand, by: &str) -> Result<(), Problem> {
        let id = Self::parse_id(id)?;
        let (what, needs) = match hand {
            Hand::SendAgain => (engine::Hand::SendAgain, "is not uncertain"),
            Hand::GiveUp => (engine::Hand::GiveUp, "is not uncertain"),
            Hand::Cancel => (engine::Hand::Cancel, "waits for nothing any more that could be called off"),
            Hand::Retry => (engine::Hand::Retry, "does not wait for its next attempt"),
        };
        let who = by.into();
        let event = |reply| Event::ByHand { id, hand: what, by: who, reply };
        let asked = core_loop::ask(&self.core, &self.links.hub(), event);
        tracing::info!(id = id.0, ?hand, by, "something was done with a message by hand");
        match asked {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Refused(Refusal::WrongState)) => {
                Err(Problem::new(Kind::Conflict, format!("message {id} {needs}")))
            }
            Some(_) => Err(Problem::new(Kind::NotFound, format!("message {id} does not wait here"))),
            None => Err(gone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_what_waits_for_it_and_not_what_it_submitted() {
        let (shop, north) = (PeerId(1), PeerId(2));
        let search = |peer| Search {
            number: None,
            submission: None,
            subscriber: None,
            account: None,
            peer: Some(Some(peer)),
            doing: None,
            ended: None,
            from: None,
            until: None,
        };
        assert!(search(north).fits(shop, Some(north)));
        assert!(!search(shop).fits(shop, Some(north)));
        assert!(!search(shop).fits(shop, None));
        assert!(search(shop).fits(north, Some(shop)));
    }

    #[test]
    fn a_number_that_was_anothers_before_has_messages_of_both() {
        let now = Subscriber { imsi: "001010000000002".to_owned(), number: Some("15551".to_owned()) };
        assert!(now.has("10655", "+15551", None) && now.has("15551", "10655", None));
        assert!(now.has("10655", "15551", Some("001010000000002")));
        assert!(!now.has("10655", "15551", Some("001010000000001")), "it was another SIM's then");
        assert!(now.has("15551", "15552", Some("001010000000001")), "sent by it to another subscriber");
        assert!(now.has("10655", "15559", Some("001010000000002")), "under the number of before");
        let unknown = Subscriber { number: None, ..now };
        assert!(unknown.has("10655", "15551", Some("001010000000002")));
        assert!(!unknown.has("10655", "15551", None));
    }
}
