//! What a replay costs beside its candidate: `cargo run --release -p replay --example pace -- [messages]`.
//!
//! A native candidate that answers at once judges messages from memory, then messages of a SQLite archive.

#[path = "../../archive/tests/scenarios/messages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "shared with the archive's tests")]
mod messages;

use anyhow::{Context, Result};
use archive::{Archive, ArchivedMessage, ArchivedVerdict, Options, ReplayRange};
use messages::{NAMES, Shelf, archived, finished};
use replay::{
    Batch, BoxError, Candidate, FromArchive, Judged, JudgedLeg, Judgement, Pace, Replay, Report, Source,
};
use std::sync::Arc;

/// Messages that are made once and given again and again.
const MADE: u64 = 2048;

/// The same messages over and over, in memory.
struct Memory {
    batch: Vec<ArchivedMessage>,
    left: u64,
}

impl Source for Memory {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        let batches = self.left;
        self.left = batches.saturating_sub(1);
        Ok((batches > 0).then(|| Batch::Ready(self.batch.clone())))
    }
}

/// Always one of these peers.
enum Constant {
    /// As it was decided.
    Same([Arc<str>; 4]),
    /// Nobody went there.
    Other(Arc<str>),
}

impl Candidate for Constant {
    fn judge(&self, message: &ArchivedMessage) -> Judged {
        let peer = match (self, &message.verdict) {
            (Self::Same(names), ArchivedVerdict::Forward(legs)) => names
                .iter()
                .find(|name| legs.first().is_some_and(|leg| leg.peer == **name))
                .unwrap_or(&names[0]),
            (Self::Same(names), _) => &names[0],
            (Self::Other(name), _) => name,
        };
        Judged::new(Judgement::Forward([JudgedLeg::to(peer.clone())].into_iter().collect()))
    }
}

#[allow(clippy::print_stdout, reason = "it is what this is for")]
fn tell(what: &str, report: &Report) {
    let Pace { threads, seconds, messages_per_second, loaded_per_second_per_core: loaded, .. } = report.pace;
    println!(
        "{what}: {} messages, {} differ, {threads} judges, {seconds:.2} s: {messages_per_second:.0} messages/s; on one core: judged {:.0}/s, loaded {loaded:.0}/s (read {:.2} s, decoded {:.2} s)",
        report.messages,
        report.different,
        report.pace.judged_per_second_per_core,
        report.pace.reading_seconds,
        report.pace.decoding_seconds,
    );
}

fn main() -> Result<()> {
    let count: u64 = std::env::args().nth(1).map(|text| text.parse()).transpose()?.unwrap_or(1_000_000);
    let same: Arc<dyn Candidate> = Arc::new(Constant::Same(NAMES.map(Arc::from)));
    let other: Arc<dyn Candidate> = Arc::new(Constant::Other("elsewhere".into()));
    let batch: Vec<_> = (0..MADE).map(|n| archived(&finished(n), false)).collect();
    for (what, candidate) in [("memory, all the same", &same), ("memory, all different", &other)] {
        let source = Memory { batch: batch.clone(), left: count / MADE };
        tell(what, &Replay::default().start(source, candidate)?.wait());
    }

    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("archive.sqlite").display());
    let archive = Archive::open(&url, Options { share: 1.0, ..Options::default() })?;
    let shelf = Arc::new(Shelf::default());
    let pump = archive.pump(shelf.clone()).start()?;
    let begun = std::time::Instant::now();
    let mut next = 0;
    while next < count {
        let until = count.min(next + 50_000);
        shelf.put((next..until).map(finished));
        pump.wake();
        shelf.wait_for(0);
        next = until;
    }
    pump.stop();
    let size = std::fs::metadata(folder.path().join("archive.sqlite")).context("the archive's file")?.len();
    #[allow(clippy::print_stdout, reason = "it is what this is for")]
    {
        println!(
            "archived {count} messages in {:.1} s, {} octets each",
            begun.elapsed().as_secs_f64(),
            size / count
        );
    }
    for (what, body, threads) in
        [("SQLite", false, 1), ("SQLite, 2 judges", false, 2), ("SQLite, with texts", true, 1)]
    {
        let source = FromArchive::new(&archive, ReplayRange { body, ..ReplayRange::default() })?;
        tell(what, &Replay { threads, ..Replay::default() }.start(source, &same)?.wait());
    }
    Ok(())
}
