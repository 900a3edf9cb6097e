//! The store against ordered maps in memory, with reopening in between.

use crate::support::reference::{Draft, Reference, draft};
use crate::support::{options, text_keys};
use model::{PeerId, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use redb::{Database, TableDefinition};
use std::path::Path;
use store::{Store, StoreError, StoreOptions};

#[derive(Debug, Clone)]
enum Action {
    Commit(Draft),
    Apply,
    Checkpoint,
    /// Reopens the store without closing it, as after a crash.
    Reopen,
    Close,
    Trim(u64, usize),
    Names(Vec<String>),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => draft().prop_map(Action::Commit),
        2 => Just(Action::Apply),
        1 => Just(Action::Checkpoint),
        2 => Just(Action::Reopen),
        1 => Just(Action::Close),
        2 => (0_u64..110, 0_usize..6).prop_map(|(before, most)| Action::Trim(before, most)),
        2 => vec("[a-d]", 0..4).prop_map(Action::Names),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_store_is_a_set_of_ordered_maps(actions in vec(action(), 1..14)) {
        let folder = tempfile::tempdir().unwrap();
        run(&folder.path().join("messages.redb"), options, actions)?;
    }

    #[test]
    fn an_encrypting_store_is_a_set_of_ordered_maps(actions in vec(action(), 1..14)) {
        let folder = tempfile::tempdir().unwrap();
        let keys = text_keys(folder.path());
        let encrypting = || StoreOptions { cipher: Some(keys.clone()), ..options() };
        run(&folder.path().join("messages.redb"), encrypting, actions)?;
    }
}

fn run(path: &Path, options: impl Fn() -> StoreOptions, actions: Vec<Action>) -> Result<(), TestCaseError> {
    let mut store = Store::open(path, options()).unwrap();
    let mut reference = Reference::default();
    let mut names: Vec<String> = Vec::new();
    for action in actions {
        match action {
            Action::Commit(draft) => {
                let batch = reference.batch(draft);
                store.commit(batch.clone()).unwrap();
                reference.apply(&batch);
                // Changes of several batches are merged.
                continue;
            }
            Action::Apply => store.apply().unwrap(),
            Action::Checkpoint => store.checkpoint().unwrap(),
            Action::Reopen | Action::Close => {
                if matches!(action, Action::Close) {
                    store.close().unwrap();
                }
                drop(store);
                store = Store::open(path, options()).unwrap();
            }
            Action::Trim(before, most) => {
                let gone = store.trim_finished(Timestamp(before), most).unwrap();
                prop_assert_eq!(gone, reference.trim(Timestamp(before), most));
            }
            Action::Names(wanted) => {
                for name in &wanted {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                let directory = store.directory(&wanted).unwrap();
                let found: Vec<_> = directory.iter().map(|(id, name)| (id.0, name.to_string())).collect();
                let expected: Vec<_> = (0..).zip(names.iter().cloned()).collect();
                prop_assert_eq!(found, expected);
            }
        }
        prop_assert_eq!(reference.compare(&store), Ok(()));
    }
    drop(store);
    let store = Store::open(path, options()).unwrap();
    prop_assert_eq!(reference.compare(&store), Ok(()));
    let directory = store.directory(&[]).unwrap();
    for (id, name) in (0..).zip(&names) {
        prop_assert_eq!(directory.id(name), Some(PeerId(id)));
    }
    Ok(())
}

#[test]
fn a_file_of_a_newer_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.redb");
    drop(Store::open(&path, options()).unwrap());
    // Higher than the format of files with encrypted contents.
    let newer = 12_u64;
    let set = |format: u64| {
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction
            .open_table(TableDefinition::<&str, u64>::new("meta"))
            .unwrap()
            .insert("format", format)
            .unwrap();
        transaction.commit().unwrap();
    };
    set(newer);
    let error = Store::open(&path, options()).unwrap_err();
    assert!(matches!(&error, StoreError::TooNew { found, .. } if *found == newer), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(path.to_str().unwrap()) && text.contains(&format!("record format {newer}")),
        "{text}"
    );
    // The refusal leaves the file unchanged.
    for known in [newer - 1, newer - 2] {
        set(known);
        Store::open(&path, options()).unwrap();
    }
}

#[test]
fn a_file_in_use_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.redb");
    let first = Store::open(&path, options()).unwrap();
    let error = Store::open(&path, options()).unwrap_err();
    assert!(matches!(&error, StoreError::InUse(used) if *used == path), "{error}");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(first);
    Store::open(&path, options()).unwrap();
}
