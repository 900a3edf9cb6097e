//! Tests of lists and followers with a real store and a test archive.

use crate::records::{ListQuery, RecordReader, Viewer};
use crate::wire::{ShellDirection, ShellMessage};
use crate::{
    MailboxIndex, ShellArchivePage, ShellArchiveQuery, ShellRecord, ShellRecordEnd, ShellRecordSource,
    SubscriberNumber,
};
use bytes::Bytes;
use model::{
    Address, Batch, DlrContent, DlrRequest, DlrState, FinalRecord, FinalState, Message, MessageId,
    MessageKind, PeerId, PeerMessageId, PluginVersion, Priority, RejectReason, RoutingDecision, Text,
    Timestamp, Verdict,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Store, StoreOptions};

const ALICE: &str = "+4915100001";
const BOB: &str = "+4915100002";
const CAROL: &str = "+4915100003";

fn number(text: &str) -> SubscriberNumber {
    text.parse().unwrap()
}

/// A test archive, which can be made unavailable.
#[derive(Default)]
struct Archive {
    messages: Mutex<BTreeMap<MessageId, ShellRecord>>,
    down: Mutex<bool>,
}

impl ShellRecordSource for Archive {
    fn current_states(&self, ids: Vec<MessageId>) -> Vec<Option<&'static str>> {
        ids.iter().map(|_| Some("queued")).collect()
    }

    fn describe_error(&self, end: &FinalRecord) -> Option<String> {
        (end.error == 27).then(|| "network: no paging response (27)".to_owned())
    }

    fn search_archive(&self, query: ShellArchiveQuery) -> Result<ShellArchivePage, String> {
        if *self.down.lock() {
            return Err("it is down".to_owned());
        }
        let all = self.messages.lock();
        // As in SQL: compares digits only, including alphanumeric senders.
        let fits = |address: &Address| {
            query.number.as_ref().is_none_or(|number| address.value.as_slice() == number.digits())
        };
        let mut found: Vec<ShellRecord> = all
            .range(..query.before)
            .rev()
            .map(|(_, record)| record.clone())
            .filter(|record| fits(&record.destination) || !query.inbox && fits(&record.source))
            .filter(|record| query.accepted.as_ref().is_none_or(|times| times.contains(&record.accepted_at)))
            .take(query.limit + 1)
            .collect();
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found.last().filter(|_| more).map(|last| last.id);
        Ok(ShellArchivePage { messages: found, next })
    }
}

struct Fixture {
    reader: Arc<RecordReader>,
    archive: Arc<Archive>,
    next: u64,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { cache: 1 << 20, ..StoreOptions::default() };
        let store = Arc::new(Store::open(&folder.path().join("switchyard.redb"), options).unwrap());
        let archive = Arc::new(Archive::default());
        let mailbox_index = Arc::new(MailboxIndex::new(store.clone()));
        let reader = Arc::new(RecordReader { store, mailbox_index, records: archive.clone() });
        Self { reader, archive, next: 1, _folder: folder }
    }

    fn commit(&self, batch: Batch) {
        let observe = |batch: &Batch| self.reader.mailbox_index.observe(batch);
        self.reader.store.commit_observed(batch, observe).unwrap();
    }

    fn message(&mut self, source: Address, to: &str, text: &str) -> Message {
        let id = MessageId(self.next);
        self.next += 1;
        Message {
            id,
            kind: MessageKind::Text,
            origin: PeerId(1),
            source,
            destination: number(to).address(),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            dlr_request: DlrRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text { octets: Bytes::copy_from_slice(text.as_bytes()), data_coding: 1, ..Text::default() },
            tlvs: Bytes::new(),
            protocol_fields: Bytes::new(),
            sealed: None,
            accepted_at: Timestamp(1_795_000_000_000 + id.0),
            scheduled: None,
            expires_at: Timestamp(0),
            routed: RoutingDecision::new(
                Verdict::Reject(RejectReason::NoRoute),
                Arc::new(PluginVersion { plugin: String::new(), version: String::new() }),
            ),
        }
    }

    fn accept(&mut self, from: &str, to: &str, text: &str) -> MessageId {
        let message = self.message(number(from).address(), to, text);
        let id = message.id;
        self.commit(Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
        id
    }

    /// Accepts a segment with this reference in a user data header.
    fn segment(&mut self, to: &str, reference: u8, (number, total): (u8, u8), words: &str) -> MessageId {
        let mut message = self.message(self::number(BOB).address(), to, "");
        let octets = [&[5, 0, 3, reference, total, number], words.as_bytes()].concat();
        message.text = Text { octets: octets.into(), data_coding: 1, udhi: true, payload: false };
        let id = message.id;
        self.commit(Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
        id
    }

    fn finish(&self, id: MessageId) {
        self.end(id, FinalState::Delivered, 0);
    }

    fn end(&self, id: MessageId, state: FinalState, error: u32) {
        let end = FinalRecord {
            state,
            at: Timestamp(1_795_000_000_900),
            error,
            peer: None,
            peer_id: PeerMessageId::default(),
            steps: Vec::new(),
        };
        self.commit(Batch { finished: vec![(id, end)], ..Batch::default() });
    }

    /// Archives as the pump does: first the archive, then a commit that removes it from the store.
    fn archive(&self, id: MessageId) {
        let Some(store::StoredMessage::Finished(message, end)) = self.reader.store.find(id).unwrap() else {
            panic!("{id} is not finished")
        };
        let segment = message.segment();
        let record = ShellRecord {
            id,
            segment,
            source: message.source,
            destination: message.destination,
            text: message.text,
            accepted_at: message.accepted_at,
            end: Some(ShellRecordEnd { state: end.state, at: end.at, error: end.error, cause: None }),
        };
        self.archive.messages.lock().insert(id, record);
        self.commit(Batch { archived: vec![id], ..Batch::default() });
    }

    fn page(&self, view: &Viewer, of: Option<&str>, inbox: bool, before: u64, limit: usize) -> Page {
        let query = ListQuery { number: of.map(number), inbox, before: MessageId(before), limit };
        let page = self.reader.page(view, &query).unwrap();
        let ids = page.messages.iter().map(|item| item.id.parse::<MessageId>().unwrap().0).collect();
        Page {
            ids,
            next: page.next.map(|next| next.parse::<MessageId>().unwrap().0),
            incomplete: page.incomplete.is_some(),
            items: page.messages,
        }
    }
}

#[derive(Debug)]
struct Page {
    ids: Vec<u64>,
    next: Option<u64>,
    incomplete: bool,
    items: Vec<ShellMessage>,
}

const NOW: u64 = u64::MAX;

#[tokio::test]
async fn list_merges_store_and_archive() {
    let mut fixture = Fixture::new();
    let (alice, bob) = (number(ALICE), number(BOB));
    // Some messages are accepted before the mailbox is opened, others after it.
    for text in ["1", "2", "3", "4"] {
        fixture.accept(ALICE, BOB, text);
    }
    for id in 1..=3 {
        fixture.finish(MessageId(id));
    }
    fixture.archive(MessageId(1));
    fixture.archive(MessageId(2));
    fixture.reader.mailbox_index.open(&alice).await.unwrap();
    fixture.accept(CAROL, BOB, "of others");
    fixture.accept(BOB, ALICE, "6");
    fixture.accept(ALICE, ALICE, "7");
    fixture.finish(MessageId(6));
    let view = Viewer::Subscriber(alice.clone());
    let all = fixture.page(&view, Some(ALICE), false, NOW, 10);
    assert_eq!((all.ids.as_slice(), all.next), (&[7, 6, 4, 3, 2, 1][..], None));
    let states: Vec<&str> = all.items.iter().map(|item| item.state.as_str()).collect();
    assert_eq!(states, ["queued", "delivered", "queued", "delivered", "delivered", "delivered"]);
    assert_eq!(all.items[2].text.as_deref(), Some("4"));
    assert_eq!(
        (all.items[1].direction, all.items[2].direction),
        (Some(ShellDirection::In), Some(ShellDirection::Out))
    );
    assert_eq!(fixture.page(&view, Some(ALICE), true, NOW, 10).ids, [7, 6]);
    // Pages of any size give the same result.
    for limit in 1..=7 {
        let (mut before, mut ids) = (NOW, Vec::new());
        loop {
            let page = fixture.page(&view, Some(ALICE), false, before, limit);
            assert!(page.ids.len() <= limit);
            ids.extend(page.ids);
            match page.next {
                Some(next) => before = next,
                None => break,
            }
        }
        assert_eq!(ids, [7, 6, 4, 3, 2, 1], "in pages of {limit}");
    }
    // A message that is archived during a query is listed once.
    fixture.archive(MessageId(3));
    fixture.archive(MessageId(6));
    assert_eq!(fixture.page(&view, Some(ALICE), false, NOW, 10).ids, [7, 6, 4, 3, 2, 1]);
    *fixture.archive.down.lock() = true;
    let page = fixture.page(&view, Some(ALICE), false, NOW, 10);
    assert_eq!((page.ids.as_slice(), page.incomplete), (&[7, 4][..], true));
    *fixture.archive.down.lock() = false;
    fixture.reader.mailbox_index.open(&bob).await.unwrap();
    let of_bob = fixture.page(&Viewer::Subscriber(bob), Some(BOB), true, NOW, 10);
    assert_eq!(of_bob.ids, [5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn segments_are_listed_as_one_text_at_the_oldest_segment() {
    let mut fixture = Fixture::new();
    let alice = number(ALICE);
    let view = Viewer::Subscriber(alice.clone());
    fixture.reader.mailbox_index.open(&alice).await.unwrap();
    let last = fixture.segment(ALICE, 7, (3, 3), "three");
    fixture.accept(BOB, ALICE, "between");
    let first = fixture.segment(ALICE, 7, (1, 3), "one ");
    fixture.segment(ALICE, 8, (1, 3), "another text");
    let inbox_page = |fixture: &Fixture| fixture.page(&view, Some(ALICE), true, NOW, 10);
    let page = inbox_page(&fixture);
    assert_eq!((page.ids.as_slice(), page.next), (&[4, 2, 1][..], None));
    let item = &page.items[2];
    assert_eq!(item.text.as_deref(), Some("one  [...] three"));
    let segments = item.segments.as_ref().unwrap();
    let present: Vec<_> =
        segments.present.iter().map(|segment| (segment.number, segment.id.as_str())).collect();
    assert_eq!((segments.total, &present[..]), (3, &[(1, "0000000003"), (3, "0000000001")][..]));
    // A follower receives the text for a change of any segment.
    for id in [first, last] {
        assert_eq!(fixture.reader.message_for(&view, id).unwrap().as_ref(), Some(item));
    }
    let middle = fixture.segment(ALICE, 7, (2, 3), "two ");
    let whole = inbox_page(&fixture).items.pop().unwrap();
    assert_eq!((whole.text.as_deref(), whole.state.as_str()), (Some("one two three"), "queued"));
    // Wherever the segments are, and in pages of any size, the text is listed once.
    fixture.accept(BOB, ALICE, "newer");
    fixture.finish(last);
    fixture.finish(first);
    fixture.archive(last);
    for step in 0..3 {
        match step {
            0 => {}
            1 => fixture.archive(first),
            _ => {
                fixture.end(middle, FinalState::Failed, 27);
                fixture.archive(middle);
            }
        }
        for limit in 1..=5 {
            let (mut before, mut ids) = (NOW, Vec::new());
            loop {
                let page = fixture.page(&view, Some(ALICE), true, before, limit);
                assert!(page.ids.len() <= limit);
                ids.extend(page.items.iter().map(|item| (item.id.clone(), item.text.clone().unwrap())));
                match page.next {
                    Some(next) => before = next,
                    None => break,
                }
            }
            let texts: Vec<&str> = ids.iter().map(|(_, text)| text.as_str()).collect();
            let expected = ["newer", "another text [...]", "between", "one two three"];
            assert_eq!(texts, expected, "step {step}, in pages of {limit}");
        }
    }
    let last = inbox_page(&fixture).items.pop().unwrap();
    assert_eq!((last.state.as_str(), last.error), ("failed", Some(27)));
    // An operator sees single messages.
    let all = fixture.page(&Viewer::Operator, Some(ALICE), true, NOW, 10);
    assert_eq!(all.ids, [6, 5, 4, 3, 2, 1]);
    assert_eq!((all.items[1].part.as_deref(), &all.items[1].segments), (Some("2/3"), &None));
}

#[tokio::test]
async fn sar_segments_are_joined_and_failures_show_a_cause() {
    let mut fixture = Fixture::new();
    let alice = number(ALICE);
    let view = Viewer::Subscriber(alice.clone());
    fixture.reader.mailbox_index.open(&alice).await.unwrap();
    for (number, words) in [(1, "first, "), (2, "second")] {
        let mut message = fixture.message(self::number(BOB).address(), ALICE, words);
        let tlvs = [2, 0x0c, 0, 2, 1, 7, 2, 0x0e, 0, 1, 2, 2, 0x0f, 0, 1, number];
        message.tlvs = Bytes::copy_from_slice(&tlvs);
        fixture.commit(Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
    }
    fixture.end(MessageId(2), FinalState::Failed, 27);
    let item = fixture.page(&view, Some(ALICE), false, NOW, 10).items.pop().unwrap();
    assert_eq!((item.text.as_deref(), item.state.as_str()), (Some("first, second"), "queued"));
    fixture.finish(MessageId(1));
    let item = fixture.page(&view, Some(ALICE), false, NOW, 10).items.pop().unwrap();
    assert_eq!(item.cause.as_deref(), Some("network: no paging response (27)"));
    assert_eq!((item.state.as_str(), item.error), ("failed", Some(27)));
}

#[tokio::test]
async fn subscribers_see_only_their_own_messages_and_operators_no_text() {
    let mut fixture = Fixture::new();
    let alice = number(ALICE);
    fixture.reader.mailbox_index.open(&alice).await.unwrap();
    let id = fixture.accept(BOB, CAROL, "a secret");
    let own = fixture.accept(BOB, ALICE, "for alice");
    // An alphanumeric sender that looks like a number.
    let named = fixture.message(Address::new(5, 0, alice.digits()), CAROL, "not of alice");
    let named_id = named.id;
    fixture.commit(Batch { accepted: vec![Arc::new(named)], ..Batch::default() });
    let view = Viewer::Subscriber(alice);
    assert!(fixture.reader.message_for(&view, id).unwrap().is_none());
    assert!(fixture.reader.message_for(&view, named_id).unwrap().is_none());
    assert_eq!(fixture.reader.message_for(&view, own).unwrap().unwrap().text.as_deref(), Some("for alice"));
    // A list of another number shows nothing to this viewer.
    fixture.reader.mailbox_index.open(&number(CAROL)).await.unwrap();
    assert_eq!(fixture.page(&view, Some(CAROL), false, NOW, 10).items, []);
    for id in [id, named_id, own] {
        fixture.finish(id);
        fixture.archive(id);
    }
    assert!(fixture.reader.message_for(&view, id).unwrap().is_none());
    assert_eq!(fixture.page(&view, Some(ALICE), false, NOW, 10).ids, [own.0]);
    let all = fixture.page(&Viewer::Operator, None, false, NOW, 10);
    assert_eq!(all.ids, [3, 2, 1]);
    for item in &all.items {
        assert_eq!((item.text.as_deref(), item.direction), (None, None), "{item:?}");
    }
    assert_eq!(fixture.page(&Viewer::Operator, Some(ALICE), false, NOW, 10).ids, [own.0]);
}

#[tokio::test]
async fn dlrs_are_not_listed() {
    let mut fixture = Fixture::new();
    fixture.reader.mailbox_index.open(&number(ALICE)).await.unwrap();
    let mut dlr = fixture.message(number(BOB).address(), ALICE, "");
    dlr.kind = MessageKind::Dlr(Box::new(DlrContent {
        of: MessageId(1),
        state: DlrState::Delivered,
        intermediate: false,
        error: 0,
        network_error: None,
        submitted_at: Timestamp(0),
        done_at: Timestamp(0),
        segments: (1, 1),
        segment: 0,
        peer_id: PeerMessageId::default(),
    }));
    let id = dlr.id;
    fixture.commit(Batch { accepted: vec![Arc::new(dlr)], ..Batch::default() });
    assert_eq!(fixture.page(&Viewer::Subscriber(number(ALICE)), Some(ALICE), false, NOW, 10).ids, [0_u64; 0]);
    assert_eq!(fixture.page(&Viewer::Operator, None, false, NOW, 10).ids, [0_u64; 0]);
    assert!(fixture.reader.message_for(&Viewer::Operator, id).unwrap().is_none());
}

#[tokio::test]
async fn followers_receive_their_changes_and_lost_counts() {
    let mut fixture = Fixture::new();
    let alice = number(ALICE);
    let old = fixture.accept(BOB, ALICE, "before");
    fixture.reader.mailbox_index.open(&alice).await.unwrap();
    let mut changes = fixture.reader.mailbox_index.follow(Some(&alice));
    let mut everything = fixture.reader.mailbox_index.follow(None);
    fixture.accept(BOB, CAROL, "of others");
    let new = fixture.accept(ALICE, CAROL, "new");
    fixture.finish(old);
    assert_eq!([changes.next().await, changes.next().await], [new, old]);
    assert_eq!(
        [everything.next().await, everything.next().await, everything.next().await],
        [MessageId(2), new, old]
    );
    for _ in 0..2000 {
        let message = fixture.message(number(BOB).address(), ALICE, "");
        fixture
            .reader
            .mailbox_index
            .observe(&Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
    }
    assert_eq!(changes.lost(), 2000 - 1024);
    assert_eq!(changes.lost(), 0);
}

#[tokio::test]
async fn mailboxes_drop_removed_messages_and_close_when_unused() {
    let mut fixture = Fixture::new();
    let (alice, bob) = (number(ALICE), number(BOB));
    let mailbox_index = fixture.reader.mailbox_index.clone();
    mailbox_index.open_configured(&[alice.clone()].into()).await.unwrap();
    mailbox_index.open(&bob).await.unwrap();
    for _ in 0..3 {
        let id = fixture.accept(BOB, ALICE, "x");
        fixture.finish(id);
    }
    let all = [3, 2, 1].map(MessageId);
    assert_eq!(mailbox_index.older(&alice, MessageId(NOW), 10), all);
    // Without an archive, the store trims finished messages without a commit.
    fixture.reader.store.trim_finished(Timestamp(u64::MAX), 2).unwrap();
    let now = std::time::Instant::now();
    mailbox_index.remove_stale(now).unwrap();
    assert_eq!(mailbox_index.older(&alice, MessageId(NOW), 10), [MessageId(3)]);
    let later = now + std::time::Duration::from_secs(2 * 3600);
    let following = mailbox_index.follow(Some(&bob));
    mailbox_index.remove_stale(later).unwrap();
    assert_eq!(mailbox_index.older(&bob, MessageId(NOW), 10), [MessageId(3)], "followed inbox");
    drop(following);
    mailbox_index.remove_stale(later).unwrap();
    assert_eq!(mailbox_index.older(&bob, MessageId(NOW), 10), []);
    assert_eq!(mailbox_index.older(&alice, MessageId(NOW), 10), [MessageId(3)], "named by the configuration");
    // It reopens with the same content.
    mailbox_index.open(&bob).await.unwrap();
    assert_eq!(mailbox_index.older(&bob, MessageId(NOW), 10), [MessageId(3)]);
}
