//! Contents that are encrypted.

use super::erasures::screened;
use super::messages::{START, TestSource};
use super::{fill, open, runtime};
use archive::{Archive, DecisionDecoder, MissingData, ReplayRange};
use codec::ContentCipher;
use model::{MessageId, PeerId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use text_keys::{RootKey, TextKeys};

const COUNT: u64 = 100;

/// For each message: its text, its text as submitted, and whether its content is erased, in the history and in a replay.
fn contents(archive: &Archive) -> Vec<(Vec<u8>, Vec<u8>, bool, bool)> {
    let mut replay = archive.replay_source(ReplayRange { body: true, ..ReplayRange::default() });
    let mut replayed = Vec::new();
    while let Some(batch) = runtime().block_on(replay.next()).unwrap() {
        for message in batch.decode(&mut DecisionDecoder::new()) {
            let message = message.unwrap();
            replayed.push((message.body.unwrap(), message.missing == Some(MissingData::ContentErased)));
        }
    }
    assert_eq!(replayed.len(), COUNT as usize);
    let read = (0..COUNT).zip(replayed).map(|(n, (replayed, is_missing))| {
        let id = MessageId(MessageId::FIRST.0 + n);
        let record = runtime().block_on(archive.get(id)).unwrap().unwrap();
        let submitted = record.decoded_trace().unwrap().screening.unwrap().submitted_text.unwrap();
        let body = record.body.unwrap();
        assert_eq!(body, replayed);
        (body, submitted.octets.to_vec(), record.content_erased_at.is_some(), is_missing)
    });
    read.collect()
}

/// The texts of one of two accounts are encrypted, and unreadable without their key.
pub fn encrypted_contents_are_read_with_their_key(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.key");
    RootKey::create(&root).unwrap();
    let path = folder.path().join("text.keys");
    let day = Duration::from_secs(86_400);
    let keys = Arc::new(TextKeys::open(&path, RootKey::read(&root).unwrap(), day).unwrap());
    keys.set_accounts([(PeerId(0), "acme".into(), true), (PeerId(1), "bank".into(), false)], false);
    let with_keys = || open(url).with_cipher(Some(keys.clone() as Arc<dyn ContentCipher>));
    let (archive, source) = (with_keys(), Arc::new(TestSource::default()));
    source.put((0..COUNT).map(screened));
    fill(&archive, &source);

    let is_encrypted = |n: u64| n.is_multiple_of(2);
    let erased = (Vec::new(), Vec::new(), true, true);
    let clear = |n: u64| {
        let (message, _) = screened(n);
        let submitted = message.routed.screening.unwrap().submitted_text.unwrap();
        (message.text.octets.to_vec(), submitted.octets.to_vec(), false, false)
    };
    assert_eq!(contents(&archive), (0..COUNT).map(clear).collect::<Vec<_>>());
    let locked: Vec<_> =
        (0..COUNT).map(|n| if is_encrypted(n) { erased.clone() } else { clear(n) }).collect();
    assert_eq!(contents(&open(url)), locked, "without keys");

    let numbers: BTreeSet<u64> = keys.list().iter().map(|key| key.number).collect();
    let at = Timestamp(START + 7);
    assert_eq!(keys.destroy(&numbers, at).unwrap(), 1);
    let archive = with_keys();
    assert_eq!(contents(&archive), locked, "after the destruction of the key");
    let record = runtime().block_on(archive.get(MessageId::FIRST)).unwrap().unwrap();
    assert_eq!(record.content_erased_at, Some(at));
    assert!(record.trace.unwrap().get().contains("destruction of its key"));
}
