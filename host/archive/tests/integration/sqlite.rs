//! The archive on SQLite.

use crate::scenarios;
use crate::scenarios::messages::TestSource;

struct SqliteFixture(tempfile::TempDir);

impl SqliteFixture {
    fn new(_: &str) -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("archive.sqlite").display())
    }
}

crate::every_scenario!(SqliteFixture::new);

/// The folder of the file does not exist yet, as when a disk is mounted late.
#[test]
fn the_pump_waits_for_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let archive = scenarios::open(&format!("sqlite:{}", disk.join("archive.sqlite").display()));
    let source = TestSource::with(0..100);
    let pump = archive.pump(source.clone()).start().unwrap();
    scenarios::until("the pump reports the database as down", || pump.status().state == api::PumpState::Down);
    assert_eq!(source.ids().len(), 100);
    std::fs::create_dir(&disk).unwrap();
    source.wait_for(0);
    let status = pump.status();
    pump.stop();
    assert_eq!((status.state, status.archived), (api::PumpState::Up, 100));
    assert!(status.failures > 0);
}
