use bytes::Bytes;

/// Which request an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) u64);

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
        /// What is asked.
        request: Request,
    },
    /// The connection is nobody's again: what follows comes from somebody who has not said who they are.
    Forgotten,
}

/// What a client asks of the pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A number's event. Answered by `Reply::Pool`.
    Pool {
        /// The pool's name, without braces.
        pool: String,
        /// What happens.
        operation: Operation,
    },
    /// A look at a pool.
    Read {
        /// The pool's name, without braces.
        pool: String,
        /// At what.
        read: Read,
    },
    /// `POOL.LIST`: the names of all pools. Answered by an array of texts.
    Pools,
    /// `INFO`, with the section's name if there was one. Answered by `Reply::Prose`.
    Info(Option<String>),
}

/// An event of a number. Numbers are as they came: 1 to 32 printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// The number belongs to the pool.
    Add(String),
    /// The number leaves the pool.
    Del(String),
    /// The number is up.
    Reg(String),
    /// The number is down.
    Unreg(String),
    /// Somebody takes a number.
    Call(Call),
    /// The number is free again.
    Hangup(String),
    /// The lease of a busy number ends this many milliseconds from now.
    Renew {
        /// Which.
        number: String,
        /// From now.
        lease_ms: u64,
    },
}

/// What a `call` says. All are `None` in the older script's calls, but for the number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// This number; otherwise one that the pool chooses.
    pub number: Option<String>,
    /// `LEASE`: milliseconds after which it frees itself.
    pub lease_ms: Option<u64>,
    /// `HOLDER`: who has it.
    pub holder: Option<String>,
    /// `REASON`: what for.
    pub reason: Option<String>,
    /// `USER`: for pools that give the same user and callee the same number.
    pub user: Option<String>,
    /// `CALLEE`: for the same, and for pools that choose the nearest.
    pub callee: Option<String>,
}

/// What of a pool is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// `HGET {pool}:numstate number`: a text such as `idle+up`, or null.
    State(String),
    /// `HGETALL {pool}:numstate`: a map of number and state.
    States,
    /// `HLEN {pool}:numstate`: an integer.
    Count,
    /// `LRANGE {pool}:idle:up start stop`: numbers idle and up, longest first. Both ends count; negative ones from the end.
    Idle {
        /// The first.
        start: i64,
        /// The last.
        stop: i64,
    },
    /// `LLEN {pool}:idle:up`: an integer.
    IdleCount,
    /// `POOL.SHOW pool [number]`: a map of whatever there is to say.
    Show(Option<String>),
}
