use bytes::Bytes;
use model::Timestamp;
use parking_lot::Mutex;
use sp_session::SpProtocol;

/// Generator of message ids in the role of a gateway: a second, and a counter within it. Both protocols permit 65,536
/// ids per second. When they are used up, ids of the next second are taken, ahead of the clock, so that no id is used
/// twice.
#[derive(Debug)]
pub(crate) struct MessageIds {
    /// The second (since 1970) of the last ids, and the number of its ids that are used.
    last: Mutex<(u64, u32)>,
}

/// Ids per second: the smaller limit of the two protocols.
const PER_SECOND: u32 = 1 << 16;

impl MessageIds {
    /// Begins with the next second: a previous process may have used ids of the current one.
    pub(super) fn new(wall: Timestamp) -> Self {
        Self { last: Mutex::new((wall.0 / 1000, PER_SECOND)) }
    }

    /// The first of `count` consecutive ids; `count` is at most 100.
    pub(super) fn first_of<P: SpProtocol>(&self, count: usize, gateway: u32, wall: Timestamp) -> Bytes {
        let count = u32::try_from(count).unwrap_or(PER_SECOND).min(PER_SECOND);
        let (second, counter) = {
            let mut last = self.last.lock();
            let now = wall.0 / 1000;
            if now > last.0 {
                *last = (now, 0);
            }
            if last.1 + count > PER_SECOND {
                *last = (last.0 + 1, 0);
            }
            let first = *last;
            last.1 += count;
            first
        };
        P::message_id(second, counter, gateway)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cmpp::Cmpp;
    use std::collections::HashSet;

    #[test]
    fn no_id_is_given_twice() {
        let (ids, mut seen) = (MessageIds::new(Timestamp(5_000)), HashSet::new());
        for at in [5_000, 5_000, 5_900, 4_000, 9_000] {
            for _ in 0..700 {
                let first = ids.first_of::<Cmpp>(99, 101_001, Timestamp(at));
                for index in 0..99 {
                    assert!(seen.insert(Cmpp::following_id(&first, index)));
                }
            }
        }
    }
}
