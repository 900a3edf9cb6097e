//! A store that comes out of a backup: what may have been sent since is in doubt, what cannot have been is not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

mod support;

use engine::{Batch, Handed, Progress, Waiting};
use model::{Kind, Leg, Message, MessageId, PeerId, ReceiptText, StepKind, Timestamp, Verdict};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::path::Path;
use std::sync::Arc;
use store::{Found, Restored, Store, StoreOptions};

const BACKED_UP: Timestamp = Timestamp(1_000_000);
const NOW: Timestamp = Timestamp(1_060_000);
const EXPIRY: Timestamp = Timestamp(2_000_000);

fn open(path: &Path) -> Store {
    Store::open(path, StoreOptions { cache: 1 << 20, ..StoreOptions::default() }).unwrap()
}

/// A message that waits, in a shape that is changed by `change`.
fn message(id: u64, change: impl FnOnce(&mut Message)) -> Arc<Message> {
    let mut runner = TestRunner::deterministic();
    let mut message = support::message().new_tree(&mut runner).unwrap().current();
    (message.id, message.kind, message.scheduled) = (MessageId(id), Kind::Text, None);
    message.expires_at = EXPIRY;
    message.routed.verdict = Verdict::Forward(vec![Leg::to(PeerId(3)), Leg::to(PeerId(4))]);
    change(&mut message);
    Arc::new(message)
}

fn receipt() -> Kind {
    let texts = support::message().prop_filter_map("a receipt", |message| match message.kind {
        Kind::Receipt(text) => Some(text),
        Kind::Text => None,
    });
    let text: Box<ReceiptText> = texts.new_tree(&mut TestRunner::deterministic()).unwrap().current();
    Kind::Receipt(text)
}

fn progress(waiting: Waiting, attempts: u16) -> Progress {
    Progress { waiting, attempts, leg: 0, parts: Vec::new(), steps: Vec::new() }
}

/// One message in every state in which it may be found.
fn fill(store: &Store) {
    let later = Timestamp(NOW.0 + 1);
    let held = |message: &mut Message| message.routed.verdict = Verdict::Hold(later);
    let batch = Batch {
        accepted: vec![
            message(1, |_| {}),
            message(2, |_| {}),
            message(3, |_| {}),
            message(4, |message| message.scheduled = Some(later)),
            message(5, |message| message.scheduled = Some(NOW)),
            message(6, held),
            message(7, |_| {}),
            message(8, |_| {}),
            message(9, |_| {}),
            message(10, |message| message.kind = receipt()),
        ],
        progress: vec![
            (MessageId(2), progress(Waiting::Deferred { until: later }, 1)),
            (MessageId(7), progress(Waiting::Receipt { peer: PeerId(3), since: BACKED_UP }, 1)),
            (MessageId(8), progress(Waiting::Uncertain { since: BACKED_UP }, 1)),
            (MessageId(9), progress(Waiting::Held { until: later }, 0)),
        ],
        handed: vec![Handed { id: MessageId(3), attempt: 1, leg: 1, at: Timestamp(999_000) }],
        handed_seq: 77,
        next_id: MessageId(11),
        ..Batch::default()
    };
    store.commit(&batch).unwrap();
}

fn waits(store: &Store, id: u64) -> Option<Waiting> {
    match store.find(MessageId(id)).unwrap().unwrap() {
        Found::Waiting(_, progress) => progress.map(|progress| progress.waiting),
        Found::Finished(..) => panic!("message {id} has ended"),
    }
}

#[test]
fn what_may_have_been_sent_since_is_in_doubt_and_the_rest_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("switchyard.redb"));
    fill(&store);
    let found = store.prepare_restored(BACKED_UP, NOW, false).unwrap();
    assert_eq!(found, Restored { waiting: 10, uncertain: 4, receipts: 1 });
    for id in [1, 2, 3, 5] {
        assert_eq!(waits(&store, id), Some(Waiting::Uncertain { since: EXPIRY }), "message {id}");
    }
    assert_eq!(waits(&store, 4), None);
    assert_eq!(waits(&store, 6), None);
    assert!(matches!(waits(&store, 7), Some(Waiting::Receipt { .. })));
    assert_eq!(waits(&store, 8), Some(Waiting::Uncertain { since: BACKED_UP }));
    assert!(matches!(waits(&store, 9), Some(Waiting::Held { .. })));
    assert_eq!(waits(&store, 10), None);
    // The hand-over on record is the one that is in doubt: a repetition names it.
    let Some(Found::Waiting(_, Some(third))) = store.find(MessageId(3)).unwrap() else {
        panic!("no progress")
    };
    assert_eq!((third.attempts, third.leg), (1, 1));
    let steps: Vec<_> = third.steps.iter().map(|step| (step.at, step.kind.clone())).collect();
    let submitted = StepKind::Submitted { peer: PeerId(4), attempt: 1 };
    assert_eq!(steps, [(Timestamp(999_000), submitted), (NOW, StepKind::Recovered)]);
}

#[test]
fn ids_and_rows_of_the_time_between_are_not_given_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("switchyard.redb"));
    fill(&store);
    store.prepare_restored(BACKED_UP, NOW, false).unwrap();
    let recovery = store.recover(|_| {}).unwrap();
    // A million, and two hundred thousand for each of sixty seconds.
    assert_eq!(recovery.next_id, MessageId(MessageId::FIRST.0 + 13_000_000));
    assert_eq!(recovery.next_handed_seq, 78 + 13_000_000);
}

#[test]
fn who_wants_it_sent_again_has_it_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("switchyard.redb"));
    fill(&store);
    let found = store.prepare_restored(BACKED_UP, NOW, true).unwrap();
    assert_eq!(found, Restored { waiting: 10, uncertain: 0, receipts: 1 });
    assert_eq!(waits(&store, 1), None);
    assert!(matches!(waits(&store, 2), Some(Waiting::Deferred { .. })));
}

#[test]
fn a_snapshot_has_all_tables_and_opens_as_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let store = open(&path);
    fill(&store);
    store.directory(&["demo".to_owned()]).unwrap();
    // So that its group does not have the number that it would get in an empty store.
    store.groups(&[(PeerId(0), Some("first"))]).unwrap();
    let groups = store.groups(&[(PeerId(0), Some("carrier"))]).unwrap();
    let snapshot = store.snapshot().unwrap();
    store.directory(&["later".to_owned()]).unwrap();
    let copy = folder.path().join("copy.redb");
    snapshot.copy_to(&copy).unwrap();
    let copy = open(&copy);
    assert_eq!(copy.counts().unwrap(), (10, 0));
    for id in 1..=10 {
        let (Some(Found::Waiting(one, its)), Some(Found::Waiting(other, others))) =
            (store.find(MessageId(id)).unwrap(), copy.find(MessageId(id)).unwrap())
        else {
            panic!("message {id} does not wait in both");
        };
        assert_eq!((one, its), (other, others));
    }
    let names = copy.directory(&[]).unwrap();
    assert!(names.id("demo").is_some() && names.id("later").is_none());
    assert_eq!(copy.groups(&[(PeerId(0), Some("carrier"))]).unwrap(), groups);
}

#[test]
fn a_store_that_is_open_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let store = open(&path);
    assert!(store::is_in_use(&path).unwrap());
    drop(store);
    assert!(!store::is_in_use(&path).unwrap());
}
