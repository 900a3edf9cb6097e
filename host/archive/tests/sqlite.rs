//! The archive on SQLite.

mod scenarios;

use scenarios::messages::Shelf;

struct File(tempfile::TempDir);

#[allow(clippy::expect_used, reason = "the ground that a test stands on")]
impl File {
    fn new(_: &str) -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("archive.sqlite").display())
    }
}

every_scenario!(File::new);

/// The place of the file is not there yet, as when a disk is mounted late.
#[test]
fn waits_until_it_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let archive = scenarios::open(&format!("sqlite:{}", disk.join("archive.sqlite").display()));
    let shelf = Shelf::with(0..100);
    let pump = archive.pump(shelf.clone()).start().unwrap();
    scenarios::until("the pump finds no place", || matches!(pump.status().state, archive::State::Down(_)));
    assert_eq!(shelf.ids().len(), 100);
    std::fs::create_dir(&disk).unwrap();
    shelf.wait_for(0);
    let status = pump.status();
    pump.stop();
    assert_eq!((status.state, status.archived), (archive::State::Up, 100));
    assert!(status.failures > 0);
}
