//! Translation of journal records into events.

use crate::cloud_event::{CloudEvent, EventType, rfc3339};
use crate::event_data::{
    AcceptedData, AttemptData, DlrData, EndedData, EventData, GapData, MessageData, PoolData, PriceData,
};
use crate::message_facts::{MessageDirectory, MessageFacts, MessageWindow, attempts};
use crate::options::EventSinkOptions;
use crate::record_source::{BatchRecord, is_dlr};
use journal::Seq;
use model::{
    DlrState, FinalRecord, JournalEntry, MessageId, Notice, NoticeKind, PeerId, PoolId, Step, StepKind,
    SubmitAttempt, Timestamp, WaitState,
};
use serde_json::Value;

/// Translates records for one sink.
pub(crate) struct Translator<'a> {
    pub(crate) options: &'a EventSinkOptions,
    pub(crate) directory: &'a dyn MessageDirectory,
    pub(crate) window: &'a mut MessageWindow,
}

impl Translator<'_> {
    /// Appends the events of a record. The window must have the messages that the record names.
    ///
    /// Ids are made of durable, unique values only: the id of a message; the number of an attempt with the number of
    /// the record; the time of a DLR. So they are the same at each repetition and on each node, whatever the reader has
    /// forgotten.
    pub(crate) fn translate(&mut self, record: &BatchRecord, out: &mut Vec<CloudEvent>) {
        let BatchRecord { seq, batch, at: _ } = record;
        for message in &batch.accepted {
            if let Some(facts) = self.window.get(message.id).filter(|facts| !facts.is_dlr) {
                out.extend(self.accepted(message.id, facts));
            }
        }
        for message in &batch.replaced {
            self.window.put(message.id, MessageFacts::of(message));
        }
        for attempt in &batch.submit_attempts {
            if let Some(facts) = self.window.get(attempt.id).filter(|facts| !facts.is_dlr) {
                out.extend(self.attempt(*seq, attempt, facts));
            }
        }
        for (id, progress) in &batch.progress {
            let peer = match progress.waiting {
                WaitState::Dlr { peer, .. } => Some(peer),
                _ => None,
            };
            self.dlrs(*id, &progress.steps, peer, out);
        }
        for (id, ended) in &batch.finished {
            self.dlrs(*id, &ended.steps, ended.peer, out);
            if let Some(facts) = self.window.get(*id) {
                out.extend(self.ended(*id, facts, ended));
            }
            self.window.remove(*id);
        }
        for id in &batch.dropped {
            self.window.remove(*id);
        }
        if self.options.has_type(EventType::Pool) {
            for part in &batch.pools.journal {
                let entries = (part.first..).zip(&part.entries);
                out.extend(entries.map(|(number, entry)| self.pool(part.pool, number, entry)));
            }
        }
        out.extend(batch.notices.iter().filter_map(|notice| self.notice(notice)));
    }

    /// Common fields of the events about a message; `None` if the sink does not get these events.
    fn message(
        &self,
        id: MessageId,
        facts: &MessageFacts,
        ended: Option<&FinalRecord>,
    ) -> Option<MessageData> {
        let (direction, account) = facts.account(self.directory, ended);
        let numbers = self.options.numbers.display();
        self.options.has_account(&account).then(|| MessageData {
            message: id.to_string(),
            submission: facts.submission.map(|id| id.to_string()),
            direction: direction.name(),
            account,
            source: self.options.redact.source(&facts.source, numbers),
            destination: self.options.redact.destination(&facts.destination, numbers),
        })
    }

    fn event(
        &self,
        kind: EventType,
        id: String,
        about: MessageId,
        time: Timestamp,
        data: EventData,
    ) -> CloudEvent {
        CloudEvent { id, kind, subject: Some(format!("messages/{about}")), time, data }
    }

    fn pool(&self, id: PoolId, number: u64, entry: &JournalEntry) -> CloudEvent {
        let pool = self.window.pool(id).cloned().unwrap_or_else(|| "?".into());
        let row = entry.row.as_ref();
        let data = PoolData {
            pool: pool.clone(),
            entry: number,
            // The number is a sender of messages.
            number: self
                .options
                .redact
                .source_text(&entry.number.to_string(), self.options.numbers.display()),
            change: entry.change,
            state: row.map(|row| row.state),
            by: entry.by.clone(),
            message: row.and_then(|row| row.message).map(|message| message.to_string()),
        };
        CloudEvent {
            // A name may be used for another pool later.
            id: format!("pool-{}-{number}", id.0),
            kind: EventType::Pool,
            subject: Some(format!("pools/{pool}")),
            time: entry.at,
            data: EventData::Pool(data),
        }
    }

    fn notice(&self, notice: &Notice) -> Option<CloudEvent> {
        let (kind, subject) = match notice.kind {
            NoticeKind::Fault => (EventType::Fault, "hooks"),
            NoticeKind::Exchange => (EventType::Exchange, "hooks"),
            NoticeKind::Configuration => (EventType::Configuration, "configuration"),
        };
        if !self.options.has_type(kind) {
            return None;
        }
        let data: Value = serde_json::from_str(&notice.data).unwrap_or_default();
        let subject = match data.get("hook").and_then(Value::as_str) {
            Some(hook) => format!("{subject}/{hook}"),
            None => subject.to_owned(),
        };
        let (id, time) = (notice.id.to_string(), notice.at);
        Some(CloudEvent { id, kind, subject: Some(subject), time, data: EventData::Notice(data) })
    }

    fn accepted(&self, id: MessageId, facts: &MessageFacts) -> Option<CloudEvent> {
        if !self.options.has_type(EventType::Accepted) {
            return None;
        }
        let data = AcceptedData {
            message: self.message(id, facts, None)?,
            segments: facts.segments,
            data_coding: facts.data_coding,
            priority: facts.priority,
            peers: facts.legs.iter().map(|leg| self.directory.name(*leg)).collect(),
        };
        let name = format!("{id}-accepted");
        Some(self.event(EventType::Accepted, name, id, facts.accepted_at, EventData::Accepted(data)))
    }

    fn attempt(&self, seq: Seq, attempt: &SubmitAttempt, facts: &MessageFacts) -> Option<CloudEvent> {
        if !self.options.has_type(EventType::Attempt) {
            return None;
        }
        let id = attempt.id;
        let peer = facts.legs.get(usize::from(attempt.leg));
        let data = AttemptData {
            message: self.message(id, facts, None)?,
            attempt: attempt.attempt,
            peer: peer.map(|peer| self.directory.name(*peer)),
        };
        // An attempt that was never sent is repeated with the same number.
        let name = format!("{id}-attempt-{}-{seq}", attempt.attempt);
        Some(self.event(EventType::Attempt, name, id, attempt.at, EventData::Attempt(data)))
    }

    /// The DLRs in a message's trace for which no events exist. If the trace has lost steps, all its DLRs get events again.
    fn dlrs(&mut self, id: MessageId, steps: &[Step], peer: Option<PeerId>, out: &mut Vec<CloudEvent>) {
        let count = steps.iter().filter(|step| is_dlr(step)).count();
        if count == 0 {
            return;
        }
        let Some(facts) = self.window.get_mut(id).filter(|facts| !facts.is_dlr) else { return };
        let published = if steps.len() >= FinalRecord::MAX_STEPS { 0 } else { facts.published_dlrs };
        facts.published_dlrs = count;
        let Some(facts) = self.window.get(id) else { return };
        if !self.options.has_type(EventType::Dlr) {
            return;
        }
        let Some(message) = self.message(id, facts, None) else { return };
        let mut at_once = 0;
        let mut last_at = None;
        for (index, step) in steps.iter().filter(|step| is_dlr(step)).enumerate() {
            at_once = if last_at == Some(step.at) { at_once + 1 } else { 1 };
            last_at = Some(step.at);
            let (state, error, peer) = match &step.kind {
                StepKind::DlrReceived { state, error } => (*state, *error, peer),
                StepKind::LateDlrReceived { peer, state, error } => (*state, *error, Some(*peer)),
                _ => continue,
            };
            if index < published {
                continue;
            }
            let data = DlrData {
                message: message.clone(),
                state: DlrState::from_octet(state).unwrap_or(DlrState::Unknown).name(),
                error,
                peer: peer.map(|peer| self.directory.name(peer)),
            };
            let name = format!("{id}-dlr-{}-{at_once}", step.at.0);
            out.push(self.event(EventType::Dlr, name, id, step.at, EventData::Dlr(data)));
        }
    }

    fn ended(&self, id: MessageId, facts: &MessageFacts, ended: &FinalRecord) -> Option<CloudEvent> {
        if !self.options.has_type(EventType::Ended) {
            return None;
        }
        let peer_id = &ended.peer_id.0;
        let other = facts.other_party(ended);
        let message = self.message(id, facts, Some(ended))?;
        // For an MO message, the other party is the account, and the peer is its origin.
        let peer = if self.directory.is_account(facts.origin) { other } else { Some(facts.origin) };
        let data = EndedData {
            message,
            state: ended.state.name(),
            error: ended.error,
            peer: peer.map(|peer| self.directory.name(peer)),
            peer_message_id: (!peer_id.is_empty()).then(|| model::escape(peer_id)),
            attempts: attempts(ended),
            segments: facts.segments,
            accepted_at: rfc3339(facts.accepted_at),
            price: facts.price(ended).map(|(amount, account, state)| PriceData {
                amount,
                account,
                state: state.name(),
            }),
        };
        Some(self.event(EventType::Ended, format!("{id}-ended"), id, ended.at, EventData::Ended(data)))
    }
}

/// The event for journal records that have no events.
pub(crate) fn gap(first: Seq, last: Seq, now: Timestamp) -> CloudEvent {
    CloudEvent {
        id: format!("gap-{first}-{last}"),
        kind: EventType::Gap,
        subject: None,
        time: now,
        data: EventData::Gap(GapData {
            first: first.0,
            last: last.0,
            reason: "the journal has no longer these records",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_facts::DirectoryError;
    use configuration::Keys;
    use model::{
        Address, Batch, FinalState, JournalPart, Leg, Message, MessageProgress, PluginVersion, PoolChange,
        PoolName, Priority, RoutingDecision, Verdict,
    };
    use std::sync::Arc;

    const ID: MessageId = MessageId(1_000_000_042);
    const ACCOUNT: PeerId = PeerId(0);
    const UPSTREAM: PeerId = PeerId(1);

    struct Names;

    impl MessageDirectory for Names {
        fn name(&self, peer: PeerId) -> Arc<str> {
            if peer == ACCOUNT { "shop" } else { "upstream" }.into()
        }

        fn is_account(&self, peer: PeerId) -> bool {
            peer == ACCOUNT
        }

        fn pool_name(&self, _pool: PoolId) -> Result<Option<PoolName>, DirectoryError> {
            Ok(None)
        }

        fn messages(&self, ids: &[MessageId]) -> Result<Vec<Option<Message>>, DirectoryError> {
            Ok(vec![None; ids.len()])
        }
    }

    fn message() -> Message {
        let by = Arc::new(PluginVersion { plugin: "router".to_owned(), version: "1".to_owned() });
        Message {
            id: ID,
            priority: Priority::new(1),
            dlr_request: model::DlrRequest::FINAL,
            accepted_at: Timestamp(1_000),
            ..Message::new(
                ACCOUNT,
                Address::new(0, 0, b"10655"),
                Address::international("8613012345678"),
                model::Text::default(),
                Timestamp(9_000),
                RoutingDecision::new(Verdict::Forward(vec![Leg::to(UPSTREAM)]), by),
            )
        }
    }

    fn dlr(at: u64, state: u8) -> Step {
        Step { at: Timestamp(at), kind: StepKind::DlrReceived { state, error: 3 } }
    }

    /// Ids and types of the events of a batch.
    fn events(options: &EventSinkOptions, window: &mut MessageWindow, batch: Batch) -> Vec<CloudEvent> {
        for message in &batch.accepted {
            window.put(message.id, MessageFacts::of(message));
        }
        let mut found = Vec::new();
        let record = BatchRecord { seq: Seq(7), at: Timestamp(0), batch };
        Translator { options, directory: &Names, window }.translate(&record, &mut found);
        found
    }

    fn ids(events: &[CloudEvent]) -> Vec<&str> {
        events.iter().map(|event| event.id.as_str()).collect()
    }

    fn waiting(steps: Vec<Step>) -> Batch {
        let waiting = WaitState::Dlr { peer: UPSTREAM, since: Timestamp(2_000) };
        let progress = MessageProgress {
            waiting,
            attempts: 1,
            leg: 0,
            segments: Vec::new(),
            earlier: Vec::new(),
            steps,
        };
        Batch { progress: vec![(ID, progress)], ..Batch::default() }
    }

    fn finished(steps: Vec<Step>) -> Batch {
        let ended = FinalRecord {
            state: FinalState::Delivered,
            at: Timestamp(4_000),
            error: 0,
            peer: Some(UPSTREAM),
            peer_id: Default::default(),
            steps,
        };
        Batch { finished: vec![(ID, ended)], ..Batch::default() }
    }

    #[test]
    fn a_message_has_events_from_its_acceptance_to_its_end() {
        let (options, mut window) = (EventSinkOptions::defaults(), MessageWindow::default());
        let attempt = SubmitAttempt { id: ID, attempt: 1, leg: 0, at: Timestamp(1_500) };
        let accepted =
            Batch { accepted: vec![Arc::new(message())], submit_attempts: vec![attempt], ..Batch::default() };
        let found = events(&options, &mut window, accepted);
        assert_eq!(ids(&found), ["1000000042-accepted", "1000000042-attempt-1-7"]);
        let EventData::Attempt(data) = &found[1].data else { panic!("{found:?}") };
        assert_eq!((data.peer.as_deref(), &*data.message.destination), (Some("upstream"), "8613*******78"));
        // The steps of a message are in each later record; each DLR causes one event.
        let found = events(&options, &mut window, waiting(vec![dlr(2_500, 1)]));
        assert_eq!(ids(&found), ["1000000042-dlr-2500-1"]);
        let found = events(&options, &mut window, waiting(vec![dlr(2_500, 1), dlr(2_500, 1)]));
        assert_eq!(ids(&found), ["1000000042-dlr-2500-2"]);
        let steps = vec![dlr(2_500, 1), dlr(2_500, 1), dlr(4_000, 2)];
        let found = events(&options, &mut window, finished(steps.clone()));
        assert_eq!(ids(&found), ["1000000042-dlr-4000-1", "1000000042-ended"]);
        let EventData::Ended(data) = &found[1].data else { panic!("{found:?}") };
        assert_eq!(
            (data.state, &*data.message.account, data.peer.as_deref()),
            ("delivered", "shop", Some("upstream"))
        );
        // A reader that has forgotten the message repeats the DLR events, with the same ids.
        window.put(ID, MessageFacts::of(&message()));
        let found = events(&options, &mut window, finished(steps));
        assert_eq!(
            ids(&found),
            ["1000000042-dlr-2500-1", "1000000042-dlr-2500-2", "1000000042-dlr-4000-1", "1000000042-ended"]
        );
    }

    #[test]
    fn dlrs_for_submitters_and_unknown_messages_have_no_events() {
        let (options, mut window) = (EventSinkOptions::defaults(), MessageWindow::default());
        assert!(events(&options, &mut window, finished(vec![dlr(1, 2)])).is_empty());
        let content = model::DlrContent {
            of: ID,
            state: DlrState::Delivered,
            intermediate: false,
            error: 0,
            network_error: None,
            submitted_at: Timestamp(1),
            done_at: Timestamp(2),
            segments: (1, 1),
            segment: 0,
            peer_id: Default::default(),
        };
        let message = Message { kind: model::MessageKind::Dlr(Box::new(content)), ..message() };
        let attempt = SubmitAttempt { id: ID, attempt: 1, leg: 0, at: Timestamp(1_500) };
        let batch =
            Batch { accepted: vec![Arc::new(message)], submit_attempts: vec![attempt], ..Batch::default() };
        assert!(events(&options, &mut window, batch).is_empty());
    }

    #[test]
    fn types_and_accounts_are_chosen() {
        let batch = || Batch { accepted: vec![Arc::new(message())], ..Batch::default() };
        let mut window = MessageWindow::default();
        for (types, accounts, count) in
            [("accepted", "shop", 1), ("ended", "shop", 0), ("accepted", "other", 0)]
        {
            let options = EventSinkOptions {
                types: vec![types.to_owned()],
                accounts: vec![accounts.to_owned()],
                ..EventSinkOptions::defaults()
            };
            assert_eq!(events(&options, &mut window, batch()).len(), count, "{types} {accounts}");
        }
    }

    #[test]
    fn pools_and_notices_have_events() {
        let (options, mut window) = (EventSinkOptions::defaults(), MessageWindow::default());
        window.put_pool(PoolId(3), "support".into());
        let entry = JournalEntry {
            at: Timestamp(5),
            number: "491701234567".parse().unwrap(),
            change: PoolChange::Call,
            row: None,
            by: None,
        };
        let notice = Notice {
            kind: NoticeKind::Exchange,
            id: "hook-router-5-activated".into(),
            at: Timestamp(6),
            data: r#"{"hook":"router","event":"activated"}"#.into(),
        };
        let mut batch = Batch { notices: vec![notice], ..Batch::default() };
        batch.pools.journal.push(JournalPart {
            pool: PoolId(3),
            first: 11,
            serial: 1,
            entries: vec![entry; 2],
        });
        let found = events(&options, &mut window, batch);
        assert_eq!(ids(&found), ["pool-3-11", "pool-3-12", "hook-router-5-activated"]);
        assert_eq!(found[0].subject.as_deref(), Some("pools/support"));
        assert_eq!(found[2].subject.as_deref(), Some("hooks/router"));
        let EventData::Pool(data) = &found[0].data else { panic!("{found:?}") };
        assert_eq!(data.number, "4917******67");
    }
}
