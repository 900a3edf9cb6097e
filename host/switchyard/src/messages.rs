//! The message search over memory, store and archive, and admin actions on a single message.

use crate::arguments::{parse_id, time};
use crate::core_handle;
use crate::message_service::MessageService;
use crate::message_state::message_state;
use crate::problems::shutting_down_problem;
use admin::{MessageAction, Problem, ProblemKind};
use api::MessageStateView;
use archive::{ArchiveFilter, Record, RecordFields, Side};
use codec::RecordSummary;
use engine::{EngineAnswer, Event, MessageState};
use model::{
    AccountScope, Address, FinalState, Message, MessageId, NumberDisplay, PeerId, Refusal, SUBMISSION_IDS,
    Timestamp, Verdict,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use store::{ScanStep, StoredMessage};

/// Maximum number of store records scanned per page.
const SCAN_LIMIT: usize = 20_000;
/// Maximum backward step of the wall clock: ids always ascend, times may not.
const CLOCK_SLACK_MS: u64 = 3_600_000;

/// The search criteria.
struct Search {
    /// Without leading plus signs.
    number: Option<String>,
    submission: Option<MessageId>,
    /// The subscriber whose messages are searched.
    subscriber: Option<Subscriber>,
    /// `Some(None)` if no peer of that name ever existed.
    account: Option<Option<PeerId>>,
    peer: Option<Option<PeerId>>,
    state: Option<MessageStateView>,
    /// The state, if it is a final state.
    final_state: Option<FinalState>,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    /// The accounts of the caller's scope; `None`: all.
    within: Option<HashSet<PeerId>>,
}

/// A subscriber whose messages are searched.
struct Subscriber {
    imsi: String,
    /// The subscriber's current number without a plus sign, if a core network knows it.
    number: Option<String>,
}

impl Subscriber {
    /// Whether a message comes from or goes to this subscriber. `imsi` is the subscriber resolved for the destination:
    /// a reassigned number has messages of both subscribers.
    fn matches(&self, source: &str, destination: &str, imsi: Option<&str>) -> bool {
        let number = self.number.as_deref();
        match imsi {
            Some(imsi) if imsi == self.imsi => true,
            Some(_) => number == Some(strip_plus(source)),
            None => {
                number.is_some_and(|number| number == strip_plus(source) || number == strip_plus(destination))
            }
        }
    }

    fn has_message(&self, message: &Message) -> bool {
        let imsi = resolved_imsi(&message.routed.verdict);
        self.matches(&message.source.text(), &message.destination.text(), imsi.as_deref())
    }

    fn has_record(&self, record: &Record) -> bool {
        let verdict = record.decoded_trace().and_then(|trace| trace.verdict);
        let imsi = verdict.as_ref().and_then(resolved_imsi);
        self.matches(&record.source, &record.destination, imsi.as_deref())
    }
}

/// The IMSI of the subscriber that a number was resolved to.
fn resolved_imsi<P>(verdict: &Verdict<P>) -> Option<Cow<'_, str>> {
    let Verdict::Forward(legs) = verdict else { return None };
    let imsi = legs.iter().find_map(|leg| leg.imsi.as_ref())?;
    Some(String::from_utf8_lossy(&imsi.0))
}

fn strip_plus(number: &str) -> &str {
    number.trim_start_matches('+')
}

impl Search {
    fn check_header(&self, id: MessageId, summary: &RecordSummary) -> ScanStep {
        if self.submission.is_some_and(|submission| id < submission) {
            return ScanStep::Stop;
        }
        if self.from.is_some_and(|from| summary.accepted_at.0.saturating_add(CLOCK_SLACK_MS) < from.0) {
            return ScanStep::Stop;
        }
        let is = |number: &str, address: &Address| strip_plus(&address.text()) == number;
        let fits = !summary.is_own_dlr
            && self.from.is_none_or(|from| summary.accepted_at >= from)
            && self.until.is_none_or(|until| summary.accepted_at < until)
            && self
                .number
                .as_deref()
                .is_none_or(|number| is(number, &summary.source) || is(number, &summary.destination));
        if fits { ScanStep::Take } else { ScanStep::Skip }
    }

    fn matches_submission(&self, submission: Option<MessageId>) -> bool {
        self.submission.is_none() || self.submission == submission
    }

    fn matches_subscriber(&self, message: &Message) -> bool {
        self.subscriber.as_ref().is_none_or(|subscriber| subscriber.has_message(message))
    }

    fn matches_peers(&self, origin: PeerId, peer: Option<PeerId>) -> bool {
        let is = |expected: Option<PeerId>, actual: Option<PeerId>| expected.is_some() && expected == actual;
        // The account of an MO message is its destination.
        let is_within = |peer: PeerId| self.within.as_ref().is_none_or(|within| within.contains(&peer));
        (is_within(origin) || peer.is_some_and(is_within))
            && self.account.is_none_or(|account| is(account, Some(origin)) || is(account, peer))
            && self.peer.is_none_or(|expected| is(expected, peer))
    }
}

/// Display of numbers in rows, and the scope of visible messages and names.
type DisplayScope<'a> = (NumberDisplay, &'a AccountScope);

impl MessageService {
    /// The current number of a subscriber, without a plus sign; `None` if no core network knows it.
    fn number_of(&self, imsi: &str) -> Result<Option<String>, Problem> {
        let imsi = imsi.parse().map_err(|_| {
            let detail = format!("imsi: is {imsi:?}, and must be 6 to 15 digits");
            Problem::new(ProblemKind::BadRequest, detail)
        })?;
        let key = gsm::SubscriberKey::Imsi(imsi);
        let found = |network: &Arc<gsm::GsmNetwork>| network.subscriber(&key).ok().flatten()?.msisdn;
        Ok(self.networks.iter().find_map(found))
    }

    fn search(&self, request: &api::MessageFilter, scope: &AccountScope) -> Result<Search, Problem> {
        let at = |name: &str, text: Option<&str>| {
            let Some(text) = text else { return Ok(None) };
            let bad = || {
                let detail = format!(
                    "{name}: is {text:?}, and must be a time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch"
                );
                Problem::new(ProblemKind::BadRequest, detail)
            };
            time(text).map(Some).ok_or_else(bad)
        };
        let id = |name: &Option<String>| name.as_deref().map(|name| self.directory.load().id(name));
        let state = request.state.as_deref().map(|name| {
            MessageStateView::ALL.iter().copied().find(|state| state.name() == name).ok_or_else(|| {
                let names: Vec<&str> = MessageStateView::ALL.iter().map(|state| state.name()).collect();
                let detail = format!("state: is {name:?}, and must be one of {}", names.join(", "));
                Problem::new(ProblemKind::BadRequest, detail)
            })
        });
        let state = state.transpose()?;
        let final_state = FinalState::ALL.into_iter().find(|end| Some(MessageStateView::from(*end)) == state);
        let subscriber = match (request.imsi.as_deref(), &request.number) {
            (None, _) => None,
            (Some(_), Some(_)) => {
                return Err(Problem::new(ProblemKind::BadRequest, "imsi: cannot be combined with number"));
            }
            (Some(imsi), None) => {
                let number = self.number_of(imsi)?;
                Some(Subscriber { imsi: imsi.to_owned(), number })
            }
        };
        Ok(Search {
            submission: request.submission.as_deref().map(parse_id).transpose()?,
            subscriber,
            number: request.number.as_deref().map(|number| strip_plus(number).to_owned()),
            account: id(&request.account),
            peer: id(&request.peer),
            state,
            final_state,
            from: at("from", request.from.as_deref())?,
            until: at("until", request.until.as_deref())?,
            within: scope.accounts().map(|accounts| {
                let directory = self.directory.load();
                accounts.iter().filter_map(|account| directory.id(account)).collect()
            }),
        })
    }

    fn row(
        &self,
        message: &Message,
        peer: Option<PeerId>,
        state: (MessageStateView, bool),
        (numbers, scope): DisplayScope<'_>,
    ) -> api::MessageRowView {
        api::MessageRowView {
            id: message.id.to_string(),
            at: message.accepted_at.0,
            state: state.0,
            finished: state.1,
            account: scope.shown_peer(&self.name_of(message.origin)).to_owned(),
            peer: peer.map_or(String::new(), |peer| scope.shown_peer(&self.name_of(peer)).to_owned()),
            source: numbers.address(&message.source),
            destination: numbers.address(&message.destination),
            length: message.text.octets.len(),
            partition: None,
        }
    }

    /// Searches the store. Returns the id down to which it was searched.
    fn search_store(
        &self,
        search: &Search,
        before: MessageId,
        (limit, shown): (usize, DisplayScope<'_>),
        rows: &mut BTreeMap<MessageId, api::MessageRowView>,
    ) -> Result<Option<MessageId>, Problem> {
        let (mut before, mut left) = (before, SCAN_LIMIT);
        loop {
            let most = limit + 1 - rows.len();
            let looked =
                self.store.scan_backwards(before, left, most, |id, summary| search.check_header(id, summary));
            let mut looked =
                looked.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
            looked.found.retain(|found| search.matches_subscriber(found.message()));
            let waiting: Vec<MessageId> = looked
                .found
                .iter()
                .filter_map(|found| match found {
                    StoredMessage::Waiting(message, _) => Some(message.id),
                    StoredMessage::Finished(..) => None,
                })
                .collect();
            let statuses = self.statuses_of(waiting)?;
            for found in looked.found {
                match found {
                    StoredMessage::Waiting(message, _) => {
                        // The message may have finished in the meantime.
                        let (state, peer) =
                            statuses.get(&message.id).copied().unwrap_or((MessageState::Ending, None));
                        let state = message_state(state);
                        let matches = search.matches_submission(message.submission)
                            && search.state.is_none_or(|expected| expected == state);
                        if matches && search.matches_peers(message.origin, peer) {
                            rows.insert(message.id, self.row(&message, peer, (state, false), shown));
                        }
                    }
                    StoredMessage::Finished(message, ended) => {
                        let (state, peer) = (MessageStateView::from(ended.state), ended.peer);
                        let matches = search.matches_submission(message.submission)
                            && search.state.is_none_or(|expected| expected == state);
                        if matches && search.matches_peers(message.origin, peer) {
                            rows.insert(message.id, self.row(&message, peer, (state, true), shown));
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

    fn statuses_of(
        &self,
        ids: Vec<MessageId>,
    ) -> Result<BTreeMap<MessageId, (MessageState, Option<PeerId>)>, Problem> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let query = move |engine: &engine::Engine, _| {
            let one =
                |id: &MessageId| engine.message(*id).map(|status| (*id, (status.state, Some(status.peer))));
            ids.iter().filter_map(one).collect()
        };
        self.core.query(query).ok_or_else(shutting_down_problem)
    }

    /// Searches the archive. Returns the id down to which it was searched.
    fn search_archive(
        &self,
        (request, search): (&api::MessageFilter, &Search),
        before: MessageId,
        (numbers, scope): DisplayScope<'_>,
        rows: &mut BTreeMap<MessageId, api::MessageRowView>,
    ) -> Result<Option<MessageId>, Problem> {
        let is_archivable = search.state.is_none() || search.final_state.is_some();
        let Some(history) = self.history.as_ref().filter(|_| is_archivable) else { return Ok(None) };
        let number = match &search.subscriber {
            // The archive is indexed by number.
            Some(Subscriber { number: None, .. }) => return Ok(None),
            Some(Subscriber { number, .. }) => number.clone(),
            None => request.number.clone(),
        };
        let filter = ArchiveFilter {
            number,
            side: Side::Either,
            account: request.account.clone(),
            within: scope.accounts().map(Into::into),
            peer: request.peer.clone(),
            state: search.final_state,
            direction: None,
            from: search.from,
            until: search.until,
            first: search.submission,
        };
        // The trace contains the submission id and the IMSI.
        let fields =
            RecordFields { body: true, trace: search.submission.is_some() || search.subscriber.is_some() };
        let timeout = Duration::from_millis(request.timeout_ms);
        let after = Some(before);
        let page = history.archive.page_within(&filter, after, request.limit, fields, timeout);
        let page = history.runtime.block_on(page).map_err(|error| {
            Problem::new(ProblemKind::Unavailable, format!("the archive cannot be read: {error}"))
        })?;
        let is_wanted = |record: &Record| {
            search.matches_submission(record.submission())
                && search.subscriber.as_ref().is_none_or(|subscriber| subscriber.has_record(record))
        };
        let records = page.records.into_iter().filter(is_wanted);
        for record in records.filter_map(|record| record.within(scope)) {
            rows.entry(record.id).or_insert_with(|| archived_row(&record, numbers));
        }
        Ok(page.next)
    }
}

/// Whether a search names an account or peer outside the caller's scope. It then finds nothing, as with an unknown
/// name.
pub(crate) fn is_foreign(scope: &AccountScope, account: Option<&str>, peer: Option<&str>) -> bool {
    account.is_some_and(|account| !scope.has_account(account))
        || peer.is_some_and(|peer| !scope.has_peer(peer))
}

fn archived_row(record: &Record, numbers: NumberDisplay) -> api::MessageRowView {
    api::MessageRowView {
        id: record.id.to_string(),
        at: record.accepted_at.0,
        state: record.state.into(),
        finished: true,
        account: record.account.clone(),
        peer: record.peer.clone(),
        source: numbers.text(&record.source),
        destination: numbers.text(&record.destination),
        length: record.body.as_ref().map_or(0, Vec::len),
        partition: None,
    }
}

impl admin::Messages for MessageService {
    fn find_messages(
        &self,
        request: &api::MessageFilter,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<api::MessagePageView, Problem> {
        let search = self.search(request, scope)?;
        let before = match request.cursor.as_deref() {
            Some(cursor) => parse_id(cursor).map_err(|_| {
                Problem::new(
                    ProblemKind::BadRequest,
                    format!("cursor: {cursor:?} is not the `next` of a page"),
                )
            })?,
            None => MessageId(i64::MAX.unsigned_abs()),
        };
        if is_foreign(scope, request.account.as_deref(), request.peer.as_deref()) {
            return Ok(api::MessagePageView::default());
        }
        // The ids of a submission's messages begin with the submission's id.
        let end = search.submission.map(|submission| MessageId(submission.0.saturating_add(SUBMISSION_IDS)));
        let before = end.map_or(before, |end| end.min(before));
        let mut rows = BTreeMap::new();
        // The store first: a message that leaves the store in the meantime is in the archive already.
        let stored = self.search_store(&search, before, (request.limit, (numbers, scope)), &mut rows)?;
        let archived = self.search_archive((request, &search), before, (numbers, scope), &mut rows)?;
        // Below the higher of the two limits, only one of the two was searched.
        let edge = stored.max(archived);
        if let Some(edge) = edge {
            rows = rows.split_off(&edge);
        }
        let more = rows.len() > request.limit;
        let mut messages: Vec<(MessageId, api::MessageRowView)> = rows.into_iter().rev().collect();
        messages.truncate(request.limit);
        let next = if more { messages.last().map(|(id, _)| *id) } else { edge };
        Ok(api::MessagePageView {
            messages: messages.into_iter().map(|(_, row)| row).collect(),
            next: next.map(|id| id.to_string()),
            incomplete: search.subscriber.filter(|subscriber| subscriber.number.is_none()).map(|_| {
                "no core network knows the subscriber's number: only messages to the subscriber that are not in the \
                 archive yet are found by IMSI"
                    .to_owned()
            }),
            missing: Vec::new(),
        })
    }

    fn apply_message_action(
        &self,
        id: &str,
        action: MessageAction,
        by: &str,
        scope: &AccountScope,
    ) -> Result<(), Problem> {
        let id = parse_id(id)?;
        let not_waiting = || Problem::new(ProblemKind::NotFound, format!("message {id} is not waiting"));
        if *scope != AccountScope::Everything {
            let found = self.store.find(id);
            let found = found.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
            if !found.is_some_and(|found| scope.has_account(&self.name_of(found.message().origin))) {
                return Err(not_waiting());
            }
        }
        let (what, needs) = match action {
            MessageAction::SendAgain => (engine::AdminAction::SendAgain, "is not uncertain"),
            MessageAction::GiveUp => (engine::AdminAction::GiveUp, "is not uncertain"),
            MessageAction::Cancel => (engine::AdminAction::Cancel, "is not waiting any more"),
            MessageAction::Retry => (engine::AdminAction::Retry, "is not waiting for its next attempt"),
        };
        let who = by.into();
        let event = |reply| Event::AdminAction { id, action: what, by: who, reply };
        let answer = core_handle::request(&self.core, &self.links.registry(), event);
        tracing::info!(id = id.0, ?action, by, "message action by admin");
        match answer {
            Some(EngineAnswer::Done) => Ok(()),
            Some(EngineAnswer::Refused(Refusal::WrongState)) => {
                Err(Problem::new(ProblemKind::Conflict, format!("message {id} {needs}")))
            }
            Some(_) => Err(not_waiting()),
            None => Err(shutting_down_problem()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_filter_matches_queued_and_not_submitted_messages() {
        let (shop, north) = (PeerId(1), PeerId(2));
        let search = |peer| Search {
            number: None,
            submission: None,
            subscriber: None,
            account: None,
            peer: Some(Some(peer)),
            state: None,
            final_state: None,
            from: None,
            until: None,
            within: None,
        };
        assert!(search(north).matches_peers(shop, Some(north)));
        assert!(!search(shop).matches_peers(shop, Some(north)));
        assert!(!search(shop).matches_peers(shop, None));
        assert!(search(shop).matches_peers(north, Some(shop)));
    }

    #[test]
    fn a_scope_has_what_its_accounts_submit_and_get() {
        let (shop, rival, north) = (PeerId(1), PeerId(2), PeerId(3));
        let search = Search {
            number: None,
            submission: None,
            subscriber: None,
            account: None,
            peer: None,
            state: None,
            final_state: None,
            from: None,
            until: None,
            within: Some([shop].into()),
        };
        assert!(search.matches_peers(shop, Some(north)) && search.matches_peers(north, Some(shop)));
        assert!(!search.matches_peers(rival, Some(north)) && !search.matches_peers(north, None));
    }

    #[test]
    fn a_reassigned_number_matches_messages_of_both_subscribers() {
        let now = Subscriber { imsi: "001010000000002".to_owned(), number: Some("15551".to_owned()) };
        assert!(now.matches("10655", "+15551", None) && now.matches("15551", "10655", None));
        assert!(now.matches("10655", "15551", Some("001010000000002")));
        assert!(
            !now.matches("10655", "15551", Some("001010000000001")),
            "the number belonged to another SIM at that time"
        );
        assert!(now.matches("15551", "15552", Some("001010000000001")), "it is the sender, not the receiver");
        assert!(now.matches("10655", "15559", Some("001010000000002")), "under the previous number");
        let unknown = Subscriber { number: None, ..now };
        assert!(unknown.matches("10655", "15551", Some("001010000000002")));
        assert!(!unknown.matches("10655", "15551", None));
    }
}
