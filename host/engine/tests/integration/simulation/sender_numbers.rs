//! Two number pools for senders: one that only the engine uses, and one that others use at random; and the invariants of
//! both at every commit.

use crate::simulation::Random;
use crate::simulation::disk::Disk;
use engine::{Event, ReplyTo};
use model::{
    AcquireRequest, LinkId, MessageId, PoolName, PoolNumber, PoolOperation, PoolRequest, SenderFallback,
    SenderRequest,
};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The pool that only the engine uses: others do not lease, release or remove its numbers, and its leases never end.
const OURS: &str = "ours";
const WILD: &str = "wild";
const NUMBERS: usize = 4;

fn name(pool: &str) -> PoolName {
    pool.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn number(random: &mut Random) -> PoolNumber {
    pool_number(random.below(NUMBERS))
}

fn pool_number(digit: usize) -> PoolNumber {
    format!("+49150{digit}").parse().unwrap_or_else(|error| panic!("{error}"))
}

fn event(pool: &str, request: PoolRequest) -> Event {
    Event::Pool { pool: name(pool), request, by: "sim".into(), reply: ReplyTo { link: LinkId(0), token: 0 } }
}

/// Adds all numbers, up.
pub(crate) fn set_up() -> Vec<Event> {
    let both = |digit| {
        let number = pool_number(digit);
        vec![PoolOperation::Add { number, weight: None }, PoolOperation::Reg { number }]
    };
    let operations: Vec<PoolOperation> = (0..NUMBERS).flat_map(both).collect();
    [OURS, WILD].map(|pool| event(pool, PoolRequest::Operations(operations.clone()))).into()
}

/// A router's sender request.
pub(crate) fn sender_request(random: &mut Random, healthy: bool) -> Option<Box<SenderRequest>> {
    let pool = match random.below(10) {
        0..3 => return None,
        3..7 => OURS,
        _ if healthy => OURS,
        7..9 => WILD,
        _ => "nowhere",
    };
    let otherwise =
        [SenderFallback::Hold, SenderFallback::Hold, SenderFallback::KeepSender, SenderFallback::Reject];
    Some(Box::new(SenderRequest {
        pool: name(pool),
        holder: "acme".into(),
        user: "".into(),
        reason: "".into(),
        lease: (pool == WILD && random.chance(50)).then(|| Duration::from_secs(random.below(20) as u64)),
        otherwise: otherwise[random.below(otherwise.len())],
        leased: None,
    }))
}

/// A random operation of another user.
pub(crate) fn random_event(random: &mut Random) -> Event {
    let number = number(random);
    let kind = random.below(12);
    let pool = if kind < 3 { OURS } else { WILD };
    let operation = match kind {
        0 | 1 | 3 => PoolOperation::Reg { number },
        2 | 4 => PoolOperation::Unreg { number },
        5 | 6 => PoolOperation::Add { number, weight: None },
        7 => PoolOperation::Del { number },
        8 => PoolOperation::Call(AcquireRequest::default()),
        9 | 10 => PoolOperation::Hangup { number, ticket: None },
        _ => return event(WILD, PoolRequest::Remove { with_numbers: true }),
    };
    event(pool, PoolRequest::Operation(operation))
}

/// Checks at every commit that each lease belongs to one live message.
pub(crate) fn check(disk: &Disk, seed: u64) {
    let held = disk.pools.held();
    let mut having: HashSet<MessageId> = HashSet::new();
    let mut ours: HashMap<MessageId, PoolNumber> = HashMap::new();
    for (pool, number, id) in held {
        assert!(
            disk.messages.contains_key(&id),
            "seed {seed}: {number:?} is held by {id:?}, which has ended"
        );
        assert!(having.insert(id), "seed {seed}: {id:?} has two numbers");
        if pool.as_str() == OURS {
            ours.insert(id, number);
        }
    }
    for (id, message) in &disk.messages {
        let Some(sender_request) =
            message.routed.sender.as_ref().filter(|sender_request| sender_request.pool.as_str() == OURS)
        else {
            continue;
        };
        let has = ours.get(id).map(|number| number.address());
        assert_eq!(has, sender_request.leased, "seed {seed}: {id:?}");
    }
}

/// Checks that all leases are released.
pub(crate) fn check_end(disk: &Disk, seed: u64) {
    assert_eq!(disk.pools.held(), [], "seed {seed}: finished messages hold numbers");
}
