//! A restored store: messages that may have been sent since the backup are uncertain, others are not.

use crate::support;
use crate::support::options;
use model::{
    Batch, DlrContent, Leg, Message, MessageId, MessageKind, MessageProgress, PeerId, StepKind,
    SubmitAttempt, Timestamp, Verdict, WaitState,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::path::Path;
use std::sync::Arc;
use store::{RestoredCounts, Store, StoredMessage};

const BACKED_UP: Timestamp = Timestamp(1_000_000);
const NOW: Timestamp = Timestamp(1_060_000);
const EXPIRY: Timestamp = Timestamp(2_000_000);

fn open(path: &Path) -> Store {
    Store::open(path, options()).unwrap()
}

/// A waiting message, changed by `change`.
fn message(id: u64, change: impl FnOnce(&mut Message)) -> Arc<Message> {
    let mut runner = TestRunner::deterministic();
    let mut message = support::message().new_tree(&mut runner).unwrap().current();
    (message.id, message.kind, message.scheduled) = (MessageId(id), MessageKind::Text, None);
    message.expires_at = EXPIRY;
    message.routed.verdict = Verdict::Forward(vec![Leg::to(PeerId(3)), Leg::to(PeerId(4))]);
    change(&mut message);
    Arc::new(message)
}

fn dlr() -> MessageKind {
    let texts = support::message().prop_filter_map("a DLR", |message| match message.kind {
        MessageKind::Dlr(text) => Some(text),
        MessageKind::Text => None,
    });
    let text: Box<DlrContent> = texts.new_tree(&mut TestRunner::deterministic()).unwrap().current();
    MessageKind::Dlr(text)
}

fn progress(waiting: WaitState, attempts: u16) -> MessageProgress {
    MessageProgress {
        waiting,
        attempts,
        leg: 0,
        segments: Vec::new(),
        earlier: Vec::new(),
        steps: Vec::new(),
    }
}

/// One message in every wait state.
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
            message(10, |message| message.kind = dlr()),
        ],
        progress: vec![
            (MessageId(2), progress(WaitState::Deferred { until: later }, 1)),
            (MessageId(7), progress(WaitState::Dlr { peer: PeerId(3), since: BACKED_UP }, 1)),
            (MessageId(8), progress(WaitState::Uncertain { since: BACKED_UP }, 1)),
            (MessageId(9), progress(WaitState::Held { until: later }, 0)),
        ],
        submit_attempts: vec![SubmitAttempt { id: MessageId(3), attempt: 1, leg: 1, at: Timestamp(999_000) }],
        submit_row: 77,
        next_id: MessageId(11),
        ..Batch::default()
    };
    store.commit(batch).unwrap();
}

fn waits(store: &Store, id: u64) -> Option<WaitState> {
    match store.find(MessageId(id)).unwrap().unwrap() {
        StoredMessage::Waiting(_, progress) => progress.map(|progress| progress.waiting),
        StoredMessage::Finished(..) => panic!("message {id} has ended"),
    }
}

#[test]
fn restore_marks_possibly_sent_messages_uncertain() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("switchyard.redb"));
    fill(&store);
    let found = store.prepare_restored(BACKED_UP, NOW, false).unwrap();
    assert_eq!(found, RestoredCounts { waiting: 10, uncertain: 4, dlrs: 1 });
    for id in [1, 2, 3, 5] {
        assert_eq!(waits(&store, id), Some(WaitState::Uncertain { since: EXPIRY }), "message {id}");
    }
    assert_eq!(waits(&store, 4), None);
    assert_eq!(waits(&store, 6), None);
    assert!(matches!(waits(&store, 7), Some(WaitState::Dlr { .. })));
    assert_eq!(waits(&store, 8), Some(WaitState::Uncertain { since: BACKED_UP }));
    assert!(matches!(waits(&store, 9), Some(WaitState::Held { .. })));
    assert_eq!(waits(&store, 10), None);
    // The recorded attempt becomes the uncertain one: a repetition keeps its ticket.
    let Some(StoredMessage::Waiting(_, Some(third))) = store.find(MessageId(3)).unwrap() else {
        panic!("no progress")
    };
    assert_eq!((third.attempts, third.leg), (1, 1));
    let steps: Vec<_> = third.steps.iter().map(|step| (step.at, step.kind.clone())).collect();
    let submitted = StepKind::Submitted { peer: PeerId(4), attempt: 1 };
    assert_eq!(steps, [(Timestamp(999_000), submitted), (NOW, StepKind::Recovered)]);
}

#[test]
fn restore_skips_ids_and_rows_used_since_the_backup() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("switchyard.redb"));
    fill(&store);
    store.prepare_restored(BACKED_UP, NOW, false).unwrap();
    let recovery = store.recover(|_| {}).unwrap();
    // A million, and two hundred thousand for each of sixty seconds.
    assert_eq!(recovery.next_id, MessageId(MessageId::FIRST.0 + 13_000_000));
    assert_eq!(recovery.next_submit_row, 78 + 13_000_000);
}

#[test]
fn restore_with_send_again_changes_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("switchyard.redb"));
    fill(&store);
    let found = store.prepare_restored(BACKED_UP, NOW, true).unwrap();
    assert_eq!(found, RestoredCounts { waiting: 10, uncertain: 0, dlrs: 1 });
    assert_eq!(waits(&store, 1), None);
    assert!(matches!(waits(&store, 2), Some(WaitState::Deferred { .. })));
}

#[test]
fn a_snapshot_has_all_tables_and_opens_as_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let store = open(&path);
    fill(&store);
    store.directory(&["demo".to_owned()]).unwrap();
    // So that the second group does not get the id that it would have in an empty store.
    store.groups(&[(PeerId(0), Some("first"))]).unwrap();
    let groups = store.groups(&[(PeerId(0), Some("carrier"))]).unwrap();
    let snapshot = store.snapshot().unwrap();
    store.directory(&["later".to_owned()]).unwrap();
    let copy = folder.path().join("copy.redb");
    snapshot.copy_to(&copy).unwrap();
    let copy = open(&copy);
    assert_eq!(copy.counts().unwrap(), (10, 0));
    for id in 1..=10 {
        let (Some(StoredMessage::Waiting(one, its)), Some(StoredMessage::Waiting(other, others))) =
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
