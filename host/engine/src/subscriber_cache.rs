//! Cache of resolver answers.

use hashbrown::HashTable;
use model::{AddressBytes, Imsi, Moment, PeerId, PluginVersion};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// A resolver's answer about a number.
#[derive(Debug)]
pub(crate) struct ResolverAnswer {
    /// The subscriber and, if named, its serving peer; `None`: the number is unassigned.
    pub(crate) subscriber: Option<(Imsi, Option<PeerId>)>,
    pub(crate) by: Arc<PluginVersion>,
    pub(crate) note: Option<Box<str>>,
}

#[derive(Debug)]
struct RecoveredRecord {
    number: AddressBytes,
    until: Moment,
    answer: Arc<ResolverAnswer>,
}

/// The cached answers.
#[derive(Debug, Default)]
pub(crate) struct SubscriberCache {
    table: HashTable<RecoveredRecord>,
    /// End and hash of each answer, the earliest first. A replaced answer has another end, and its old item is
    /// skipped.
    ends: BinaryHeap<Reverse<(Moment, u64)>>,
    seed: u64,
}

/// Keyed, because numbers come from outside.
fn hash(seed: u64, number: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    hasher.write(number);
    hasher.finish()
}

impl SubscriberCache {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, number: &AddressBytes, now: Moment) -> Option<Arc<ResolverAnswer>> {
        if self.table.is_empty() {
            return None;
        }
        let found = self.table.find(hash(self.seed, number), |known| known.number == *number)?;
        (found.until > now).then(|| found.answer.clone())
    }

    /// Caches an answer; beyond `limit`, answers that expire first are removed.
    pub(crate) fn insert(
        &mut self,
        number: AddressBytes,
        until: Moment,
        answer: Arc<ResolverAnswer>,
        limit: usize,
    ) {
        let seed = self.seed;
        let key = hash(seed, &number);
        self.ends.push(Reverse((until, key)));
        match self.table.find_mut(key, |known| known.number == number) {
            Some(known) => (known.until, known.answer) = (until, answer),
            None => {
                let known = RecoveredRecord { number, until, answer };
                self.table.insert_unique(key, known, |known| hash(seed, &known.number));
            }
        }
        while self.table.len() > limit {
            let Some(Reverse(end)) = self.ends.pop() else { break };
            self.remove(end);
        }
    }

    /// Removes expired answers.
    pub(crate) fn forget(&mut self, now: Moment) {
        while let Some(Reverse(end)) = self.ends.peek().copied().filter(|Reverse(end)| end.0 <= now) {
            self.ends.pop();
            self.remove(end);
        }
    }

    /// Drops the answer about a number, if it names this subscriber.
    pub(crate) fn invalidate(&mut self, number: &AddressBytes, imsi: &Imsi) {
        let same = |known: &RecoveredRecord| {
            known.number == *number
                && known.answer.subscriber.as_ref().is_some_and(|(known, _)| known == imsi)
        };
        if let Ok(found) = self.table.find_entry(hash(self.seed, number), same) {
            found.remove();
        }
    }

    /// Drops the answer about a number, if it names another subscriber; returns that subscriber.
    pub(crate) fn learn(&mut self, number: &AddressBytes, imsi: &Imsi) -> Option<Imsi> {
        let named =
            |known: &RecoveredRecord| known.answer.subscriber.as_ref().map(|(named, _)| named.clone());
        let other = |known: &RecoveredRecord| known.number == *number && named(known).as_ref() != Some(imsi);
        let found = self.table.find_entry(hash(self.seed, number), other).ok()?;
        named(&found.remove().0)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.seed);
    }

    fn remove(&mut self, (until, key): (Moment, u64)) {
        let seed = self.seed;
        let same = |known: &RecoveredRecord| known.until == until && hash(seed, &known.number) == key;
        if let Ok(found) = self.table.find_entry(key, same) {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: u32) -> AddressBytes {
        AddressBytes::from_slice(format!("49{n}").as_bytes())
    }

    fn answer() -> Arc<ResolverAnswer> {
        let by = Arc::new(PluginVersion { plugin: "table".to_owned(), version: "1".to_owned() });
        Arc::new(ResolverAnswer { subscriber: None, by, note: None })
    }

    #[test]
    fn a_cached_answer_expires() {
        let mut known = SubscriberCache::new(1);
        known.insert(number(1), Moment(100), answer(), 10);
        known.insert(number(2), Moment(200), answer(), 10);
        assert!(known.get(&number(1), Moment(99)).is_some());
        assert!(known.get(&number(1), Moment(100)).is_none(), "also where nothing was swept");
        known.forget(Moment(100));
        assert_eq!((known.len(), known.ends.len()), (1, 1));
        assert!(known.get(&number(2), Moment(100)).is_some());
        // A renewed answer outlives its first end.
        known.insert(number(2), Moment(300), answer(), 10);
        known.forget(Moment(200));
        assert!(known.get(&number(2), Moment(250)).is_some());
        known.forget(Moment(300));
        assert_eq!((known.len(), known.ends.len()), (0, 0));
    }

    #[test]
    fn learning_a_subscriber_invalidates_other_answers() {
        let mut known = SubscriberCache::new(1);
        let imsi = |digits: &[u8]| Imsi(AddressBytes::from_slice(digits));
        let found =
            ResolverAnswer { subscriber: Some((imsi(b"1"), None)), by: answer().by.clone(), note: None };
        known.insert(number(1), Moment(100), answer(), 10);
        known.insert(number(2), Moment(100), Arc::new(found), 10);
        assert_eq!(known.learn(&number(1), &imsi(b"1")), None, "the cached answer had no subscriber");
        assert_eq!(known.learn(&number(2), &imsi(b"1")), None, "as remembered");
        assert_eq!((known.len(), known.get(&number(1), Moment(1)).is_some()), (1, false));
        assert_eq!(known.learn(&number(2), &imsi(b"2")), Some(imsi(b"1")));
        assert_eq!(known.len(), 0);
        known.forget(Moment(100));
        assert_eq!(known.ends.len(), 0);
    }

    #[test]
    fn beyond_the_limit_the_answers_that_expire_first_are_dropped() {
        let mut known = SubscriberCache::new(1);
        for n in 0..1000 {
            known.insert(number(n), Moment(u64::from((n * 7919) % 1000) + 1), answer(), 10);
            assert!(known.len() <= 10);
        }
        let left: Vec<u32> = (0..1000).filter(|n| known.get(&number(*n), Moment(990)).is_some()).collect();
        assert_eq!(left.len(), 10);
        known.insert(number(5000), Moment(10_000), answer(), 0);
        assert_eq!(known.len(), 0);
    }
}
