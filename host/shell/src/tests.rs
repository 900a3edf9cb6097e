//! Lists and followers over a real store, with an archive of the test's own.

use crate::records::{Library, View, Wanted};
use crate::wire::{Direction, Item};
use crate::{Asked, Ended, Kept, Number, Older, Records, Watch};
use bytes::Bytes;
use engine::Batch;
use model::{
    Address, DecidedBy, Final, FinalState, Kind, Message, MessageId, PeerId, PeerMessageId, Priority,
    ReceiptRequest, ReceiptState, ReceiptText, RejectReason, Routed, Text, Timestamp, Verdict,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Store, StoreOptions};

const ALICE: &str = "+4915100001";
const BOB: &str = "+4915100002";
const CAROL: &str = "+4915100003";

fn number(text: &str) -> Number {
    text.parse().unwrap()
}

/// The archive: what was moved there, and whether it can be reached.
#[derive(Default)]
struct Archive {
    messages: Mutex<BTreeMap<MessageId, Kept>>,
    down: Mutex<bool>,
}

impl Records for Archive {
    fn doing(&self, ids: Vec<MessageId>) -> Vec<Option<&'static str>> {
        ids.iter().map(|_| Some("queued")).collect()
    }

    fn cause(&self, ended: &Final) -> Option<String> {
        (ended.error == 27).then(|| "network: no paging response (27)".to_owned())
    }

    fn archived(&self, asked: Asked) -> Result<Older, String> {
        if *self.down.lock() {
            return Err("it is down".to_owned());
        }
        let all = self.messages.lock();
        // As SQL has it: by digits alone, senders that are names included.
        let fits = |address: &Address| {
            asked.number.as_ref().is_none_or(|number| address.value.as_slice() == number.digits())
        };
        let mut found: Vec<Kept> = all
            .range(..asked.before)
            .rev()
            .map(|(_, kept)| kept.clone())
            .filter(|kept| fits(&kept.destination) || !asked.inbox && fits(&kept.source))
            .filter(|kept| asked.accepted.as_ref().is_none_or(|times| times.contains(&kept.accepted_at)))
            .take(asked.most + 1)
            .collect();
        let more = found.len() > asked.most;
        found.truncate(asked.most);
        let next = found.last().filter(|_| more).map(|last| last.id);
        Ok(Older { messages: found, next })
    }
}

struct House {
    library: Arc<Library>,
    archive: Arc<Archive>,
    next: u64,
    _folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { cache: 1 << 20, ..StoreOptions::default() };
        let store = Arc::new(Store::open(&folder.path().join("switchyard.redb"), options).unwrap());
        let archive = Arc::new(Archive::default());
        let watch = Arc::new(Watch::new(store.clone()));
        let library = Arc::new(Library { store, watch, records: archive.clone() });
        Self { library, archive, next: 1, _folder: folder }
    }

    fn commit(&self, batch: &Batch) {
        self.library.store.commit(batch).unwrap();
        self.library.watch.observe(batch);
    }

    fn message(&mut self, source: Address, to: &str, text: &str) -> Message {
        let id = MessageId(self.next);
        self.next += 1;
        Message {
            id,
            kind: Kind::Text,
            origin: PeerId(1),
            source,
            destination: number(to).address(),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text { octets: Bytes::copy_from_slice(text.as_bytes()), data_coding: 1, ..Text::default() },
            tlvs: Bytes::new(),
            accepted_at: Timestamp(1_795_000_000_000 + id.0),
            scheduled: None,
            expires_at: Timestamp(0),
            routed: Routed::new(
                Verdict::Reject(RejectReason::NoRoute),
                Arc::new(DecidedBy { plugin: String::new(), version: String::new() }),
            ),
        }
    }

    fn accept(&mut self, from: &str, to: &str, text: &str) -> MessageId {
        let message = self.message(number(from).address(), to, text);
        let id = message.id;
        self.commit(&Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
        id
    }

    /// A segment of a text with this reference, by a user data header.
    fn segment(&mut self, to: &str, reference: u8, (number, total): (u8, u8), words: &str) -> MessageId {
        let mut message = self.message(self::number(BOB).address(), to, "");
        let octets = [&[5, 0, 3, reference, total, number], words.as_bytes()].concat();
        message.text = Text { octets: octets.into(), data_coding: 1, udhi: true, payload: false };
        let id = message.id;
        self.commit(&Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
        id
    }

    fn finish(&self, id: MessageId) {
        self.end(id, FinalState::Delivered, 0);
    }

    fn end(&self, id: MessageId, state: FinalState, error: u32) {
        let ended = Final {
            state,
            at: Timestamp(1_795_000_000_900),
            error,
            peer: None,
            peer_id: PeerMessageId::default(),
            steps: Vec::new(),
        };
        self.commit(&Batch { finished: vec![(id, ended)], ..Batch::default() });
    }

    /// What the pump does: first the archive, then a commit that takes it out of the store.
    fn archive(&self, id: MessageId) {
        let Some(store::Found::Finished(message, ended)) = self.library.store.find(id).unwrap() else {
            panic!("{id} is not finished")
        };
        let segment = message.segment();
        let kept = Kept {
            id,
            segment,
            source: message.source,
            destination: message.destination,
            text: message.text,
            accepted_at: message.accepted_at,
            ended: Some(Ended { state: ended.state, at: ended.at, error: ended.error, cause: None }),
        };
        self.archive.messages.lock().insert(id, kept);
        self.commit(&Batch { archived: vec![id], ..Batch::default() });
    }

    fn page(&self, view: &View, of: Option<&str>, inbox: bool, before: u64, limit: usize) -> Page {
        let wanted = Wanted { number: of.map(number), inbox, before: MessageId(before), limit };
        let page = self.library.page(view, &wanted).unwrap();
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
    items: Vec<Item>,
}

const NOW: u64 = u64::MAX;

#[tokio::test]
async fn a_list_is_one_wherever_its_messages_are() {
    let mut house = House::new();
    let (alice, bob) = (number(ALICE), number(BOB));
    // Some before the box is opened, some after; each in another place.
    for text in ["1", "2", "3", "4"] {
        house.accept(ALICE, BOB, text);
    }
    for id in 1..=3 {
        house.finish(MessageId(id));
    }
    house.archive(MessageId(1));
    house.archive(MessageId(2));
    house.library.watch.open(&alice).await.unwrap();
    house.accept(CAROL, BOB, "of others");
    house.accept(BOB, ALICE, "6");
    house.accept(ALICE, ALICE, "7");
    house.finish(MessageId(6));
    let view = View::Subscriber(alice.clone());
    let all = house.page(&view, Some(ALICE), false, NOW, 10);
    assert_eq!((all.ids.as_slice(), all.next), (&[7, 6, 4, 3, 2, 1][..], None));
    let states: Vec<&str> = all.items.iter().map(|item| item.state.as_str()).collect();
    assert_eq!(states, ["queued", "delivered", "queued", "delivered", "delivered", "delivered"]);
    assert_eq!(all.items[2].text.as_deref(), Some("4"));
    assert_eq!((all.items[1].direction, all.items[2].direction), (Some(Direction::In), Some(Direction::Out)));
    assert_eq!(house.page(&view, Some(ALICE), true, NOW, 10).ids, [7, 6]);
    // In pages of every size the same.
    for limit in 1..=7 {
        let (mut before, mut ids) = (NOW, Vec::new());
        loop {
            let page = house.page(&view, Some(ALICE), false, before, limit);
            assert!(page.ids.len() <= limit);
            ids.extend(page.ids);
            match page.next {
                Some(next) => before = next,
                None => break,
            }
        }
        assert_eq!(ids, [7, 6, 4, 3, 2, 1], "in pages of {limit}");
    }
    // What moves to the archive while it is looked at is there once.
    house.archive(MessageId(3));
    house.archive(MessageId(6));
    assert_eq!(house.page(&view, Some(ALICE), false, NOW, 10).ids, [7, 6, 4, 3, 2, 1]);
    *house.archive.down.lock() = true;
    let page = house.page(&view, Some(ALICE), false, NOW, 10);
    assert_eq!((page.ids.as_slice(), page.incomplete), (&[7, 4][..], true));
    *house.archive.down.lock() = false;
    house.library.watch.open(&bob).await.unwrap();
    let of_bob = house.page(&View::Subscriber(bob), Some(BOB), true, NOW, 10);
    assert_eq!(of_bob.ids, [5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn segments_are_one_text_where_the_oldest_stands() {
    let mut house = House::new();
    let alice = number(ALICE);
    let view = View::Subscriber(alice.clone());
    house.library.watch.open(&alice).await.unwrap();
    let last = house.segment(ALICE, 7, (3, 3), "three");
    house.accept(BOB, ALICE, "between");
    let first = house.segment(ALICE, 7, (1, 3), "one ");
    house.segment(ALICE, 8, (1, 3), "another text");
    let look = |house: &House| house.page(&view, Some(ALICE), true, NOW, 10);
    let page = look(&house);
    assert_eq!((page.ids.as_slice(), page.next), (&[4, 2, 1][..], None));
    let item = &page.items[2];
    assert_eq!(item.text.as_deref(), Some("one  [...] three"));
    let segments = item.segments.as_ref().unwrap();
    let present: Vec<_> = segments.present.iter().map(|one| (one.number, one.id.as_str())).collect();
    assert_eq!((segments.total, &present[..]), (3, &[(1, "0000000003"), (3, "0000000001")][..]));
    // A follower is told of the text, whichever segment has changed.
    for id in [first, last] {
        assert_eq!(house.library.one(&view, id).unwrap().as_ref(), Some(item));
    }
    let middle = house.segment(ALICE, 7, (2, 3), "two ");
    let whole = look(&house).items.pop().unwrap();
    assert_eq!((whole.text.as_deref(), whole.state.as_str()), (Some("one two three"), "queued"));
    // Wherever its segments are, and in pages of every size, it is one text at one place.
    house.accept(BOB, ALICE, "newer");
    house.finish(last);
    house.finish(first);
    house.archive(last);
    for step in 0..3 {
        match step {
            0 => {}
            1 => house.archive(first),
            _ => {
                house.end(middle, FinalState::Failed, 27);
                house.archive(middle);
            }
        }
        for limit in 1..=5 {
            let (mut before, mut ids) = (NOW, Vec::new());
            loop {
                let page = house.page(&view, Some(ALICE), true, before, limit);
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
    let ended = look(&house).items.pop().unwrap();
    assert_eq!((ended.state.as_str(), ended.error), ("failed", Some(27)));
    // An operator sees the messages as they are.
    let all = house.page(&View::Operator, Some(ALICE), true, NOW, 10);
    assert_eq!(all.ids, [6, 5, 4, 3, 2, 1]);
    assert_eq!((all.items[1].part.as_deref(), &all.items[1].segments), (Some("2/3"), &None));
}

#[tokio::test]
async fn segments_by_tlvs_are_one_text_too_and_a_failure_has_its_cause() {
    let mut house = House::new();
    let alice = number(ALICE);
    let view = View::Subscriber(alice.clone());
    house.library.watch.open(&alice).await.unwrap();
    for (number, words) in [(1, "first, "), (2, "second")] {
        let mut message = house.message(self::number(BOB).address(), ALICE, words);
        let tlvs = [2, 0x0c, 0, 2, 1, 7, 2, 0x0e, 0, 1, 2, 2, 0x0f, 0, 1, number];
        message.tlvs = Bytes::copy_from_slice(&tlvs);
        house.commit(&Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
    }
    house.end(MessageId(2), FinalState::Failed, 27);
    let item = house.page(&view, Some(ALICE), false, NOW, 10).items.pop().unwrap();
    assert_eq!((item.text.as_deref(), item.state.as_str()), (Some("first, second"), "queued"));
    house.finish(MessageId(1));
    let item = house.page(&view, Some(ALICE), false, NOW, 10).items.pop().unwrap();
    assert_eq!(item.cause.as_deref(), Some("network: no paging response (27)"));
    assert_eq!((item.state.as_str(), item.error), ("failed", Some(27)));
}

#[tokio::test]
async fn nobody_sees_what_is_not_ones_own_and_an_operator_no_text() {
    let mut house = House::new();
    let alice = number(ALICE);
    house.library.watch.open(&alice).await.unwrap();
    let id = house.accept(BOB, CAROL, "a secret");
    let own = house.accept(BOB, ALICE, "for alice");
    // A sender that is a name is nobody's number, though it looks like one.
    let named = house.message(Address::new(5, 0, alice.digits()), CAROL, "not of alice");
    let named_id = named.id;
    house.commit(&Batch { accepted: vec![Arc::new(named)], ..Batch::default() });
    let view = View::Subscriber(alice);
    assert!(house.library.one(&view, id).unwrap().is_none());
    assert!(house.library.one(&view, named_id).unwrap().is_none());
    assert_eq!(house.library.one(&view, own).unwrap().unwrap().text.as_deref(), Some("for alice"));
    // Even where somebody else's list were asked for under this view, nothing of it would be shown.
    house.library.watch.open(&number(CAROL)).await.unwrap();
    assert_eq!(house.page(&view, Some(CAROL), false, NOW, 10).items, []);
    for id in [id, named_id, own] {
        house.finish(id);
        house.archive(id);
    }
    assert!(house.library.one(&view, id).unwrap().is_none());
    assert_eq!(house.page(&view, Some(ALICE), false, NOW, 10).ids, [own.0]);
    let all = house.page(&View::Operator, None, false, NOW, 10);
    assert_eq!(all.ids, [3, 2, 1]);
    for item in &all.items {
        assert_eq!((item.text.as_deref(), item.direction), (None, None), "{item:?}");
    }
    assert_eq!(house.page(&View::Operator, Some(ALICE), false, NOW, 10).ids, [own.0]);
}

#[tokio::test]
async fn receipts_of_the_house_are_no_messages() {
    let mut house = House::new();
    house.library.watch.open(&number(ALICE)).await.unwrap();
    let mut receipt = house.message(number(BOB).address(), ALICE, "");
    receipt.kind = Kind::Receipt(Box::new(ReceiptText {
        of: MessageId(1),
        state: ReceiptState::Delivered,
        intermediate: false,
        error: 0,
        network_error: None,
        submitted_at: Timestamp(0),
        done_at: Timestamp(0),
        parts: (1, 1),
        part: 0,
        peer_id: PeerMessageId::default(),
    }));
    let id = receipt.id;
    house.commit(&Batch { accepted: vec![Arc::new(receipt)], ..Batch::default() });
    assert_eq!(house.page(&View::Subscriber(number(ALICE)), Some(ALICE), false, NOW, 10).ids, [0_u64; 0]);
    assert_eq!(house.page(&View::Operator, None, false, NOW, 10).ids, [0_u64; 0]);
    assert!(house.library.one(&View::Operator, id).unwrap().is_none());
}

#[tokio::test]
async fn followers_hear_of_their_own_and_of_what_they_lost() {
    let mut house = House::new();
    let alice = number(ALICE);
    let old = house.accept(BOB, ALICE, "before");
    house.library.watch.open(&alice).await.unwrap();
    let mut changes = house.library.watch.follow(Some(&alice));
    let mut everything = house.library.watch.follow(None);
    house.accept(BOB, CAROL, "of others");
    let new = house.accept(ALICE, CAROL, "new");
    house.finish(old);
    assert_eq!([changes.next().await, changes.next().await], [new, old]);
    assert_eq!(
        [everything.next().await, everything.next().await, everything.next().await],
        [MessageId(2), new, old]
    );
    for _ in 0..2000 {
        let message = house.message(number(BOB).address(), ALICE, "");
        house.library.watch.observe(&Batch { accepted: vec![Arc::new(message)], ..Batch::default() });
    }
    assert_eq!(changes.lost(), 2000 - 1024);
    assert_eq!(changes.lost(), 0);
}

#[tokio::test]
async fn boxes_forget_what_has_gone_and_close_when_nobody_asks() {
    let mut house = House::new();
    let (alice, bob) = (number(ALICE), number(BOB));
    let watch = house.library.watch.clone();
    watch.open_named(&[alice.clone()].into()).await.unwrap();
    watch.open(&bob).await.unwrap();
    for _ in 0..3 {
        let id = house.accept(BOB, ALICE, "x");
        house.finish(id);
    }
    let all = [3, 2, 1].map(MessageId);
    assert_eq!(watch.older(&alice, MessageId(NOW), 10), all);
    // Without an archive, the store's own trimming is no commit of the engine's.
    house.library.store.trim_finished(Timestamp(u64::MAX), 2).unwrap();
    let now = std::time::Instant::now();
    watch.tidy(now).unwrap();
    assert_eq!(watch.older(&alice, MessageId(NOW), 10), [MessageId(3)]);
    let later = now + std::time::Duration::from_secs(2 * 3600);
    let following = watch.follow(Some(&bob));
    watch.tidy(later).unwrap();
    assert_eq!(watch.older(&bob, MessageId(NOW), 10), [MessageId(3)], "somebody follows it");
    drop(following);
    watch.tidy(later).unwrap();
    assert_eq!(watch.older(&bob, MessageId(NOW), 10), []);
    assert_eq!(watch.older(&alice, MessageId(NOW), 10), [MessageId(3)], "named by the configuration");
    // And opens again as it was.
    watch.open(&bob).await.unwrap();
    assert_eq!(watch.older(&bob, MessageId(NOW), 10), [MessageId(3)]);
}
