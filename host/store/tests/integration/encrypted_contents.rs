//! Encrypted contents in the store: reads with the key, without it, and after an erasure.

use crate::support::{ended, message, options, text_keys};
use bytes::Bytes;
use model::{
    Batch, CallRecord, ContentErasure, FinalRecord, Hook, Message, MessageId, Step, StepKind, Timestamp,
};
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;
use redb::{Database, ReadableDatabase as _, TableDefinition};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use store::{Store, StoreOptions, StoredMessage};

const TEXT: &[u8] = b"the marker is 4711";

fn any<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> T {
    strategy.new_tree(&mut TestRunner::deterministic()).unwrap().current()
}

fn waiting(id: u64) -> Message {
    let mut message = Message { id: MessageId(id), accepted_at: Timestamp(5), ..any(message()) };
    message.text.octets = Bytes::from_static(TEXT);
    message
}

fn finished(store: &Store, id: u64) -> (Message, FinalRecord) {
    match store.find(MessageId(id)).unwrap() {
        Some(StoredMessage::Finished(message, ended)) => (message, ended),
        other => panic!("{other:?}"),
    }
}

fn erased_by(ended: &FinalRecord) -> Vec<&str> {
    let by = |step: &'_ Step| match &step.kind {
        StepKind::ContentErased { by } => Some(if &**by == "ada" { "ada" } else { "destruction" }),
        _ => None,
    };
    ended.steps.iter().filter_map(by).collect()
}

fn has_text(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has_text(&path);
        }
        std::fs::read(path).unwrap().windows(TEXT.len()).any(|part| part == TEXT)
    })
}

fn format(path: &Path) -> u64 {
    let transaction = Database::open(path).unwrap().begin_read().unwrap();
    let meta = transaction.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap();
    meta.get("format").unwrap().unwrap().value()
}

#[test]
fn contents_are_read_with_their_key_and_erased_without() {
    let folder = tempfile::tempdir().unwrap();
    let keys = text_keys(folder.path());
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let path = data.join("switchyard.redb");
    let encrypting = || StoreOptions { cipher: Some(keys.clone()), ..options() };
    let store = Store::open(&path, encrypting()).unwrap();
    let messages = [1, 2, 3].map(waiting);
    let call = codec::seal_recorded_call(Some(&*keys), &messages[1], TEXT.into()).unwrap();
    assert!(matches!(call, CallRecord::Sealed(_)));
    let step = |kind| Step { at: Timestamp(6), kind };
    let end = FinalRecord { steps: vec![step(call.into_step(Hook::Peer))], ..any(ended()) };
    store
        .commit(Batch { accepted: messages.iter().cloned().map(Arc::new).collect(), ..Batch::default() })
        .unwrap();
    store.checkpoint().unwrap();
    let ends = [1, 2].map(|id| (MessageId(id), end.clone()));
    store.commit(Batch { finished: ends.into(), ..Batch::default() }).unwrap();
    assert_eq!(store.content_keys_in_use().unwrap().len(), 1, "the third message waits");
    let call = StepKind::CallRecorded { hook: Hook::Peer, record: TEXT.into() };
    let read = FinalRecord { steps: vec![step(call)], ..end.clone() };
    assert_eq!(finished(&store, 2), (messages[1].clone(), read.clone()));

    // A crash: the records of the journal are applied unchanged. An erasure names its author, with or without the key.
    drop(store);
    let store = Store::open(&path, options()).unwrap();
    let (message, ended) = finished(&store, 2);
    assert!(message.text.octets.is_empty() && message.sealed.is_some());
    assert_eq!(erased_by(&ended), ["destruction"]);
    let erasure = ContentErasure { id: MessageId(1), at: Timestamp(7), by: "ada".into() };
    store.commit(Batch { erased: vec![erasure], ..Batch::default() }).unwrap();
    let (message, ended) = finished(&store, 1);
    assert!(message.text.octets.is_empty() && message.sealed.is_none());
    assert_eq!((erased_by(&ended), ended.content_erased_at()), (vec!["ada"], Some(Timestamp(7))));
    store.close().unwrap();
    drop(store);
    assert_eq!(format(&path), 11, "an earlier version refuses the file, also without the key");

    let store = Store::open(&path, encrypting()).unwrap();
    assert_eq!(finished(&store, 2), (messages[1].clone(), read));
    assert_eq!(erased_by(&finished(&store, 1).1), ["ada"]);
    let copied = folder.path().join("copied");
    std::fs::create_dir(&copied).unwrap();
    store.snapshot().unwrap().copy_to(&copied.join("switchyard.redb")).unwrap();
    assert_eq!(format(&copied.join("switchyard.redb")), 11);
    store.close().unwrap();
    drop(store);
    assert!(!has_text(&data) && !has_text(&copied));

    let numbers: BTreeSet<u64> = keys.list().iter().map(|key| key.number).collect();
    keys.destroy(&numbers, Timestamp(9)).unwrap();
    let store = Store::open(&path, encrypting()).unwrap();
    let (_, ended) = finished(&store, 2);
    assert_eq!((erased_by(&ended), ended.content_erased_at()), (vec!["destruction"], Some(Timestamp(9))));
    assert!(!ended.steps.iter().any(|step| step.kind.is_record()));
    match store.find(MessageId(3)).unwrap() {
        Some(StoredMessage::Waiting(message, _)) => assert!(message.sealed.is_some()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_encryption_the_format_is_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let store = Store::open(&path, options()).unwrap();
    store.commit(Batch { accepted: vec![Arc::new(waiting(1))], ..Batch::default() }).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(format(&path), 10);
    assert!(has_text(folder.path()), "the search finds texts");
}
