//! Reads without an id: the newest and the oldest message, and the addresses of messages.

use crate::support::options;
use crate::support::{ended, message};
use model::{Batch, Message, MessageId, MessageKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use store::{Store, StoredMessage};

fn id(found: &StoredMessage) -> MessageId {
    found.message().id
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_found_without_their_id(
        messages in vec((message(), proptest::option::of(ended())), 0..20),
        before in 0_u64..25,
        most in 0_usize..25,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("switchyard.redb"), options()).unwrap();
        let mut batch = Batch::default();
        let mut expected = Vec::new();
        for (number, (message, ended)) in (1..).zip(messages) {
            let message = Message { id: MessageId(number), ..message };
            let is_text = message.kind == MessageKind::Text;
            // DLRs are removed at their end, and never finished.
            let ended = ended.filter(|_| is_text);
            if is_text {
                expected.push((message.id, message.source.clone(), message.destination.clone(), ended.is_some()));
            }
            batch.finished.extend(ended.map(|ended| (message.id, ended)));
            batch.accepted.push(Arc::new(message));
        }
        let oldest = batch.accepted.first().map(|message| message.id);
        store.commit(batch).unwrap();
        prop_assert_eq!(store.oldest().unwrap(), oldest);

        let newest = store.newest(MessageId(before), most).unwrap();
        let newest: Vec<_> =
            newest.iter().map(|found| (id(found), matches!(found, StoredMessage::Finished(..)))).collect();
        let below = expected.iter().rev().filter(|(id, ..)| id.0 < before).take(most);
        prop_assert_eq!(newest, below.map(|(id, _, _, ended)| (*id, *ended)).collect::<Vec<_>>());

        let mut parties = Vec::new();
        store.parties(|id, source, destination| parties.push((id, source.clone(), destination.clone()))).unwrap();
        parties.sort_by_key(|(id, ..)| *id);
        let whose = expected.into_iter().map(|(id, source, destination, _)| (id, source, destination));
        prop_assert_eq!(parties, whose.collect::<Vec<_>>());
    }
}

#[test]
fn the_finished_messages_of_a_submission_are_found_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("switchyard.redb"), options()).unwrap();
    let mut runner = TestRunner::deterministic();
    let any = message().new_tree(&mut runner).unwrap().current();
    let end = ended().new_tree(&mut runner).unwrap().current();
    let mut batch = Batch::default();
    for id in 1..=6 {
        let submission = (2..=4).contains(&id).then_some(MessageId(2));
        let message = Message { id: MessageId(id), kind: MessageKind::Text, submission, ..any.clone() };
        batch.accepted.push(Arc::new(message));
    }
    batch.finished = [1, 2, 4, 5].map(|id| (MessageId(id), end.clone())).into();
    store.commit(batch).unwrap();
    let of = |id| -> Vec<u64> {
        store.finished_of(MessageId(id)).unwrap().iter().map(|(message, _)| message.id.0).collect()
    };
    assert_eq!([1, 2, 3, 4, 5, 6].map(of), [vec![1], vec![2, 4], vec![], vec![4], vec![5], vec![]]);
    store.commit(Batch { archived: vec![MessageId(2)], ..Batch::default() }).unwrap();
    assert_eq!(of(2), [4]);
    assert_eq!(of(u64::MAX), Vec::<u64>::new());
}
