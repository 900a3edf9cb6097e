//! Measures the overhead of a replay: `cargo run --release -p replay --example throughput -- [messages]`.
//!
//! A native candidate that answers at once decides messages from memory, then messages of a SQLite archive.

#[path = "../../archive/tests/integration/scenarios/messages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "shared with the archive's tests")]
mod messages;

use anyhow::{Context, Result};
use archive::{Archive, ArchiveOptions, ArchivedMessage, ReplayRange};
use messages::{PEER_NAMES, TestSource, archived, finished};
use model::{Leg, Verdict};
use replay::{
    ArchiveSource, Candidate, CandidateDecision, CandidateVerdict, MessageBatch, MessageSource,
    MessageSourceError, ReplayOptions, ReplayReport, Throughput,
};
use std::sync::Arc;

/// Number of different messages, which are used repeatedly.
const DISTINCT_MESSAGES: u64 = 2048;

/// The same messages repeatedly, in memory.
struct MemorySource {
    batch: Vec<ArchivedMessage>,
    left: u64,
}

impl MessageSource for MemorySource {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        let batches = self.left;
        self.left = batches.saturating_sub(1);
        Ok((batches > 0).then(|| MessageBatch::Ready(self.batch.clone())))
    }
}

/// Always forwards to one of these peers.
enum ConstantCandidate {
    /// The archived peer.
    Same([Arc<str>; 4]),
    /// A peer that no message went to.
    Different(Arc<str>),
}

impl Candidate for ConstantCandidate {
    fn decide(&self, message: &ArchivedMessage) -> CandidateDecision {
        let peer = match (self, &message.verdict) {
            (Self::Same(names), Verdict::Forward(legs)) => names
                .iter()
                .find(|name| legs.first().is_some_and(|leg| leg.peer == **name))
                .unwrap_or(&names[0]),
            (Self::Same(names), _) => &names[0],
            (Self::Different(name), _) => name,
        };
        CandidateDecision::new(CandidateVerdict::Decided(Verdict::Forward(vec![Leg::to(peer.clone())])))
    }
}

#[allow(clippy::print_stdout, reason = "this program prints its results")]
fn print_report(what: &str, report: &ReplayReport) {
    let Throughput { threads, seconds, messages_per_second, loaded_per_second_per_core: loaded, .. } =
        report.pace;
    println!(
        "{what}: {} messages, {} differ, {threads} threads, {seconds:.2} s: {messages_per_second:.0} messages/s; on one core: decided {:.0}/s, loaded {loaded:.0}/s (read {:.2} s, decoded {:.2} s)",
        report.messages,
        report.different,
        report.pace.compared_per_second_per_core,
        report.pace.reading_seconds,
        report.pace.decoding_seconds,
    );
}

fn main() -> Result<()> {
    let count: u64 = std::env::args().nth(1).map(|text| text.parse()).transpose()?.unwrap_or(1_000_000);
    let same: Arc<dyn Candidate> = Arc::new(ConstantCandidate::Same(PEER_NAMES.map(Arc::from)));
    let other: Arc<dyn Candidate> = Arc::new(ConstantCandidate::Different("elsewhere".into()));
    let batch: Vec<_> = (0..DISTINCT_MESSAGES).map(|n| archived(&finished(n), false)).collect();
    for (what, candidate) in [("memory, all the same", &same), ("memory, all different", &other)] {
        let source = MemorySource { batch: batch.clone(), left: count / DISTINCT_MESSAGES };
        print_report(what, &ReplayOptions::default().start(source, candidate)?.wait());
    }

    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("archive.sqlite").display());
    let archive = Archive::open(&url, ArchiveOptions { share: 1.0, ..ArchiveOptions::default() })?;
    let test_source = Arc::new(TestSource::default());
    let pump = archive.pump(test_source.clone()).start()?;
    let started = std::time::Instant::now();
    let mut next = 0;
    while next < count {
        let until = count.min(next + 50_000);
        test_source.put((next..until).map(finished));
        pump.wake();
        test_source.wait_for(0);
        next = until;
    }
    pump.stop();
    let size = std::fs::metadata(folder.path().join("archive.sqlite")).context("the archive's file")?.len();
    #[allow(clippy::print_stdout, reason = "this program prints its results")]
    {
        println!(
            "archived {count} messages in {:.1} s, {} octets each",
            started.elapsed().as_secs_f64(),
            size / count
        );
    }
    for (what, body, threads) in
        [("SQLite", false, 1), ("SQLite, 2 threads", false, 2), ("SQLite, with texts", true, 1)]
    {
        let source = ArchiveSource::new(&archive, ReplayRange { body, ..ReplayRange::default() })?;
        print_report(
            what,
            &ReplayOptions { threads, ..ReplayOptions::default() }.start(source, &same)?.wait(),
        );
    }
    Ok(())
}
