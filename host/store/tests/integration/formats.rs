//! Files of earlier versions open and read as before.

use crate::support::{self, options};
use codec::{encode_final, encode_message, encode_progress};
use model::MessageId;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use redb::{Database, ReadableDatabase as _, TableDefinition};
use store::{Store, StoredMessage};

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages");
const PROGRESS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("progress");
const FINISHED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("finished");

/// A message record of format 2: without the octet of flags at its end.
fn message_2(message: &model::Message) -> Vec<u8> {
    let mut octets = Vec::new();
    encode_message(&mut octets, message);
    octets[0] = 2;
    assert_eq!(octets.pop(), Some(0));
    octets
}

#[test]
fn a_file_of_format_2_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.redb");
    let mut runner = TestRunner::deterministic();
    let mut message = support::message().new_tree(&mut runner).unwrap().current();
    (message.routed.quote, message.routed.host_calls, message.submission) = (None, None, None);
    (message.routed.sender, message.routed.changes, message.routed.screening) = (None, None, None);
    message.routed.lookup = None;
    (message.tlvs, message.protocol_fields) = (bytes::Bytes::new(), bytes::Bytes::new());
    let plain =
        |progress: &model::MessageProgress| progress.steps.is_empty() && !progress.segments.is_empty();
    let progress =
        support::progress().prop_filter("no new steps", plain).new_tree(&mut runner).unwrap().current();
    let ended = support::ended().prop_filter("no new steps", |ended| ended.steps.is_empty());
    let ended = ended.new_tree(&mut runner).unwrap().current();
    {
        // Only the tables that the older version had.
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction
            .open_table(TableDefinition::<&str, u64>::new("meta"))
            .unwrap()
            .insert("format", 2)
            .unwrap();
        transaction.open_table(ROWS).unwrap().insert(5, message_2(&message).as_slice()).unwrap();
        let mut octets = Vec::new();
        encode_progress(&mut octets, &progress);
        octets[0] = 2;
        transaction.open_table(PROGRESS).unwrap().insert(5, octets.as_slice()).unwrap();
        let mut octets = message_2(&message);
        let begin = octets.len();
        encode_final(&mut octets, &ended);
        octets[begin] = 2;
        transaction.open_table(FINISHED).unwrap().insert(4, octets.as_slice()).unwrap();
        transaction.commit().unwrap();
    }
    let store = Store::open(&path, options()).unwrap();
    message.id = MessageId(5);
    match store.find(MessageId(5)).unwrap().unwrap() {
        StoredMessage::Waiting(found, found_progress) => {
            assert_eq!(found, message);
            assert_eq!(found_progress, Some(progress));
        }
        other => panic!("{other:?}"),
    }
    message.id = MessageId(4);
    match store.find(MessageId(4)).unwrap().unwrap() {
        StoredMessage::Finished(found, found_ended) => {
            assert_eq!(found, message);
            assert_eq!(found_ended, ended);
        }
        other => panic!("{other:?}"),
    }
    let mut remembered = 0;
    store.recover_records(|_| remembered += 1).unwrap();
    assert_eq!(remembered, 0);
    assert!(store.operations("acme", None, 10).unwrap().is_empty());
}

#[test]
fn rows_of_finished_messages_become_blocks() {
    // Without and with encrypted contents.
    for (before, after) in [(8_u64, 10), (9, 11)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.redb");
        let meta = TableDefinition::<&str, u64>::new("meta");
        let mut runner = TestRunner::deterministic();
        let mut messages = Vec::new();
        {
            let database = Database::create(&path).unwrap();
            let transaction = database.begin_write().unwrap();
            transaction.open_table(meta).unwrap().insert("format", before).unwrap();
            let mut rows = transaction.open_table(FINISHED).unwrap();
            for id in [4, 63, 64, 65, 200] {
                let mut message = support::message().new_tree(&mut runner).unwrap().current();
                message.id = MessageId(id);
                let ended = support::ended().new_tree(&mut runner).unwrap().current();
                let mut octets = Vec::new();
                encode_message(&mut octets, &message);
                encode_final(&mut octets, &ended);
                rows.insert(id, octets.as_slice()).unwrap();
                messages.push((message, ended));
            }
            drop(rows);
            transaction.commit().unwrap();
        }
        let store = Store::open(&path, options()).unwrap();
        assert_eq!(store.finished_after(MessageId(0), usize::MAX).unwrap(), messages);
        assert_eq!(store.counts().unwrap(), (0, 5));
        let newest = store.finished_before(MessageId(65), 2).unwrap();
        assert_eq!(newest.messages, [messages[2].clone(), messages[1].clone()]);
        assert_eq!(newest.lowest, Some(MessageId(63)));
        store.close().unwrap();
        drop(store);

        let database = Database::open(&path).unwrap();
        let transaction = database.begin_read().unwrap();
        let format = transaction.open_table(meta).unwrap().get("format").unwrap().unwrap().value();
        assert_eq!(format, after);
        assert!(transaction.open_table(FINISHED).is_err(), "the rows are still there");
    }
}
