//! Measures the cost of a commit and of applying it to the tables, for several batch sizes:
//! `cargo run --release -p store --example commit_speed -- FOLDER`, a folder on the disk to measure.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement run by hand"
)]

use bytes::Bytes;
use model::{
    Address, Batch, DlrRequest, FinalRecord, FinalState, Leg, Message, MessageId, MessageKind, PeerId,
    PeerMessageId, PluginVersion, Priority, RoutingDecision, SubmitAttempt, Text, Timestamp, Verdict,
};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Store, StoreOptions};

fn message(id: u64, by: &Arc<PluginVersion>) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId(id),
        kind: MessageKind::Text,
        origin: PeerId(0),
        source: Address::international("10655912345"),
        destination: Address::international("8613012345678"),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        dlr_request: DlrRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: Text { octets: Bytes::from_static(&[b'x'; 140]), ..Text::default() },
        tlvs: Bytes::new(),
        protocol_fields: Bytes::new(),
        sealed: None,
        accepted_at: Timestamp(1_700_000_000_000),
        scheduled: None,
        expires_at: Timestamp(1_700_086_400_000),
        routed: RoutingDecision::new(Verdict::Forward(vec![Leg::to(PeerId(1))]), by.clone()),
    })
}

/// Microseconds per commit, and microseconds per commit of applying it to the tables. Each commit accepts and submits
/// `size` messages, and finishes the messages of the previous one.
fn measure(file: &Path, size: u64) -> (f64, f64) {
    let store = Store::open(file, StoreOptions::default()).unwrap();
    let by =
        Arc::new(PluginVersion { plugin: "prefix-router".to_owned(), version: "0123456789ab".to_owned() });
    let at = Timestamp(1_700_000_000_000);
    let ended = FinalRecord {
        state: FinalState::Relayed,
        at,
        error: 0,
        peer: Some(PeerId(1)),
        peer_id: PeerMessageId::new(b"0123456789"),
        steps: Vec::new(),
    };
    let commits = (20_000 / size).clamp(40, 400);
    let batches: Vec<Batch> = (0..commits)
        .map(|run| {
            let first = MessageId::FIRST.0 + run * size;
            let ids = first..first + size;
            let before = if run == 0 { 0..0 } else { first - size..first };
            Batch {
                accepted: ids.clone().map(|id| message(id, &by)).collect(),
                submit_attempts: ids
                    .map(|id| SubmitAttempt { id: MessageId(id), attempt: 1, leg: 0, at })
                    .collect(),
                submit_row: run + 1,
                submit_rows_done: if run == 0 { Vec::new() } else { vec![run] },
                finished: before.map(|id| (MessageId(id), ended.clone())).collect(),
                next_id: MessageId(first + size),
                ..Batch::default()
            }
        })
        .collect();
    let begun = Instant::now();
    for batch in batches {
        store.commit(batch).unwrap();
    }
    let committed = begun.elapsed();
    store.checkpoint().unwrap();
    let followed = begun.elapsed() - committed;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / commits as f64;
    (each(committed), each(followed))
}

/// Microseconds of an fdatasync of one rewritten block: the lower bound of a commit.
fn bare_sync(file: &Path) -> f64 {
    let mut block = File::create(file).unwrap();
    let mut times: Vec<Duration> = (0..101)
        .map(|_| {
            block.rewind().unwrap();
            block.write_all(&[7; 4096]).unwrap();
            let begun = Instant::now();
            block.sync_data().unwrap();
            begun.elapsed()
        })
        .collect();
    std::fs::remove_file(file).unwrap();
    times.sort_unstable();
    times[50].as_secs_f64() * 1e6
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder on the disk to be measured");
    let folder = Path::new(&folder);
    let file = folder.join(format!("commit-speed-{}.redb", std::process::id()));
    println!("median of a bare fdatasync: {:.0} µs", bare_sync(&folder.join("commit-speed-block")));
    for size in [1, 10, 100, 1000] {
        let (mut commit, mut follow) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            let (committed, followed) = measure(&file, size);
            (commit, follow) = (commit.min(committed), follow.min(followed));
            std::fs::remove_file(&file).unwrap();
            std::fs::remove_dir_all(store::journal_path(&file)).unwrap();
        }
        let both = (commit + follow) / size as f64;
        println!(
            "{size:>4} messages a commit: {commit:>7.0} µs, tables {follow:>6.0} µs; {both:>7.2} µs a message"
        );
    }
}
