//! References for concatenated texts without a user data header: `Pk_total` and `Pk_number` alone contain no reference.

use model::PeerId;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};
use sp_session::SegmentNumber;
use std::hash::{Hash as _, Hasher as _};
use std::time::{Duration, Instant};

/// Maximum time between two segments of one text.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of remembered texts. Beyond it, the expired ones are dropped; if that is not sufficient, all of them.
const MAX_TEXTS: usize = 10_000;

/// A text of which segments are expected.
#[derive(Debug)]
struct OpenText {
    reference: u16,
    /// The segments that have arrived, one bit each.
    seen: [u64; 4],
    at: Instant,
}

/// Gives all segments of a text the same reference. Segments with the same account, source, destinations and total
/// belong together, until one of them arrives again.
#[derive(Debug, Default)]
pub(crate) struct PartReferences {
    texts: Mutex<(FxHashMap<u64, OpenText>, u16)>,
}

impl PartReferences {
    pub(super) fn of(
        &self,
        account: PeerId,
        source: &[u8],
        users: &[&[u8]],
        part: SegmentNumber,
        now: Instant,
    ) -> u16 {
        let mut hasher = FxHasher::default();
        (account, source, users, part.total).hash(&mut hasher);
        let key = hasher.finish();
        let (texts, next) = &mut *self.texts.lock();
        let (word, bit) = (usize::from(part.number) / 64, 1 << (part.number % 64));
        if let Some(open) = texts.get_mut(&key)
            && now.saturating_duration_since(open.at) < TIMEOUT
            && open.seen[word] & bit == 0
        {
            open.seen[word] |= bit;
            open.at = now;
            let reference = open.reference;
            if open.seen.iter().map(|word| word.count_ones()).sum::<u32>() == u32::from(part.total) {
                texts.remove(&key);
            }
            return reference;
        }
        if texts.len() >= MAX_TEXTS {
            texts.retain(|_, open| now.saturating_duration_since(open.at) < TIMEOUT);
        }
        if texts.len() >= MAX_TEXTS {
            texts.clear();
        }
        *next = next.wrapping_add(1);
        let mut open = OpenText { reference: *next, seen: [0; 4], at: now };
        open.seen[word] |= bit;
        texts.insert(key, open);
        *next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_64_parts_without_a_header_get_one_reference() {
        let (references, now) = (PartReferences::default(), Instant::now());
        let of = |number: u8, total: u8, user: &[u8], at: Instant| {
            references.of(PeerId(1), b"10658", &[user], SegmentNumber { total, number }, at)
        };
        let first = of(1, 2, b"138", now);
        let other = of(2, 2, b"139", now);
        assert_ne!(first, other, "another subscriber");
        assert_eq!(of(2, 2, b"138", now), first);
        assert_ne!(of(1, 2, b"138", now), first, "the text is complete");
        let third = of(3, 3, b"138", now);
        assert_eq!(of(1, 3, b"138", now), third, "in any order");
        assert_ne!(of(1, 3, b"138", now), third, "the same part again is another text");
        let late = of(1, 9, b"138", now);
        assert_ne!(of(2, 9, b"138", now + TIMEOUT), late);
        for user in 0..20_000_u32 {
            of(1, 2, &user.to_be_bytes(), now);
        }
    }
}
