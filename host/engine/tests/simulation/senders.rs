//! Two number pools that messages take their senders from: one that nobody else uses, and one where everybody does as he
//! likes; and what must hold of both at every commit.

use crate::Random;
use crate::disk::Disk;
use engine::{Event, ReplyTo};
use model::{
    LinkId, MessageId, NoSender, PoolCall, PoolName, PoolNumber, PoolOperation, PoolRequest, SenderWish,
};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Nobody else takes numbers of it, gives them back or takes them out, and nobody has them on a lease.
const OURS: &str = "ours";
const WILD: &str = "wild";
const NUMBERS: usize = 4;

fn name(pool: &str) -> PoolName {
    pool.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn number(random: &mut Random) -> PoolNumber {
    numbered(random.below(NUMBERS))
}

fn numbered(digit: usize) -> PoolNumber {
    format!("+49150{digit}").parse().unwrap_or_else(|error| panic!("{error}"))
}

fn event(pool: &str, request: PoolRequest) -> Event {
    Event::Pool { pool: name(pool), request, by: "sim".into(), reply: ReplyTo { link: LinkId(0), token: 0 } }
}

/// All numbers are there and up.
pub(crate) fn set_up() -> Vec<Event> {
    let both = |digit| {
        let number = numbered(digit);
        vec![PoolOperation::Add { number, weight: None }, PoolOperation::Reg { number }]
    };
    let operations: Vec<PoolOperation> = (0..NUMBERS).flat_map(both).collect();
    [OURS, WILD].map(|pool| event(pool, PoolRequest::DoAll(operations.clone()))).into()
}

/// What a router wants for a message.
pub(crate) fn wish(random: &mut Random, healthy: bool) -> Option<Box<SenderWish>> {
    let pool = match random.below(10) {
        0..3 => return None,
        3..7 => OURS,
        _ if healthy => OURS,
        7..9 => WILD,
        _ => "nowhere",
    };
    let otherwise = [NoSender::Hold, NoSender::Hold, NoSender::KeepSender, NoSender::Reject];
    Some(Box::new(SenderWish {
        pool: name(pool),
        holder: "acme".into(),
        user: "".into(),
        reason: "".into(),
        lease: (pool == WILD && random.chance(50)).then(|| Duration::from_secs(random.below(20) as u64)),
        otherwise: otherwise[random.below(otherwise.len())],
        given: None,
    }))
}

/// Somebody else does something to a pool.
pub(crate) fn somebody(random: &mut Random) -> Event {
    let number = number(random);
    let kind = random.below(12);
    let pool = if kind < 3 { OURS } else { WILD };
    let operation = match kind {
        0 | 1 | 3 => PoolOperation::Reg { number },
        2 | 4 => PoolOperation::Unreg { number },
        5 | 6 => PoolOperation::Add { number, weight: None },
        7 => PoolOperation::Del { number },
        8 => PoolOperation::Call(PoolCall::default()),
        9 | 10 => PoolOperation::Hangup { number, ticket: None },
        _ => return event(WILD, PoolRequest::Remove { with_numbers: true }),
    };
    event(pool, PoolRequest::Do(operation))
}

/// At every commit: who has a number is there, and has it alone.
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
        let Some(wish) = message.routed.sender.as_ref().filter(|wish| wish.pool.as_str() == OURS) else {
            continue;
        };
        let has = ours.get(id).map(|number| number.address());
        assert_eq!(has, wish.given, "seed {seed}: {id:?}");
    }
}

/// All have ended.
pub(crate) fn check_end(disk: &Disk, seed: u64) {
    assert_eq!(disk.pools.held(), [], "seed {seed}: numbers are left with those who have ended");
}
