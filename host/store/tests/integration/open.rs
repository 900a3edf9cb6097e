//! Creation and opening of the file.

use crate::support::options;
use model::{Batch, IdempotencyKey, IdempotencyKeyRecord, MessageId, PeerId, RecoveredRecord, Timestamp};
use store::Store;

#[test]
fn a_file_that_is_no_database_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let other = b"something else altogether ".repeat(1000);
    std::fs::write(&path, &other).unwrap();
    let refused = Store::open(&path, options()).unwrap_err();
    assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), other);
}

#[test]
fn creating_the_file_leaves_no_other_files() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(&folder.path().join("switchyard.redb"), options()).unwrap());
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["switchyard.journal", "switchyard.redb"]);
}

#[test]
fn a_group_keeps_its_number_when_its_first_peer_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let store = Store::open(&path, options()).unwrap();
    let both = [(PeerId(0), Some("carrier")), (PeerId(1), Some("carrier")), (PeerId(2), None)];
    let number = store.groups(&both).unwrap()["carrier"];
    assert!(number > 2, "it must not be the number of a peer: {number}");
    drop(store);
    let store = Store::open(&path, options()).unwrap();
    let other = [(PeerId(2), Some("other")), (PeerId(1), Some("carrier"))];
    let groups = store.groups(&other).unwrap();
    assert_eq!(groups["carrier"], number);
    assert_ne!(groups["other"], number);
    let remembered = || {
        let mut found = Vec::new();
        let members = |one| {
            if let RecoveredRecord::Group(peer, group) = one {
                found.push((peer, group));
            }
        };
        store.recover_records(members).unwrap();
        found
    };
    assert_eq!(
        remembered(),
        [(PeerId(0), number), (PeerId(1), number), (PeerId(2), groups["other"])],
        "a peer that is gone stays in its group"
    );
    store.groups(&[(PeerId(0), None)]).unwrap();
    assert_eq!(remembered(), [(PeerId(1), number), (PeerId(2), groups["other"])]);
}

#[test]
fn the_newest_time_is_that_of_the_last_key_or_message() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("switchyard.redb"), options()).unwrap();
    assert_eq!(store.newest_time().unwrap(), None);
    let key = |serial, at| IdempotencyKeyRecord {
        serial,
        origin: PeerId(0),
        key: IdempotencyKey { octets: [7].as_slice().into(), digest: serial, required: true, lifetime: None },
        at: Timestamp(at),
        results: vec![Ok(MessageId(serial))],
    };
    store.commit(Batch { idempotency_keys: vec![key(0, 100), key(1, 200)], ..Batch::default() }).unwrap();
    assert_eq!(store.newest_time().unwrap(), Some(Timestamp(200)));
}
