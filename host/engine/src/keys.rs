//! Submission keys: a repeated submission is answered again, not accepted again.

use crate::KeyRecord;
use model::{MessageId, PeerId, Refusal, SubmissionKey, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// What is known of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Known {
    /// Never seen, or forgotten.
    No,
    /// Used for the same submission, which was answered thus.
    Same(Vec<Result<MessageId, Refusal>>),
    /// Used for another submission.
    Other,
}

/// The keys that are remembered, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Keyed hash of origin and octets → serial numbers; whoever finds one compares the octets.
    index: FxHashMap<u64, smallvec::SmallVec<[u64; 1]>>,
    records: VecDeque<KeyRecord>,
    next: u64,
    seed: u64,
}

impl Keys {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    fn hash(&self, origin: PeerId, octets: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(origin.0);
        hasher.write(octets);
        hasher.finish()
    }

    fn record(&self, serial: u64) -> Option<&KeyRecord> {
        let first = self.records.front()?.serial;
        self.records.get(usize::try_from(serial.checked_sub(first)?).ok()?)
    }

    pub(crate) fn find(&self, origin: PeerId, key: &SubmissionKey) -> Known {
        let serials = self.index.get(&self.hash(origin, &key.octets));
        let found = serials.into_iter().flatten().find_map(|serial| {
            self.record(*serial).filter(|record| record.origin == origin && record.key.octets == key.octets)
        });
        match found {
            None => Known::No,
            Some(record) if record.key.digest == key.digest => Known::Same(record.results.clone()),
            Some(_) => Known::Other,
        }
    }

    /// Remembers a key; gives back the record that is to be written.
    pub(crate) fn remember(
        &mut self,
        origin: PeerId,
        key: SubmissionKey,
        at: Timestamp,
        results: Vec<Result<MessageId, Refusal>>,
    ) -> KeyRecord {
        let record = KeyRecord { serial: self.next, origin, key, at, results };
        self.recover(record.clone());
        record
    }

    /// Takes a record as it was found on disk; they come by growing serial number.
    pub(crate) fn recover(&mut self, record: KeyRecord) {
        // The index counts on serial numbers without holes; a hole would be a damaged table, and its keys are forgotten.
        if self.records.back().is_some_and(|last| last.serial + 1 != record.serial) {
            self.records.clear();
            self.index.clear();
        }
        self.next = record.serial + 1;
        let hash = self.hash(record.origin, &record.key.octets);
        self.index.entry(hash).or_default().push(record.serial);
        self.records.push_back(record);
    }

    /// Forgets what is older than `retention` or more than `limit`; the smallest serial number that is left, if any
    /// went.
    pub(crate) fn forget(&mut self, now: Timestamp, retention: Duration, limit: usize) -> Option<u64> {
        let mut gone = None;
        while let Some(first) = self.records.front()
            && (first.at + retention <= now || self.records.len() > limit)
        {
            let (serial, hash) = (first.serial, self.hash(first.origin, &first.key.octets));
            if let Some(serials) = self.index.get_mut(&hash) {
                serials.retain(|other| *other != serial);
                if serials.is_empty() {
                    self.index.remove(&hash);
                }
            }
            self.records.pop_front();
            gone = Some(serial + 1);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &[u8], digest: u64) -> SubmissionKey {
        SubmissionKey { octets: smallvec::SmallVec::from_slice(name), digest }
    }

    #[test]
    fn a_key_is_its_origins_own_and_forgotten_in_time() {
        let mut keys = Keys::new(7);
        let answer = vec![Ok(MessageId(5)), Err(Refusal::QueueFull)];
        let record = keys.remember(PeerId(1), key(b"a", 1), Timestamp(1000), answer.clone());
        keys.remember(PeerId(1), key(b"b", 1), Timestamp(2000), Vec::new());
        assert_eq!(keys.find(PeerId(1), &key(b"a", 1)), Known::Same(answer.clone()));
        assert_eq!(keys.find(PeerId(1), &key(b"a", 2)), Known::Other);
        assert_eq!(keys.find(PeerId(2), &key(b"a", 1)), Known::No);
        let day = Duration::from_secs(1);
        assert_eq!(keys.forget(Timestamp(1999), day, 10), None);
        assert_eq!(keys.forget(Timestamp(2000), day, 10), Some(record.serial + 1));
        assert_eq!(keys.find(PeerId(1), &key(b"a", 1)), Known::No);
        assert!(matches!(keys.find(PeerId(1), &key(b"b", 1)), Known::Same(_)));
        assert_eq!(keys.forget(Timestamp(2000), day, 0), Some(2));
        assert_eq!(keys.len(), 0);
    }

    #[test]
    fn keys_come_back_from_disk() {
        let mut keys = Keys::new(1);
        let answer = vec![Ok(MessageId(9))];
        let first = keys.remember(PeerId(1), key(b"x", 3), Timestamp(1), answer.clone());
        let second = keys.remember(PeerId(1), key(b"y", 3), Timestamp(1), answer.clone());
        let mut again = Keys::new(2);
        again.recover(first);
        again.recover(second.clone());
        assert_eq!(again.find(PeerId(1), &key(b"y", 3)), Known::Same(answer));
        assert_eq!(
            again.remember(PeerId(1), key(b"z", 0), Timestamp(2), Vec::new()).serial,
            second.serial + 1
        );
    }
}
