use bytes::Bytes;
use model::{PoolName, PoolNumber, PoolOperation, Strategy};
use redis_protocol::redis_keyslot;
use std::time::Duration;

/// Which request an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) u64);

impl Ticket {
    /// The ticket so many after this one. Requests that follow each other have it only if the session had nothing of its own
    /// to answer between them.
    #[must_use]
    pub fn after(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count as u64))
    }
}

/// What the owner of a session must see to, in the order of the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Whose connection is this? To be answered by `Session::judged`; nothing is read until then.
    Authenticate {
        /// What to answer to.
        ticket: Ticket,
        /// The account; `default` where the client named none.
        name: Bytes,
        /// As it came; not to be logged.
        password: Bytes,
    },
    /// To be answered by `Session::answer`.
    Request {
        /// What to answer to.
        ticket: Ticket,
        /// The command's name in lower case, for a refusal.
        command: &'static str,
        /// What is asked.
        request: Request,
    },
    /// The connection is nobody's again: what follows comes from somebody who has not said who they are.
    Forgotten,
}

/// What a client asks of the pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// One operation. Answered by `Reply::Outcome`.
    Operation {
        /// Which pool.
        pool: PoolName,
        /// What is to be done.
        operation: PoolOperation,
    },
    /// Several in one piece. Answered by `Reply::Outcomes`.
    Operations {
        /// Which pool.
        pool: PoolName,
        /// What is to be done, at least two.
        operations: Vec<PoolOperation>,
    },
    /// `POOL.CREATE`: makes the pool, or changes what is said of one that is there. Answered by `Reply::Status`.
    Create {
        /// Which pool.
        pool: PoolName,
        /// Which number is given.
        strategy: Option<Strategy>,
        /// How long a number rests.
        quarantine: Option<Duration>,
    },
    /// `POOL.REMOVE`. Answered by 1, by 0 if there is none, or by an error.
    Remove {
        /// Which pool.
        pool: PoolName,
        /// `FORCE`: also if it has numbers.
        with_numbers: bool,
    },
    /// A look at a pool.
    Read {
        /// Which pool.
        pool: PoolName,
        /// At what.
        read: Read,
    },
    /// `POOL.LIST`: the names of all pools. Answered by an array of texts.
    Pools,
    /// `CLUSTER COUNTKEYSINSLOT`, with the slot: how many of the pools' keys are in it, by [`Request::slot_of`].
    KeysInSlot(u16),
    /// `INFO`, with the sections' names in lower case if there were any. Answered by `Reply::Prose`.
    Info(Vec<String>),
}

impl Request {
    /// The slot of a pool's keys in a Redis Cluster.
    #[must_use]
    pub fn slot_of(pool: &PoolName) -> u16 {
        redis_keyslot(pool.as_str().as_bytes())
    }
}

/// What of a pool is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// `HGET {pool}:numstate number`: a text such as `idle+up`, or null.
    State(PoolNumber),
    /// `HGETALL {pool}:numstate`. Answered by `Reply::States`.
    States,
    /// `HLEN {pool}:numstate`: an integer.
    Count,
    /// `LRANGE {pool}:idle:up start stop`: numbers idle and up, longest first. Both ends count; negative ones from the end.
    /// Answered by `Reply::Numbers`.
    Idle {
        /// The first.
        start: i64,
        /// The last.
        stop: i64,
    },
    /// `LLEN {pool}:idle:up`: an integer.
    IdleCount,
    /// `POOL.SHOW pool [number]`: a map of whatever there is to say, or null.
    Show(Option<PoolNumber>),
}
