//! Idempotency keys: a repeated submission gets the first answer and is not accepted again.

use hashbrown::HashTable;
use model::{IdempotencyKey, IdempotencyKeyRecord, MessageId, Moment, Now, PeerId, Refusal};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// The result of a lookup.
#[derive(Debug, PartialEq)]
pub(crate) enum KeyLookup {
    /// Unknown or expired.
    Unknown,
    /// Used for the same submission, with this answer.
    Repeated(Vec<Result<MessageId, Refusal>>),
    /// Used for another submission.
    Conflict,
}

/// The answer under a key, in memory.
#[derive(Debug)]
enum Results {
    /// `count` accepted messages with ascending ids from `first`.
    Run { first: MessageId, count: u32 },
    /// Any other answer.
    Mixed(Box<[Result<MessageId, Refusal>]>),
}

impl Results {
    fn of(results: Vec<Result<MessageId, Refusal>>) -> Self {
        if let (Some(Ok(first)), Ok(count)) = (results.first().copied(), u32::try_from(results.len()))
            && (first.0..).zip(&results).all(|(id, result)| *result == Ok(MessageId(id)))
        {
            return Self::Run { first, count };
        }
        Self::Mixed(results.into())
    }

    fn to_vec(&self) -> Vec<Result<MessageId, Refusal>> {
        match self {
            Self::Run { first, count } => {
                (first.0..first.0 + u64::from(*count)).map(|id| Ok(MessageId(id))).collect()
            }
            Self::Mixed(results) => results.to_vec(),
        }
    }
}

/// A key; its serial number follows from its position.
#[derive(Debug)]
struct Record {
    origin: PeerId,
    digest: u64,
    /// The time of expiry: a jump of the wall clock makes no key older.
    until: Moment,
    octets: Box<[u8]>,
    results: Results,
}

/// Memory of the index and the allocator per key, beyond its record.
const OVERHEAD: usize = 56;

/// Octets of memory for a key of `octets` octets with at most `mixed` results.
fn cost(octets: usize, mixed: usize) -> usize {
    size_of::<Record>() + OVERHEAD + octets + mixed * size_of::<Result<MessageId, Refusal>>()
}

impl Record {
    fn cost(&self) -> usize {
        let mixed = match &self.results {
            Results::Run { .. } => 0,
            Results::Mixed(results) => results.len(),
        };
        cost(self.octets.len(), mixed)
    }
}

/// The keys of one origin.
#[derive(Debug, Default)]
struct Share {
    octets: usize,
    /// No key of this origin has a smaller serial number.
    oldest: u64,
}

/// All stored keys, oldest first.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys {
    /// Keyed hash of origin and octets, serial number. The caller compares the octets.
    index: HashTable<(u64, u64)>,
    records: VecDeque<Record>,
    shares: FxHashMap<PeerId, Share>,
    /// The serial number of the next key.
    next: u64,
    /// Expired keys were found on disk.
    outdated: bool,
    seed: u64,
}

impl IdempotencyKeys {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn any_to_forget(&self) -> bool {
        self.outdated || !self.records.is_empty()
    }

    fn hash(&self, origin: PeerId, octets: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(origin.0);
        hasher.write(octets);
        hasher.finish()
    }

    /// The serial number of the oldest key.
    fn first(&self) -> u64 {
        self.next - self.records.len() as u64
    }

    fn record(&self, serial: u64) -> Option<&Record> {
        self.records.get(usize::try_from(serial.checked_sub(self.first())?).ok()?)
    }

    /// Looks up a key, with `retention` as the storage time of keys.
    pub(crate) fn find(
        &self,
        origin: PeerId,
        key: &IdempotencyKey,
        (now, retention): (Moment, Duration),
    ) -> KeyLookup {
        let hash = self.hash(origin, &key.octets);
        // A key that expires before this moment is older than its lifetime.
        let bound = key.lifetime.map_or(Moment(0), |lifetime| now + retention.saturating_sub(lifetime));
        let is_it = |record: &Record| {
            record.origin == origin && *record.octets == *key.octets && record.until > bound
        };
        let found = self
            .index
            .find(hash, |(known, serial)| *known == hash && self.record(*serial).is_some_and(is_it));
        match found.and_then(|(_, serial)| self.record(*serial)) {
            None => KeyLookup::Unknown,
            Some(record) if record.digest == key.digest => KeyLookup::Repeated(record.results.to_vec()),
            Some(_) => KeyLookup::Conflict,
        }
    }

    /// Whether an origin with a limit of `limit` octets has capacity for a key with this many results.
    pub(crate) fn has_capacity(
        &self,
        origin: PeerId,
        key: &IdempotencyKey,
        results: usize,
        limit: usize,
    ) -> bool {
        let taken = self.shares.get(&origin).map_or(0, |share| share.octets);
        let mixed = if results == 1 { 0 } else { results };
        taken.saturating_add(cost(key.octets.len(), mixed)) <= limit
    }

    /// The time of expiry of an origin's oldest key.
    pub(crate) fn oldest(&mut self, origin: PeerId) -> Option<Moment> {
        let first = self.first();
        let share = self.shares.get_mut(&origin)?;
        // Positions checked once are skipped.
        let mut serial = share.oldest.max(first);
        while let Some(record) = self.records.get(usize::try_from(serial - first).ok()?) {
            if record.origin == origin {
                share.oldest = serial;
                return Some(record.until);
            }
            serial += 1;
        }
        None
    }

    /// Stores a key; returns the record to write.
    pub(crate) fn remember(
        &mut self,
        origin: PeerId,
        key: IdempotencyKey,
        (now, retention): (Now, Duration),
        results: Vec<Result<MessageId, Refusal>>,
    ) -> IdempotencyKeyRecord {
        let record = IdempotencyKeyRecord { serial: self.next, origin, key, at: now.wall, results };
        self.insert(record.clone(), now.mono + retention);
        record
    }

    /// Recovers a key from disk; serial numbers must ascend. Expired keys are skipped.
    pub(crate) fn recover(&mut self, record: IdempotencyKeyRecord, now: Now, retention: Duration) {
        // Positions need serial numbers without gaps; a gap means a damaged table, and its keys are dropped.
        if record.serial != self.next {
            self.records.clear();
            self.index.clear();
            self.shares.clear();
        }
        if self.records.is_empty() && record.at + retention <= now.wall {
            self.next = record.serial + 1;
            self.outdated = true;
            return;
        }
        let until = now.moment_of(record.at + retention);
        self.insert(record, until);
    }

    fn insert(&mut self, record: IdempotencyKeyRecord, until: Moment) {
        let IdempotencyKeyRecord { serial, origin, key, results, .. } = record;
        let hash = self.hash(origin, &key.octets);
        self.index.insert_unique(hash, (hash, serial), |(hash, _)| *hash);
        let results = Results::of(results);
        let record =
            Record { origin, digest: key.digest, until, octets: key.octets.as_slice().into(), results };
        let share = self.shares.entry(origin).or_insert(Share { octets: 0, oldest: serial });
        share.octets += record.cost();
        self.records.push_back(record);
        self.next = serial + 1;
    }

    /// Removes expired keys; returns the smallest remaining serial number if any was removed.
    pub(crate) fn forget(&mut self, now: Moment) -> Option<u64> {
        let mut any = std::mem::take(&mut self.outdated);
        while let Some(record) = self.records.front()
            && record.until <= now
        {
            let (serial, hash) = (self.first(), self.hash(record.origin, &record.octets));
            if let Ok(found) = self.index.find_entry(hash, |entry| *entry == (hash, serial)) {
                found.remove();
            }
            if let Some(share) = self.shares.get_mut(&record.origin) {
                share.octets = share.octets.saturating_sub(record.cost());
                if share.octets == 0 {
                    self.shares.remove(&record.origin);
                }
            }
            self.records.pop_front();
            any = true;
        }
        any.then(|| self.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    const RETENTION: Duration = Duration::from_secs(1);

    /// Both clocks at the same time.
    fn at(ms: u64) -> (Now, Duration) {
        (Now { wall: Timestamp(ms), mono: Moment(ms) }, RETENTION)
    }

    fn key(name: &[u8], digest: u64) -> IdempotencyKey {
        IdempotencyKey {
            octets: smallvec::SmallVec::from_slice(name),
            digest,
            required: true,
            lifetime: None,
        }
    }

    fn find(keys: &IdempotencyKeys, origin: PeerId, key: &IdempotencyKey) -> KeyLookup {
        keys.find(origin, key, (Moment(0), RETENTION))
    }

    #[test]
    fn keys_belong_to_their_origin_and_expire() {
        let mut keys = IdempotencyKeys::new(7);
        let answer = vec![Ok(MessageId(5)), Err(Refusal::QueueFull)];
        let record = keys.remember(PeerId(1), key(b"a", 1), at(1000), answer.clone());
        keys.remember(PeerId(1), key(b"b", 1), at(2000), Vec::new());
        assert_eq!(find(&keys, PeerId(1), &key(b"a", 1)), KeyLookup::Repeated(answer.clone()));
        assert_eq!(find(&keys, PeerId(1), &key(b"a", 2)), KeyLookup::Conflict);
        assert_eq!(find(&keys, PeerId(2), &key(b"a", 1)), KeyLookup::Unknown);
        assert_eq!(keys.forget(Moment(1999)), None);
        assert_eq!(keys.forget(Moment(2000)), Some(record.serial + 1));
        assert_eq!(find(&keys, PeerId(1), &key(b"a", 1)), KeyLookup::Unknown);
        assert!(matches!(find(&keys, PeerId(1), &key(b"b", 1)), KeyLookup::Repeated(_)));
        assert_eq!(keys.forget(Moment(3000)), Some(2));
        assert!(keys.shares.is_empty());
        assert_eq!(keys.len(), 0);
    }

    #[test]
    fn keys_come_back_from_disk() {
        let mut keys = IdempotencyKeys::new(1);
        let answer = vec![Ok(MessageId(9))];
        let first = keys.remember(PeerId(1), key(b"x", 3), at(1), answer.clone());
        let second = keys.remember(PeerId(1), key(b"y", 3), at(1), answer.clone());
        let mut again = IdempotencyKeys::new(2);
        again.recover(first, at(2).0, RETENTION);
        again.recover(second.clone(), at(2).0, RETENTION);
        assert_eq!(find(&again, PeerId(1), &key(b"y", 3)), KeyLookup::Repeated(answer));
        assert_eq!(again.remember(PeerId(1), key(b"z", 0), at(2), Vec::new()).serial, second.serial + 1);
    }

    #[test]
    fn keys_that_are_too_old_are_left_out_of_a_recovery() {
        let mut keys = IdempotencyKeys::new(1);
        let old = keys.remember(PeerId(1), key(b"x", 3), at(1000), vec![Ok(MessageId(9))]);
        let young = keys.remember(PeerId(1), key(b"y", 3), at(2000), vec![Ok(MessageId(10))]);
        let mut again = IdempotencyKeys::new(2);
        again.recover(old, at(2500).0, RETENTION);
        assert_eq!(again.len(), 0);
        again.recover(young, at(2500).0, RETENTION);
        assert_eq!(again.len(), 1);
        assert_eq!(find(&again, PeerId(1), &key(b"x", 3)), KeyLookup::Unknown);
        assert_eq!(again.forget(Moment(2500)), Some(1), "its row goes as well");
        assert_eq!(again.forget(Moment(2500)), None);
    }

    #[test]
    fn a_key_names_a_new_submission_after_its_lifetime_also_after_a_restart() {
        let (retention, lifetime) = (Duration::from_secs(1000), Duration::from_secs(10));
        let shown = |seconds: u64| Now { wall: Timestamp(seconds * 1000), mono: Moment(seconds * 1000) };
        let key = IdempotencyKey { lifetime: Some(lifetime), ..key(b"a", 1) };
        let first = vec![Ok(MessageId(5))];
        let mut keys = IdempotencyKeys::new(1);
        let record = keys.remember(PeerId(1), key.clone(), (shown(100), retention), first.clone());
        let known = |keys: &IdempotencyKeys, at: u64| keys.find(PeerId(1), &key, (Moment(at), retention));
        assert_eq!(known(&keys, 109_999), KeyLookup::Repeated(first.clone()));
        assert_eq!(known(&keys, 110_000), KeyLookup::Unknown);
        // The next process finds the key on disk 8 seconds after it was written, and its own clock begins at 3
        // seconds.
        let mut again = IdempotencyKeys::new(2);
        again.recover(record, Now { wall: Timestamp(108_000), mono: Moment(3000) }, retention);
        assert_eq!(known(&again, 4999), KeyLookup::Repeated(first));
        assert_eq!(known(&again, 5000), KeyLookup::Unknown);
        // Both submissions are stored, and each expires at its own time.
        let second = vec![Ok(MessageId(6))];
        let now = Now { wall: Timestamp(110_000), mono: Moment(5000) };
        again.remember(PeerId(1), key.clone(), (now, retention), second.clone());
        assert_eq!(known(&again, 5001), KeyLookup::Repeated(second.clone()));
        assert_eq!(again.forget(Moment(995_000)), Some(1));
        assert_eq!(again.len(), 1);
        let lasting = IdempotencyKey { lifetime: None, ..key.clone() };
        assert_eq!(
            again.find(PeerId(1), &lasting, (Moment(995_000), retention)),
            KeyLookup::Repeated(second)
        );
    }

    #[test]
    fn answers_round_trip() {
        let mut keys = IdempotencyKeys::new(1);
        let ids = |ids: &[u64]| ids.iter().map(|id| Ok(MessageId(*id))).collect::<Vec<_>>();
        let mixed = vec![Ok(MessageId(20)), Err(Refusal::QueueFull), Ok(MessageId(21))];
        let answers = [ids(&[5]), ids(&[6, 7, 8]), ids(&[9, 11]), mixed, Vec::new()];
        for (name, answer) in (b'a'..).zip(&answers) {
            keys.remember(PeerId(1), key(&[name], 1), at(1), answer.clone());
        }
        for (name, answer) in (b'a'..).zip(answers) {
            assert_eq!(find(&keys, PeerId(1), &key(&[name], 1)), KeyLookup::Repeated(answer));
        }
    }

    #[test]
    fn memory_limits_are_per_origin() {
        let mut keys = IdempotencyKeys::new(1);
        let limit = 3 * cost(1, 0);
        for (name, ms) in (b'a'..).zip([10, 20, 30]) {
            assert!(keys.has_capacity(PeerId(1), &key(&[name], 1), 1, limit));
            keys.remember(PeerId(1), key(&[name], 1), at(ms), vec![Ok(MessageId(ms))]);
        }
        assert!(!keys.has_capacity(PeerId(1), &key(b"d", 1), 1, limit));
        assert!(keys.has_capacity(PeerId(2), &key(b"d", 1), 1, limit));
        keys.remember(PeerId(2), key(b"d", 1), at(40), vec![Ok(MessageId(40))]);
        assert_eq!(
            (keys.oldest(PeerId(1)), keys.oldest(PeerId(2))),
            (Some(Moment(1010)), Some(Moment(1040)))
        );
        keys.forget(Moment(1010));
        assert!(keys.has_capacity(PeerId(1), &key(b"d", 1), 1, limit));
        assert_eq!(keys.oldest(PeerId(1)), Some(Moment(1020)));
    }

    #[test]
    fn a_jump_of_the_wall_clock_makes_no_key_older() {
        let mut keys = IdempotencyKeys::new(1);
        let jumped = Now { wall: Timestamp(1_000_000_000), mono: Moment(1000) };
        keys.remember(PeerId(1), key(b"before", 1), at(1000), vec![Ok(MessageId(1))]);
        keys.remember(PeerId(1), key(b"after", 1), (jumped, RETENTION), vec![Ok(MessageId(2))]);
        assert_eq!(keys.forget(Moment(1999)), None);
        assert_eq!(keys.forget(Moment(2000)), Some(2));
    }
}
