//! Encodes a batch with and without encryption: `cargo run --release -p text-keys --example batch_encoding`.
#![allow(clippy::print_stdout, reason = "a command line tool prints its result")]
#![allow(clippy::unwrap_used, reason = "a failed step ends the measurement")]

use codec::{ContentCipher, encode_batch_with};
use model::{
    Address, Batch, DlrRequest, Leg, Message, MessageId, MessageKind, PeerId, PluginVersion, Priority,
    RoutingDecision, Text, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use text_keys::{RootKey, TextKeys};

const MESSAGES: u64 = 200;
const ROUNDS: u32 = 500;

fn message(id: u64) -> Message {
    let by = Arc::new(PluginVersion { plugin: "native".to_owned(), version: String::new() });
    let text = format!(
        "Your code is {id:06}. It is valid for ten minutes; do not give it to anybody who calls you."
    );
    Message {
        id: MessageId(id),
        kind: MessageKind::Text,
        origin: PeerId(1),
        source: Address::new(5, 0, b"bank"),
        destination: Address::new(1, 1, b"491701234567"),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        dlr_request: DlrRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: Text { octets: text.into(), ..Text::default() },
        tlvs: bytes::Bytes::new(),
        protocol_fields: bytes::Bytes::new(),
        sealed: None,
        accepted_at: Timestamp(1_800_000_000_000 + id),
        scheduled: None,
        expires_at: Timestamp(1_800_100_000_000),
        routed: RoutingDecision::new(Verdict::Forward(vec![Leg::to(PeerId(2))]), by),
    }
}

/// The time for one batch, and its octets.
fn measure(batch: &Batch, cipher: Option<&dyn ContentCipher>) -> (Duration, usize) {
    let mut octets = Vec::new();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        octets.clear();
        encode_batch_with(&mut octets, batch, cipher).unwrap();
    }
    (begun.elapsed() / ROUNDS, octets.len())
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.key");
    RootKey::create(&root).unwrap();
    let path = folder.path().join("text.keys");
    let keys = TextKeys::open(&path, RootKey::read(&root).unwrap(), Duration::from_secs(86_400)).unwrap();
    keys.set_accounts([(PeerId(1), "bank".into(), true)], false);
    let accepted = (0..MESSAGES).map(|id| Arc::new(message(id))).collect();
    let batch = Batch { accepted, next_id: MessageId(MESSAGES), ..Batch::default() };
    // The first one creates the key.
    measure(&batch, Some(&keys));
    for (name, cipher) in [("as it is", None), ("encrypted", Some(&keys as &dyn ContentCipher))] {
        let (time, octets) = measure(&batch, cipher);
        let each = time.as_secs_f64() * 1e6 / MESSAGES as f64;
        println!("{name}: {MESSAGES} messages, {octets} octets, {time:?}, {each:.2} us per message");
    }
}
