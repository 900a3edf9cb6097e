//! The life of a replay: candidates that fail, sources that break, cancel, messages of the archive.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the ground that tests stand on")]

#[path = "../../archive/tests/scenarios/messages.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "shared with the archive's tests")]
mod messages;

use archive::{Archive, ArchivedMessage, ArchivedVerdict, Options, ReplayRange};
use messages::{NAMES, Shelf, archived, decided, finished};
use model::{MessageId, RejectReason};
use parking_lot::{Condvar, Mutex};
use replay::{
    Batch, BoxError, Candidate, Ended, FromArchive, Judged, JudgedLeg, Judgement, Pace, PriceVerdict, Replay,
    Report, Source,
};
use std::borrow::Cow;
use std::sync::Arc;

/// A candidate made of a function.
struct Says<F>(F);

impl<F: Fn(&ArchivedMessage) -> Judged + Send + Sync + 'static> Candidate for Says<F> {
    fn judge(&self, message: &ArchivedMessage) -> Judged {
        self.0(message)
    }
}

fn says(says: impl Fn(&ArchivedMessage) -> Judged + Send + Sync + 'static) -> Arc<dyn Candidate> {
    Arc::new(Says(says))
}

fn forward(peer: &str) -> Judged {
    Judged::new(Judgement::Forward([JudgedLeg::to(peer)].into_iter().collect()))
}

/// As it was decided.
fn echo(message: &ArchivedMessage) -> Judged {
    Judged::new(match &message.verdict {
        ArchivedVerdict::Forward(legs) if legs.iter().all(|leg| leg.resolve) => Judgement::Home,
        ArchivedVerdict::Forward(legs) => Judgement::Forward(
            legs.iter()
                .map(|leg| JudgedLeg {
                    peer: leg.peer.clone(),
                    rank: leg.rank,
                    weight: leg.weight,
                    source: leg.source.clone(),
                    destination: leg.destination.clone(),
                })
                .collect(),
        ),
        ArchivedVerdict::Hold(until) => Judgement::Hold(*until),
        ArchivedVerdict::Reject(reason) => Judgement::Reject(*reason),
    })
}

fn number(message: &ArchivedMessage) -> u64 {
    message.id.0 - MessageId::FIRST.0
}

/// Batches in memory; whatever comes after them.
struct Memory {
    batches: std::vec::IntoIter<Vec<ArchivedMessage>>,
    end: Option<BoxError>,
}

impl Memory {
    fn of(messages: impl IntoIterator<Item = ArchivedMessage>, batch: usize) -> Self {
        let messages: Vec<_> = messages.into_iter().collect();
        let batches: Vec<_> = messages.chunks(batch).map(<[_]>::to_vec).collect();
        Self { batches: batches.into_iter(), end: None }
    }
}

impl Source for Memory {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        match (self.batches.next(), self.end.take()) {
            (Some(batch), end) => {
                self.end = end;
                Ok(Some(Batch::Ready(batch)))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}

fn ordinary(count: u64) -> impl Iterator<Item = ArchivedMessage> {
    (0..count).map(|n| archived(&finished(n), false))
}

fn run(source: impl Source, candidate: &Arc<dyn Candidate>, threads: usize) -> Report {
    let how = Replay { threads, ..Replay::default() };
    let report = how.start(source, candidate).unwrap().wait();
    Report { pace: Pace::default(), ..Report::clone(&report) }
}

fn groups(report: &Report) -> Vec<(&str, &str, u64)> {
    report.groups.iter().map(|group| (&*group.from, &*group.to, group.count)).collect()
}

#[test]
fn differences_are_told_in_words() {
    // Every word of these stands in a report.
    let candidate = says(|message| match number(message) % 6 {
        0 => forward("north"),
        1 => echo(message),
        2 => forward("north"),
        3 => Judged::new(Judgement::Pass),
        4 => Judged::new(Judgement::Reject(RejectReason::Prohibited)),
        _ => Judged::new(Judgement::Fault(Cow::Borrowed("deadline"))),
    });
    let report = run(Memory::of((0..60).map(|n| archived(&decided(n), false)), 7), &candidate, 2);
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
    // Numbers are masked.
    assert_eq!((example.origin.as_str(), example.destination.as_str()), ("acme", "4917******02"));
    assert_eq!(report.groups[0].examples.len(), 5);
}

#[test]
fn a_report_is_the_same_by_way_of_json() {
    let candidate = says(|message| {
        let account = message.origin.clone();
        let price = Some(PriceVerdict::Charge { account, amount: 500 });
        let inexact_because =
            number(message).is_multiple_of(3).then_some(Cow::Borrowed("the clock was not recorded"));
        Judged { price, inexact_because, ..forward("south") }
    });
    let report = run(Memory::of((0..100).map(|n| archived(&decided(n), false)), 10), &candidate, 1);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["ended"]["how"], "complete");
    assert_eq!(value["inexact"][0]["because"], "the clock was not recorded");
    assert_eq!(value["price"]["total"]["new"], 50_000);
    assert_eq!(value["price"]["accounts"][0]["account"], "bank");
}

#[test]
fn a_candidate_that_panics_faults() {
    let candidate = says(|message| {
        assert!(number(message) % 50 != 7, "seven is too much");
        echo(message)
    });
    let report = run(Memory::of(ordinary(1000), 64), &candidate, 3);
    assert_eq!((report.messages, report.new_faults, report.different), (1000, 20, 20));
    let panics: u64 =
        report.groups.iter().filter(|group| group.to == "fault panic").map(|group| group.count).sum();
    assert_eq!(panics, 20);
}

#[test]
fn a_source_that_breaks_leaves_a_report_of_what_was_read() {
    let mut source = Memory::of(ordinary(500), 50);
    source.end = Some("the disk is gone".into());
    let report = run(source, &says(echo), 2);
    assert_eq!(report.ended, Ended::Failed { why: "the disk is gone".into() });
    assert_eq!((report.messages, report.same), (500, 500));
}

struct Panics;

impl Source for Panics {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        panic!("a source of trouble")
    }
}

#[test]
fn a_source_that_panics_leaves_a_report() {
    let report = run(Panics, &says(echo), 2);
    assert_eq!(report.ended, Ended::Failed { why: "the source has panicked".into() });
    assert_eq!(report.messages, 0);
}

/// Without an end.
struct Endless(u64);

impl Source for Endless {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        self.0 += 100;
        Ok(Some(Batch::Ready((self.0 - 100..self.0).map(|n| archived(&finished(n), false)).collect())))
    }
}

#[test]
fn a_cancelled_replay_tells_of_the_oldest_messages() {
    // Judges stop at number 5,000 until the test has cancelled.
    let gate = Arc::new((Mutex::new((false, false)), Condvar::new()));
    let candidate = {
        let gate = gate.clone();
        says(move |message| {
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
    let running = Replay { threads: 2, ..Replay::default() }.start(Endless(0), &candidate).unwrap();
    let mut state = gate.0.lock();
    while !state.0 {
        gate.1.wait(&mut state);
    }
    drop(state);
    // The other does what it may meanwhile, and with it all that comes before: ten batches have room, one is held.
    while running.progress().judged < 5900 {
        std::thread::yield_now();
    }
    assert!(running.report().is_none());
    assert!(!running.progress().ended);
    running.cancel();
    gate.0.lock().1 = true;
    gate.1.notify_all();
    let report = running.wait();
    assert_eq!(report.ended, Ended::Cancelled);
    // Whole batches, without a gap: those before the one in which a judge stood.
    assert_eq!((report.messages, report.different), (5000, 5000));
    assert!(running.progress().ended && running.progress().judged >= report.messages);
    assert!(report.groups.iter().all(|group| group.examples[0].id.0 < MessageId::FIRST.0 + 10));
}

#[test]
fn a_slow_judge_does_not_pile_up_what_others_have_done() {
    // One stands still at the first message; the other may go on only so far.
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let candidate = {
        let gate = gate.clone();
        says(move |message| {
            if number(message) == 0 {
                let mut open = gate.0.lock();
                while !*open {
                    gate.1.wait(&mut open);
                }
            }
            echo(message)
        })
    };
    let running = Replay { threads: 2, ..Replay::default() }
        .start(Memory::of(ordinary(10_000), 10), &candidate)
        .unwrap();
    // Room for ten batches: the first, and nine that are judged already.
    while running.progress().judged < 90 {
        std::thread::yield_now();
    }
    assert_eq!(running.progress().read, 100);
    *gate.0.lock() = true;
    gate.1.notify_all();
    assert_eq!(running.wait().messages, 10_000);
}

#[test]
fn dropping_it_cancels_it() {
    let candidate = says(echo);
    let watched = Arc::downgrade(&candidate);
    let running = Replay::default().start(Endless(0), &candidate).unwrap();
    drop((running, candidate));
    // Its threads end, and leave the candidate.
    while watched.strong_count() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn removed_peers_keep_their_names() {
    // Nobody is called so any more: verdicts are by name.
    let candidate = says(|message| match &message.verdict {
        ArchivedVerdict::Forward(legs) if &*legs[0].peer == "north" => forward("successor of north"),
        _ => echo(message),
    });
    let report = run(Memory::of(ordinary(400), 33), &candidate, 2);
    assert_eq!(groups(&report), [("forward north", "forward successor of north", 180)]);
}

fn open(folder: &tempfile::TempDir) -> Archive {
    let url = format!("sqlite:{}", folder.path().join("archive.sqlite").display());
    let options = Options { linger: std::time::Duration::ZERO, ..Options::default() };
    Archive::open(&url, options).unwrap()
}

fn fill(archive: &Archive, messages: impl Iterator<Item = messages::Finished>) {
    let shelf = Arc::new(Shelf::default());
    shelf.put(messages);
    let pump = archive.pump(shelf.clone()).start().unwrap();
    shelf.wait_for(0);
    pump.stop();
}

/// Decides otherwise about some, by what it is given of each: origin, addresses, price and host answers.
fn picky(message: &ArchivedMessage) -> Judged {
    let digits: u64 = message.destination.value.iter().map(|octet| u64::from(*octet)).sum();
    let price = message.price.as_ref().map(|price| match &price.account {
        Some(account) => PriceVerdict::Charge { account: account.clone(), amount: price.amount + digits },
        None => PriceVerdict::Free,
    });
    let inexact_because = message.seen.is_none().then_some(Cow::Borrowed("peers were not recorded"));
    let judged = match digits % 5 {
        0 => forward(NAMES[2]),
        1 => Judged::new(Judgement::Reject(RejectReason::NoRoute)),
        _ => echo(message),
    };
    Judged { price, inexact_because, note: Some(message.origin.to_string().into()), ..judged }
}

#[test]
fn the_archive_gives_what_memory_gives() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(&folder);
    fill(&archive, (0..9000).map(decided));
    let candidate = says(picky);
    let expected = run(Memory::of((0..9000).map(|n| archived(&decided(n), false)), 100), &candidate, 1);
    assert_eq!(expected.exact, 9000 / 4);
    assert!(expected.groups.len() > 5 && expected.new_rejects > 0, "the test should find something");
    for threads in [1, 3] {
        let source = FromArchive::new(&archive, ReplayRange::default()).unwrap();
        assert_eq!(run(source, &candidate, threads), expected);
    }
    // The archive tells how far it is.
    let source =
        FromArchive::new(&archive, ReplayRange { limit: Some(2500), ..ReplayRange::default() }).unwrap();
    let running = Replay::default().start(source, &candidate).unwrap();
    let report = running.wait();
    assert_eq!((report.messages, running.progress().expected), (2500, Some(2500)));
    assert!(report.pace.judging_seconds > 0.0 && report.pace.reading_seconds > 0.0);
}

#[test]
fn an_archive_that_is_away_is_told() {
    let archive = Archive::open("sqlite:/nonexistent/folder/archive.sqlite", Options::default()).unwrap();
    let source = FromArchive::new(&archive, ReplayRange::default()).unwrap();
    let report = run(source, &says(echo), 2);
    assert!(matches!(&report.ended, Ended::Failed { why } if why.contains("archive:")), "{:?}", report.ended);
}
