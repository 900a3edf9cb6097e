//! The life cycle of a replay: failing candidates and sources, cancellation, messages of the archive.

use crate::messages::{self, PEER_NAMES, TestSource, archived, decided, finished};
use archive::{Archive, ArchiveOptions, ArchivedMessage, ReplayRange};
use model::{Leg, MessageId, RejectReason, Verdict};
use parking_lot::{Condvar, Mutex};
use replay::{
    ArchiveSource, Candidate, CandidateDecision, CandidatePrice, CandidateVerdict, MessageBatch,
    MessageSource, MessageSourceError, ReplayOptions, ReplayOutcome, ReplayReport, Throughput,
};
use std::borrow::Cow;
use std::sync::Arc;

/// A candidate from a function.
struct FnCandidate<F>(F);

impl<F: Fn(&ArchivedMessage) -> CandidateDecision + Send + Sync + 'static> Candidate for FnCandidate<F> {
    fn decide(&self, message: &ArchivedMessage) -> CandidateDecision {
        self.0(message)
    }
}

fn candidate_fn(
    candidate_fn: impl Fn(&ArchivedMessage) -> CandidateDecision + Send + Sync + 'static,
) -> Arc<dyn Candidate> {
    Arc::new(FnCandidate(candidate_fn))
}

fn forward(peer: &str) -> CandidateDecision {
    CandidateDecision::new(CandidateVerdict::Decided(Verdict::Forward(vec![Leg::to(peer.into())])))
}

/// The archived decision.
fn echo(message: &ArchivedMessage) -> CandidateDecision {
    CandidateDecision::new(CandidateVerdict::Decided(message.verdict.clone()))
}

fn number(message: &ArchivedMessage) -> u64 {
    message.id.0 - MessageId::FIRST.0
}

/// Batches in memory, followed by an end or an error.
struct MemorySource {
    batches: std::vec::IntoIter<Vec<ArchivedMessage>>,
    end: Option<MessageSourceError>,
}

impl MemorySource {
    fn of(messages: impl IntoIterator<Item = ArchivedMessage>, batch: usize) -> Self {
        let messages: Vec<_> = messages.into_iter().collect();
        let batches: Vec<_> = messages.chunks(batch).map(<[_]>::to_vec).collect();
        Self { batches: batches.into_iter(), end: None }
    }
}

impl MessageSource for MemorySource {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        match (self.batches.next(), self.end.take()) {
            (Some(batch), end) => {
                self.end = end;
                Ok(Some(MessageBatch::Ready(batch)))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}

fn ordinary(count: u64) -> impl Iterator<Item = ArchivedMessage> {
    (0..count).map(|n| archived(&finished(n), false))
}

fn run(source: impl MessageSource, candidate: &Arc<dyn Candidate>, threads: usize) -> ReplayReport {
    let options = ReplayOptions { threads, ..ReplayOptions::default() };
    let report = options.start(source, candidate).unwrap().wait();
    ReplayReport { pace: Throughput::default(), ..ReplayReport::clone(&report) }
}

fn groups(report: &ReplayReport) -> Vec<(&str, &str, u64)> {
    report.groups.iter().map(|group| (&*group.from, &*group.to, group.count)).collect()
}

#[test]
fn differences_are_described_in_words() {
    // All of these texts appear in a report.
    let candidate = candidate_fn(|message| match number(message) % 6 {
        0 => forward("north"),
        1 => echo(message),
        2 => forward("north"),
        3 => CandidateDecision::new(CandidateVerdict::Pass),
        4 => CandidateDecision::new(CandidateVerdict::Decided(Verdict::Reject(RejectReason::Prohibited))),
        _ => CandidateDecision::new(CandidateVerdict::Fault(Cow::Borrowed("deadline"))),
    });
    let report = run(MemorySource::of((0..60).map(|n| archived(&decided(n), false)), 7), &candidate, 2);
    assert_eq!((report.messages, report.same, report.different), (60, 20, 40));
    assert_eq!((report.new_rejects, report.new_faults, report.exact), (10, 10, 60));
    assert_eq!(
        groups(&report),
        [
            ("forward north(both rewritten)", "forward north", 10),
            ("hold", "reject prohibited", 10),
            ("home", "pass", 10),
            ("reject prohibited", "fault deadline", 10),
        ]
    );
    let example = &report.groups[0].examples[0];
    assert_eq!(example.id.0, MessageId::FIRST.0 + 2);
    assert_eq!((example.origin.as_str(), example.destination.as_str()), ("acme", "491700000002"));
    assert_eq!(report.groups[0].examples.len(), 5);
}

#[test]
fn a_report_survives_json() {
    let candidate = candidate_fn(|message| {
        let account = message.origin.clone();
        let price = Some(CandidatePrice::Charge { account, amount: 500 });
        let inexact_because =
            number(message).is_multiple_of(3).then_some(Cow::Borrowed("the clock was not recorded"));
        CandidateDecision { price, inexact_because, ..forward("south") }
    });
    let report = run(MemorySource::of((0..100).map(|n| archived(&decided(n), false)), 10), &candidate, 1);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<ReplayReport>(&text).unwrap(), report);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["ended"]["how"], "complete");
    assert_eq!(value["inexact"][0]["because"], "the clock was not recorded");
    assert_eq!(value["price"]["total"]["new"], 50_000);
    assert_eq!(value["price"]["accounts"][0]["account"], "bank");
}

#[test]
fn a_panicking_candidate_is_a_fault() {
    let candidate = candidate_fn(|message| {
        assert!(number(message) % 50 != 7, "seven is too much");
        echo(message)
    });
    let report = run(MemorySource::of(ordinary(1000), 64), &candidate, 3);
    assert_eq!((report.messages, report.new_faults, report.different), (1000, 20, 20));
    let panics: u64 =
        report.groups.iter().filter(|group| group.to == "fault panic").map(|group| group.count).sum();
    assert_eq!(panics, 20);
}

#[test]
fn a_failing_source_leaves_a_partial_report() {
    let mut source = MemorySource::of(ordinary(500), 50);
    source.end = Some("the disk is gone".into());
    let report = run(source, &candidate_fn(echo), 2);
    assert_eq!(report.ended, ReplayOutcome::Failed { why: "the disk is gone".into() });
    assert_eq!((report.messages, report.same), (500, 500));
}

struct PanickingSource;

impl MessageSource for PanickingSource {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        panic!("a source of trouble")
    }
}

#[test]
fn a_panicking_source_leaves_a_report() {
    let report = run(PanickingSource, &candidate_fn(echo), 2);
    assert_eq!(report.ended, ReplayOutcome::Failed { why: "the source panicked".into() });
    assert_eq!(report.messages, 0);
}

/// A source without an end.
struct EndlessSource(u64);

impl MessageSource for EndlessSource {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        self.0 += 100;
        Ok(Some(MessageBatch::Ready((self.0 - 100..self.0).map(|n| archived(&finished(n), false)).collect())))
    }
}

#[test]
fn a_cancelled_replay_reports_the_oldest_messages() {
    // Threads stop at number 5,000 until the test has cancelled.
    let gate = Arc::new((Mutex::new((false, false)), Condvar::new()));
    let candidate = {
        let gate = gate.clone();
        candidate_fn(move |message| {
            if number(message) == 5000 {
                let mut state = gate.0.lock();
                state.0 = true;
                gate.1.notify_all();
                while !state.1 {
                    gate.1.wait(&mut state);
                }
            }
            forward("nowhere")
        })
    };
    let running =
        ReplayOptions { threads: 2, ..ReplayOptions::default() }.start(EndlessSource(0), &candidate).unwrap();
    let mut state = gate.0.lock();
    while !state.0 {
        gate.1.wait(&mut state);
    }
    drop(state);
    // The other thread continues as far as possible: there is room for ten batches, and one of them is held.
    while running.progress().compared < 5900 {
        std::thread::yield_now();
    }
    assert!(running.report().is_none());
    assert!(!running.progress().ended);
    running.cancel();
    gate.0.lock().1 = true;
    gate.1.notify_all();
    let report = running.wait();
    assert_eq!(report.ended, ReplayOutcome::Cancelled);
    // Complete batches without a gap, up to the one in which a thread stopped.
    assert_eq!((report.messages, report.different), (5000, 5000));
    assert!(running.progress().ended && running.progress().compared >= report.messages);
    assert!(report.groups.iter().all(|group| group.examples[0].id.0 < MessageId::FIRST.0 + 10));
}

#[test]
fn a_slow_thread_bounds_the_batches_in_flight() {
    // One thread stops at the first message; the other may continue only up to the limit.
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let candidate = {
        let gate = gate.clone();
        candidate_fn(move |message| {
            if number(message) == 0 {
                let mut open = gate.0.lock();
                while !*open {
                    gate.1.wait(&mut open);
                }
            }
            echo(message)
        })
    };
    let running = ReplayOptions { threads: 2, ..ReplayOptions::default() }
        .start(MemorySource::of(ordinary(10_000), 10), &candidate)
        .unwrap();
    // Room for ten batches: the first, and nine that are finished.
    while running.progress().compared < 90 {
        std::thread::yield_now();
    }
    assert_eq!(running.progress().read, 100);
    *gate.0.lock() = true;
    gate.1.notify_all();
    assert_eq!(running.wait().messages, 10_000);
}

#[test]
fn dropping_a_replay_cancels_it() {
    let candidate = candidate_fn(echo);
    let watched = Arc::downgrade(&candidate);
    let running = ReplayOptions::default().start(EndlessSource(0), &candidate).unwrap();
    drop((running, candidate));
    // The threads end, and drop the candidate.
    while watched.strong_count() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn removed_peers_keep_their_names() {
    // No peer has this name any more: verdicts are compared by name.
    let candidate = candidate_fn(|message| match &message.verdict {
        Verdict::Forward(legs) if &*legs[0].peer == "north" => forward("successor of north"),
        _ => echo(message),
    });
    let report = run(MemorySource::of(ordinary(400), 33), &candidate, 2);
    assert_eq!(groups(&report), [("forward north", "forward successor of north", 180)]);
}

fn open(folder: &tempfile::TempDir) -> Archive {
    let url = format!("sqlite:{}", folder.path().join("archive.sqlite").display());
    let options = ArchiveOptions { linger: std::time::Duration::ZERO, ..ArchiveOptions::default() };
    Archive::open(&url, options).unwrap()
}

fn fill(archive: &Archive, messages: impl Iterator<Item = messages::Finished>) {
    let test_source = Arc::new(TestSource::default());
    test_source.put(messages);
    let pump = archive.pump(test_source.clone()).start().unwrap();
    test_source.wait_for(0);
    pump.stop();
}

/// Decides some messages differently, depending on all inputs: origin, addresses, price and host calls.
fn mixed_candidate(message: &ArchivedMessage) -> CandidateDecision {
    let digits: u64 = message.destination.value.iter().map(|octet| u64::from(*octet)).sum();
    let price = message.price.as_ref().map(|price| match &price.account {
        Some(account) => CandidatePrice::Charge { account: account.clone(), amount: price.amount + digits },
        None => CandidatePrice::Free,
    });
    let inexact_because = message.host_calls.is_none().then_some(Cow::Borrowed("peers were not recorded"));
    let decision = match digits % 5 {
        0 => forward(PEER_NAMES[2]),
        1 => CandidateDecision::new(CandidateVerdict::Decided(Verdict::Reject(RejectReason::NoRoute))),
        _ => echo(message),
    };
    CandidateDecision { price, inexact_because, note: Some(message.origin.to_string().into()), ..decision }
}

#[test]
fn the_archive_and_memory_give_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(&folder);
    fill(&archive, (0..9000).map(decided));
    let candidate = candidate_fn(mixed_candidate);
    let expected = run(MemorySource::of((0..9000).map(|n| archived(&decided(n), false)), 100), &candidate, 1);
    assert_eq!(expected.exact, 9000 / 4);
    assert!(expected.groups.len() > 5 && expected.new_rejects > 0, "the test should find something");
    for threads in [1, 3] {
        let source = ArchiveSource::new(&archive, ReplayRange::default()).unwrap();
        assert_eq!(run(source, &candidate, threads), expected);
    }
    // The archive reports the expected number.
    let source =
        ArchiveSource::new(&archive, ReplayRange { limit: Some(2500), ..ReplayRange::default() }).unwrap();
    let running = ReplayOptions::default().start(source, &candidate).unwrap();
    let report = running.wait();
    assert_eq!((report.messages, running.progress().expected), (2500, Some(2500)));
    assert!(report.pace.comparing_seconds > 0.0 && report.pace.reading_seconds > 0.0);
}

#[test]
fn an_unreachable_archive_is_reported() {
    let archive =
        Archive::open("sqlite:/nonexistent/folder/archive.sqlite", ArchiveOptions::default()).unwrap();
    let source = ArchiveSource::new(&archive, ReplayRange::default()).unwrap();
    let report = run(source, &candidate_fn(echo), 2);
    assert!(
        matches!(&report.ended, ReplayOutcome::Failed { why } if why.contains("archive:")),
        "{:?}",
        report.ended
    );
}
