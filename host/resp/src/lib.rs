//! The Redis protocol (RESP2 and RESP3), as number pools speak it, without I/O: bytes in, requests out; answers in, bytes out.
//!
//! [`Session`] is one connection. It answers by itself what concerns only the connection (`PING`, `HELLO`, `CLIENT`,
//! `COMMAND`, `SCRIPT` …); everything about pools, and every password, is an [`Event`] for its owner. Answers may come in any
//! order, they leave in the order of the requests.
//!
//! # The older script's calls
//!
//! `EVALSHA <sum> 1 {pool} <event> [number]` is the pool's event if the sum is configured ([`Scripts`]). `{pool}` with or
//! without its braces names the same pool. What such a call returns:
//!
//! | event | what became of it | returns |
//! |---|---|---|
//! | `add`, `del`, `reg`, `unreg`, `hangup` | `Done`: "ok", also "ok, same" | `1` |
//! | the same | `Refused`: "fail" or "error" | `0` |
//! | `call`, with and without a number | `Given` | the number, a bulk string |
//! | the same | `Refused` | nil |
//! | any of them | the appliance is full | an error |
//! | anything else | (never asked) | an error that says what is wrong |
//!
//! The table of the states does not say what the script returned; this is what a script of this kind returns: `1` and `0` for a
//! change, the number or nil for a question.
//!
//! # The plain commands
//!
//! | command | returns |
//! |---|---|
//! | `POOL.ADD pool number [number …] [WEIGHT 1-16]` | how many are in the pool now: all of them, or an error |
//! | `POOL.DEL`, `POOL.REG`, `POOL.UNREG pool number [number …]` | how many it was done with: all of them, or an error |
//! | `POOL.CALL pool [number] [LEASE ms] [HOLDER text] [REASON text] [USER text] [CALLEE text] [TICKET]` | the number; with `TICKET` number and ticket |
//! | `POOL.HANGUP pool number [TICKET n]` | `1` |
//! | `POOL.RENEW pool number ms\|PERSIST [TICKET n]` | `1` |
//! | `POOL.CREATE pool [STRATEGY s] [QUARANTINE ms]` | `OK`; what is not said of a pool that is there stays |
//! | `POOL.REMOVE pool [FORCE]` | `1`, or `0` if there is none |
//! | `POOL.LIST` | names |
//! | `POOL.SHOW pool [number]` | a map, or nil |
//!
//! Whatever was not done is an error with the reason: `NONUMBER` where a `POOL.CALL` found no number, `FAIL` otherwise.
//!
//! # Redis Cluster
//!
//! Client libraries of Redis Cluster find a cluster of one node that has all slots (`CLUSTER SLOTS`, `SHARDS`, `NODES` …): the
//! [`Node`] that the owner named with [`Session::at`].
//!
//! # Transactions
//!
//! What stands between `MULTI` and `EXEC` is kept as it came, and asked at `EXEC` one behind the other, with nothing of this
//! connection in between: an owner that hands on what it finds as one piece has it done as one. `DISCARD` forgets it, and so
//! does a mistake that shows before `EXEC`. There is no `WATCH`.
//!
//! # Bounds
//!
//! A request is at most [`Limits::octets`] long and has at most [`Limits::elements`] elements, at most [`Limits::pipelined`]
//! requests wait for answers, and nothing more is read while [`Limits::unsent`] octets wait to be written. An owner that stops
//! to read when [`Session::wants_bytes`] says no bounds the rest by the size of one read. The requests of a transaction come
//! all at once, also where others wait: its commands are at most [`Limits::pipelined`], of [`Limits::octets`] together, where each word
//! counts 32 octets more than it has.
#![forbid(unsafe_code)]

mod cluster;
mod command;
mod connection;
mod error;
mod gate;
mod inline;
mod options;
mod pool;
mod reply;
mod request;
mod scripts;
mod session;
mod transaction;

pub use cluster::Node;
pub use error::ProtocolError;
pub use options::{Limits, Options};
pub use reply::Reply;
pub use request::{Event, Read, Request, Ticket};
pub use scripts::{Scripts, Sum};
pub use session::Session;
