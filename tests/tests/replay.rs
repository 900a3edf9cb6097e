//! A replay out of real MariaDB and PostgreSQL says what a replay from memory says. (SQLite: the crate's own tests.)

#[path = "../../host/archive/tests/scenarios/messages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "shared with the archive's tests")]
mod messages;

use anyhow::Result;
use archive::{Archive, ArchivedMessage, ArchivedVerdict, Options, ReplayRange};
use messages::{Shelf, archived, decided};
use model::RejectReason;
use replay::{
    Batch, BoxError, Candidate, Ended, FromArchive, Judged, JudgedLeg, Judgement, Pace, Replay, Report,
    Source,
};
use std::path::Path;
use std::sync::Arc;
use xtask::database::Database;

const MESSAGES: u64 = 6000;

/// Refuses some, sends all others north.
struct North;

impl Candidate for North {
    fn judge(&self, message: &ArchivedMessage) -> Judged {
        let seen = message.seen.as_ref().map_or(0, bytes::Bytes::len);
        let held = matches!(message.verdict, ArchivedVerdict::Hold(_));
        Judged::new(if seen % 3 == 1 || held {
            Judgement::Reject(RejectReason::Prohibited)
        } else {
            Judgement::Forward([JudgedLeg::to("north")].into_iter().collect())
        })
    }
}

struct Memory(Option<Vec<ArchivedMessage>>);

impl Source for Memory {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        Ok(self.0.take().map(Batch::Ready))
    }
}

fn run(source: impl Source) -> Result<Report> {
    let candidate: Arc<dyn Candidate> = Arc::new(North);
    let report = Replay { threads: 2, ..Replay::default() }.start(source, &candidate)?.wait();
    Ok(Report { pace: Pace::default(), ..Report::clone(&report) })
}

fn says_the_same(begin: fn(&Path) -> Result<Database>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let database = begin(folder.path())?;
    let archive = Archive::open(&database.url(), Options::default())?;
    let shelf = Arc::new(Shelf::default());
    shelf.put((0..MESSAGES).map(decided));
    let pump = archive.pump(shelf.clone()).start()?;
    shelf.wait_for(0);
    pump.stop();
    for body in [false, true] {
        let source = FromArchive::new(&archive, ReplayRange { body, ..ReplayRange::default() })?;
        let memory = Memory(Some((0..MESSAGES).map(|n| archived(&decided(n), body)).collect()));
        let report = run(source)?;
        assert_eq!(report.ended, Ended::Complete);
        assert!(report.new_rejects > 0 && report.same > 0);
        assert_eq!(report, run(memory)?);
    }
    Ok(())
}

#[test]
fn from_mariadb() -> Result<()> {
    says_the_same(Database::mariadb)
}

#[test]
fn from_postgres() -> Result<()> {
    says_the_same(Database::postgres)
}
