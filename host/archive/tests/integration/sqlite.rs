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

/// All octets of the database's files: the file itself, the write-ahead log and its index.
fn files(folder: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    for file in std::fs::read_dir(folder)? {
        octets.extend(std::fs::read(file?.path())?);
    }
    Ok(octets)
}

fn count(octets: &[u8], text: &[u8]) -> usize {
    memchr::memmem::find_iter(octets, text).count()
}

/// Rows are written out of order, as messages end, so that pages split; then they are erased in another order.
#[test]
fn erased_texts_are_in_none_of_the_files() {
    let fixture = SqliteFixture::new("");
    let archive = scenarios::open(&fixture.url());
    let source = std::sync::Arc::new(TestSource::default());
    let pump = archive.pump(source.clone()).start().unwrap();
    let shuffled = |by: u64| (0..1200_u64).map(move |n| n * by % 1200);
    for some in shuffled(1009).collect::<Vec<_>>().chunks(37) {
        source.put(some.iter().map(|n| scenarios::erasures::screened(*n)));
        pump.wake();
        source.wait_for(0);
    }
    let before = files(fixture.0.path()).unwrap();
    assert!(
        count(&before, b"Message number") >= 1200 && count(&before, b"5375626d697474656420617320") >= 1200
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let left = |octets: &[u8], n: u64| {
        count(octets, format!("Message number {n},").as_bytes())
            + count(octets, format!("{}\"", model::hex(format!("Submitted as {n}").as_bytes())).as_bytes())
    };
    for (round, some) in shuffled(701).collect::<Vec<_>>().chunks(300).enumerate() {
        let erasures = some.iter().map(|n| scenarios::erasures::erasure(*n)).collect();
        assert_eq!(runtime.block_on(archive.erase_content(erasures)).unwrap(), 300);
        if round == 0 {
            scenarios::until("unused octets are overwritten", || !archive.is_overwriting());
            let octets = files(fixture.0.path()).unwrap();
            let found: Vec<_> = some.iter().filter(|n| left(&octets, **n) > 0).collect();
            assert!(found.is_empty(), "{} of 300 are still there: {found:?}", found.len());
        }
    }
    scenarios::until("unused octets are overwritten", || !archive.is_overwriting());
    pump.stop();
    drop(archive);
    let octets = files(fixture.0.path()).unwrap();
    assert_eq!((count(&octets, b"Message number"), count(&octets, b"5375626d697474656420617320")), (0, 0));
}
