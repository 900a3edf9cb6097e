use bytes::Bytes;
use model::Timestamp;
use parking_lot::Mutex;
use sp_session::SpProtocol;

/// The ids that we give to messages as a gateway: a second and a counter within it. Both protocols leave 65,536 ids a
/// second; after them the ids are those of the next second, ahead of the clock, so that none is given twice.
#[derive(Debug)]
pub(crate) struct MessageIds {
    /// The second since 1970 of the ids given last, and how many of it are given.
    last: Mutex<(u64, u32)>,
}

/// Ids in a second; the smaller number of both protocols.
const PER_SECOND: u32 = 1 << 16;

impl MessageIds {
    /// Begins with the next second: a process before this one may have given ids of the present one.
    pub(super) fn new(wall: Timestamp) -> Self {
        Self { last: Mutex::new((wall.0 / 1000, PER_SECOND)) }
    }

    /// The first of `count` ids that follow each other, at most a hundred.
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
