//! A replay from real MariaDB and PostgreSQL gives the same report as a replay from memory. (SQLite: see the crate's tests.)

#[path = "../../../../host/archive/tests/integration/scenarios/messages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "shared with the archive's tests")]
mod messages;

use anyhow::Result;
use archive::{Archive, ArchiveOptions, ArchivedMessage, ReplayRange};
use messages::{TestSource, archived, decided};
use model::{Leg, RejectReason, Verdict};
use replay::{
    ArchiveSource, Candidate, CandidateDecision, CandidateVerdict, MessageBatch, MessageSource,
    MessageSourceError, ReplayOptions, ReplayOutcome, ReplayReport, Throughput,
};
use std::path::Path;
use std::sync::Arc;
use testkit::database::Database;

const MESSAGES: u64 = 6000;

/// Refuses some messages and sends all others to `north`.
struct North;

impl Candidate for North {
    fn decide(&self, message: &ArchivedMessage) -> CandidateDecision {
        let seen = message.host_calls.as_ref().map_or(0, bytes::Bytes::len);
        let held = matches!(message.verdict, Verdict::Hold(_));
        CandidateDecision::new(CandidateVerdict::Decided(if seen % 3 == 1 || held {
            Verdict::Reject(RejectReason::Prohibited)
        } else {
            Verdict::Forward(vec![Leg::to("north".into())])
        }))
    }
}

struct Memory(Option<Vec<ArchivedMessage>>);

impl MessageSource for Memory {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        Ok(self.0.take().map(MessageBatch::Ready))
    }
}

fn run(source: impl MessageSource) -> Result<ReplayReport> {
    let candidate: Arc<dyn Candidate> = Arc::new(North);
    let report = ReplayOptions { threads: 2, ..ReplayOptions::default() }.start(source, &candidate)?.wait();
    Ok(ReplayReport { pace: Throughput::default(), ..ReplayReport::clone(&report) })
}

fn check_same_report(begin: fn(&Path) -> Result<Database>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let database = begin(folder.path())?;
    let archive = Archive::open(&database.url(), ArchiveOptions::default())?;
    let source = Arc::new(TestSource::default());
    source.put((0..MESSAGES).map(decided));
    let pump = archive.pump(source.clone()).start()?;
    source.wait_for(0);
    pump.stop();
    for body in [false, true] {
        let source = ArchiveSource::new(&archive, ReplayRange { body, ..ReplayRange::default() })?;
        let memory = Memory(Some((0..MESSAGES).map(|n| archived(&decided(n), body)).collect()));
        let report = run(source)?;
        assert_eq!(report.ended, ReplayOutcome::Complete);
        assert!(report.new_rejects > 0 && report.same > 0);
        assert_eq!(report, run(memory)?);
    }
    Ok(())
}

#[test]
fn a_replay_from_mariadb_gives_the_same_report() -> Result<()> {
    check_same_report(Database::mariadb)
}

#[test]
fn a_replay_from_postgres_gives_the_same_report() -> Result<()> {
    check_same_report(Database::postgres)
}
