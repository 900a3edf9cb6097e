use bytes::Bytes;
use model::{PoolName, PoolNumber, PoolOperation, Strategy};
use redis_protocol::redis_keyslot;
use std::time::Duration;

/// Identifies the request that a reply belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyTicket(pub(crate) u64);

impl ReplyTicket {
    /// The ticket `count` after this one. Consecutive requests have consecutive tickets only if the session sent no
    /// reply of its own in between.
    #[must_use]
    pub fn after(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count as u64))
    }
}

/// An event for the owner of a session, in the order of the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A login. Answer it with `Session::finish_login`; no request is processed before.
    Authenticate {
        /// The ticket for the answer.
        ticket: ReplyTicket,
        /// The account; `default` if the client named none.
        name: Bytes,
        /// The password; do not log it.
        password: Bytes,
    },
    /// A request. Answer it with `Session::answer`.
    Request {
        /// The ticket for the answer.
        ticket: ReplyTicket,
        /// The command name in lower case, for an error message.
        command: &'static str,
        /// The request.
        request: RespRequest,
    },
    /// The client sent `RESET` and is no longer authenticated.
    Reset,
}

/// A request about pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RespRequest {
    /// One operation. The reply is `RespReply::Outcome`.
    Operation {
        /// The pool.
        pool: PoolName,
        /// The operation.
        operation: PoolOperation,
    },
    /// Several operations at once. The reply is `RespReply::Outcomes`.
    Operations {
        /// The pool.
        pool: PoolName,
        /// At least two operations.
        operations: Vec<PoolOperation>,
    },
    /// `POOL.CREATE`: creates a pool, or changes the given settings of an existing one. The reply is
    /// `RespReply::Status`.
    Create {
        /// The pool.
        pool: PoolName,
        /// The selection strategy.
        strategy: Option<Strategy>,
        /// The quarantine of a released number.
        quarantine: Option<Duration>,
    },
    /// `POOL.REMOVE`. The reply is 1, 0 if there is no such pool, or an error.
    Remove {
        /// The pool.
        pool: PoolName,
        /// `FORCE`: removes the pool with its numbers.
        with_numbers: bool,
    },
    /// A query of a pool.
    Read {
        /// The pool.
        pool: PoolName,
        /// The requested data.
        read: PoolRead,
    },
    /// `POOL.LIST`: the names of all pools. The reply is an array of texts.
    Pools,
    /// `CLUSTER COUNTKEYSINSLOT`: the number of pool keys in this slot, see [`RespRequest::slot_of`].
    KeysInSlot(u16),
    /// `INFO`, with section names in lower case, if any. The reply is `RespReply::Verbatim`.
    Info(Vec<String>),
}

impl RespRequest {
    /// The Redis Cluster slot of a pool's keys.
    #[must_use]
    pub fn slot_of(pool: &PoolName) -> u16 {
        redis_keyslot(pool.as_str().as_bytes())
    }
}

/// A query of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolRead {
    /// `HGET {pool}:numstate number`: a text such as `idle+up`, or null.
    State(PoolNumber),
    /// `HGETALL {pool}:numstate`. The reply is `RespReply::States`.
    States,
    /// `HLEN {pool}:numstate`: an integer.
    Count,
    /// `LRANGE {pool}:idle:up start stop`: idle numbers that are up, longest idle first. Both ends are inclusive;
    /// negative values count from the end. The reply is `RespReply::Numbers`.
    Idle {
        /// First position.
        start: i64,
        /// Last position.
        stop: i64,
    },
    /// `LLEN {pool}:idle:up`: an integer.
    IdleCount,
    /// `POOL.SHOW pool [number]`: a map, or null.
    Show(Option<PoolNumber>),
}
