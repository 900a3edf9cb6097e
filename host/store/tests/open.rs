//! Making the file, and what is found in its place.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

use store::{Store, StoreOptions};

fn options() -> StoreOptions {
    StoreOptions { cache: 1 << 20, ..StoreOptions::default() }
}

#[test]
fn what_is_no_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchyard.redb");
    let other = b"something else altogether ".repeat(1000);
    std::fs::write(&path, &other).unwrap();
    let refused = Store::open(&path, options()).unwrap_err();
    assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), other);
}

#[test]
fn making_the_file_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(&folder.path().join("switchyard.redb"), options()).unwrap());
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["switchyard.redb"]);
}
