//! Measures the cost of a commit, with and without the allocator's state in every one (`StoreOptions::quick_repair`),
//! for several batch sizes: `cargo run --release -p store --example commit_speed -- FOLDER`, a folder on the disk to
//! measure.
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
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
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
        accepted_at: Timestamp(1_700_000_000_000),
        scheduled: None,
        expires_at: Timestamp(1_700_086_400_000),
        routed: RoutingDecision {
            verdict: Verdict::Forward(vec![Leg::to(PeerId(1))]),
            by: by.clone(),
            note: None,
            sender: None,
            quote: None,
            host_calls: None,
            fault_message_id: None,
        },
    })
}

/// Microseconds per commit. Each commit accepts and submits `size` messages, and finishes those of the previous one.
fn measure(file: &Path, quick_repair: bool, size: u64) -> f64 {
    let store = Store::open(file, StoreOptions { quick_repair, ..StoreOptions::default() }).unwrap();
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
    for batch in &batches {
        store.commit(batch).unwrap();
    }
    begun.elapsed().as_secs_f64() * 1e6 / commits as f64
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder on the disk to be measured");
    let file = Path::new(&folder).join(format!("commit-speed-{}.redb", std::process::id()));
    for size in [1, 10, 100, 1000] {
        // The better of three, alternating, so that other load affects both alike.
        let mut best = [f64::MAX; 2];
        for _ in 0..3 {
            for (best, quick_repair) in best.iter_mut().zip([false, true]) {
                *best = best.min(measure(&file, quick_repair, size));
                std::fs::remove_file(&file).unwrap();
            }
        }
        let [without, with] = best;
        println!(
            "{size:>4} messages a commit: {without:>7.0} µs without, {with:>7.0} µs with quick repair ({:+.0} %), \
             {:>6.0} messages a second with",
            (with / without - 1.0) * 100.0,
            size as f64 * 1e6 / with
        );
    }
}
