//! The tables of cluster nodes: a leader, and a follower that takes over.

use crate::support::options;
use crate::support::reference::{Draft, Reference, draft};
use journal::simulation::ReplicatedLog;
use journal::{Journal, NodeId, Seq};
use model::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Follower, Store, StoreError};

const CLUSTER: u64 = 77;

fn follower(path: &Path, log: &ReplicatedLog) -> Result<Follower, StoreError> {
    Follower::open(path, 1 << 20, CLUSTER, log.head().seq == Seq(0))
}

fn lead(follower: Follower, log: &Arc<ReplicatedLog>, node: u64) -> Store {
    let mut journal = log.journal(NodeId(node));
    let writer = journal.claim(NodeId(node)).unwrap();
    follower.lead(Box::new(journal), writer).unwrap()
}

/// Applies the records that the follower lacks, in parts of a few octets.
fn catch_up(follower: &mut Follower, log: &Arc<ReplicatedLog>, parts: usize) {
    let mut journal = log.journal(NodeId(9));
    for _ in 0..parts {
        let records = journal.read(follower.applied().next(), 500, Duration::ZERO).unwrap();
        follower.apply(&records).unwrap();
    }
}

#[derive(Debug, Clone)]
enum Action {
    Commit(Draft),
    Names(Vec<String>),
    /// The follower applies this number of parts of the log.
    Follow(usize),
    /// The follower makes its tables durable.
    Checkpoint,
    /// Both nodes remove finished messages that ended before this time.
    Trim(u64),
    /// The follower restarts.
    Restart,
    /// The leader dies, and the follower takes over.
    TakeOver,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => draft().prop_map(Action::Commit),
        1 => vec("[a-d]", 0..4).prop_map(Action::Names),
        3 => (0_usize..4).prop_map(Action::Follow),
        1 => Just(Action::Checkpoint),
        1 => (0_u64..110).prop_map(Action::Trim),
        1 => Just(Action::Restart),
        1 => Just(Action::TakeOver),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_node_that_takes_over_has_what_the_leader_had(actions in vec(action(), 1..16)) {
        let folder = tempfile::tempdir().unwrap();
        let paths: [PathBuf; 2] = ["one.redb", "two.redb"].map(|name| folder.path().join(name));
        let log = ReplicatedLog::new(1000);
        let mut reference = Reference::default();
        let mut leading = 0;
        let mut store = lead(follower(&paths[0], &log).unwrap(), &log, 1);
        let mut other = follower(&paths[1], &log).unwrap();
        for action in actions.into_iter().chain([Action::TakeOver, Action::TakeOver]) {
            match action {
                Action::Commit(draft) => {
                    let batch = reference.batch(draft);
                    store.commit(batch.clone()).unwrap();
                    reference.apply(&batch);
                }
                Action::Names(wanted) => drop(store.directory(&wanted).unwrap()),
                Action::Follow(parts) => catch_up(&mut other, &log, parts),
                Action::Checkpoint => {
                    let applied = other.applied();
                    prop_assert_eq!(other.checkpoint().unwrap(), applied);
                }
                Action::Trim(before) => {
                    while other.applied() < log.head().seq {
                        catch_up(&mut other, &log, 1);
                    }
                    let gone = reference.trim(Timestamp(before), usize::MAX);
                    prop_assert_eq!(store.trim_finished(Timestamp(before), usize::MAX).unwrap(), gone);
                    prop_assert_eq!(other.trim_finished(Timestamp(before), usize::MAX).unwrap(), gone);
                }
                Action::Restart => {
                    let durable = other.durable();
                    drop(other);
                    other = follower(&paths[1 - leading], &log).unwrap();
                    prop_assert!(other.applied() >= durable);
                }
                Action::TakeOver => {
                    let names = store.directory(&[]).unwrap();
                    drop(store);
                    leading = 1 - leading;
                    store = lead(other, &log, leading as u64 + 1);
                    prop_assert_eq!(reference.compare(&store), Ok(()));
                    prop_assert!(names.iter().eq(store.directory(&[]).unwrap().iter()));
                    other = follower(&paths[1 - leading], &log).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_closed_appliance_brings_its_messages_into_a_new_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.redb");
    let store = Store::open(&path, options()).unwrap();
    store.directory(&["operator".to_owned()]).unwrap();
    drop(store);
    let log = ReplicatedLog::new(10);
    let error = follower(&path, &log).unwrap_err();
    assert!(matches!(error, StoreError::NotClosed { .. }), "{error}");
    Store::open(&path, options()).unwrap().close().unwrap();
    // Another node was first: its log lacks the records of this file.
    let other = lead(follower(&folder.path().join("other.redb"), &log).unwrap(), &log, 2);
    let error = follower(&path, &log).unwrap_err();
    assert!(matches!(error, StoreError::HasOwnRecords { .. }), "{error}");
    drop(other);
    let log = ReplicatedLog::new(10);
    let joined = follower(&path, &log).unwrap();
    assert_ne!(joined.applied(), Seq(0));
}

#[test]
fn the_file_of_a_node_is_of_its_cluster_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.redb");
    let log = ReplicatedLog::new(10);
    lead(follower(&path, &log).unwrap(), &log, 1).close().unwrap();
    let error = Store::open(&path, options()).unwrap_err();
    assert!(matches!(error, StoreError::InCluster { .. }), "{error}");
    let error = Follower::open(&path, 1 << 20, CLUSTER + 1, true).unwrap_err();
    assert!(matches!(error, StoreError::OtherCluster { .. }), "{error}");
    follower(&path, &log).unwrap();
}

#[test]
fn a_leader_that_dies_finds_in_the_ring_what_its_tables_lack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.redb");
    let log = ReplicatedLog::new(20);
    let store = lead(follower(&path, &log).unwrap(), &log, 1);
    for name in 0..50 {
        store.directory(&[format!("peer {name}")]).unwrap();
        store.heartbeat().unwrap();
    }
    let names = store.directory(&[]).unwrap();
    drop(store);
    let again = lead(follower(&path, &log).unwrap(), &log, 1);
    assert!(names.iter().eq(again.directory(&[]).unwrap().iter()));
}

#[test]
fn a_record_of_a_newer_version_stops_a_follower_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let log = ReplicatedLog::new(10);
    let mut follower = follower(&folder.path().join("follower.redb"), &log).unwrap();
    let mut journal = log.journal(NodeId(1));
    let mut writer = journal.claim(NodeId(1)).unwrap();
    let newer = [codec::BatchFormat::NEWEST.number() + 1, 0, 0, 0, 0];
    let mut batch = Vec::new();
    codec::encode_batch(&mut batch, &model::Batch::default());
    for payload in [&batch[..], &newer, &batch] {
        journal.append(&mut writer, payload).unwrap();
    }
    let records = journal.read(Seq(1), 1 << 20, Duration::ZERO).unwrap();
    for from in [0, 2] {
        let error = follower.apply(&records[from..]).unwrap_err();
        assert!(matches!(error, StoreError::JournalRecord { seq: Seq(3), .. }), "{error}");
        assert_eq!(follower.applied(), Seq(2), "what is before it is applied");
    }
    assert_eq!(follower.checkpoint().unwrap(), Seq(2));
}
