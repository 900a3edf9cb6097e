//! The Redis protocol (RESP2 and RESP3) for number pools, without I/O: octets in, requests out; replies in, octets out.
//!
//! [`Session`] is one connection. It answers commands that concern only the connection (`PING`, `HELLO`, `CLIENT`,
//! `COMMAND`, `SCRIPT` …). Requests about pools and logins are [`Event`]s for its owner. The owner may answer in any
//! order; replies are sent in the order of the requests.
//!
//! # Legacy script calls
//!
//! `EVALSHA <sha1> 1 {pool} <event> [number]` triggers an event of the pool if the SHA-1 sum is configured
//! ([`Scripts`]). `{pool}` names the same pool with and without its braces. Return values:
//!
//! | event | outcome | returns |
//! |---|---|---|
//! | `add`, `del`, `reg`, `unreg`, `hangup` | `Done`: "ok", also "ok, same" | `1` |
//! | the same | `Refused`: "fail" or "error" | `0` |
//! | `call`, with and without a number | `Acquired` | the number, a bulk string |
//! | the same | `Refused` | nil |
//! | any of them | the pool limit of the appliance is reached | an error |
//! | anything else | (not executed) | an error with a description |
//!
//! The specification of the legacy state machine does not define the script's return values. These are the usual ones
//! of such scripts: `1` and `0` for a change, the number or nil for a query.
//!
//! # Pool commands
//!
//! | command | returns |
//! |---|---|
//! | `POOL.ADD pool number [number …] [WEIGHT 1-16]` | the count if all numbers are in the pool now, or an error |
//! | `POOL.DEL`, `POOL.REG`, `POOL.UNREG pool number [number …]` | the count if it was done for all numbers, or an error |
//! | `POOL.CALL pool [number] [LEASE ms] [HOLDER text] [REASON text] [USER text] [CALLEE text] [TICKET]` | the number; with `TICKET` number and ticket |
//! | `POOL.HANGUP pool number [TICKET n]` | `1` |
//! | `POOL.RENEW pool number ms\|PERSIST [TICKET n]` | `1` |
//! | `POOL.CREATE pool [STRATEGY s] [QUARANTINE ms]` | `OK`; omitted settings of an existing pool are kept |
//! | `POOL.REMOVE pool [FORCE]` | `1`, or `0` if there is no such pool |
//! | `POOL.LIST` | names |
//! | `POOL.SHOW pool [number]` | a map, or nil |
//!
//! A failed operation returns an error with the reason: `NONUMBER` if `POOL.CALL` found no number, `FAIL` otherwise.
//!
//! # Redis Cluster
//!
//! Client libraries of Redis Cluster find a cluster of one node that owns all slots (`CLUSTER SLOTS`, `SHARDS`, `NODES`
//! …): the [`ClusterNode`] set with [`Session::with_node`].
//!
//! # Transactions
//!
//! Commands between `MULTI` and `EXEC` are queued, and become consecutive requests at `EXEC`, without other requests of
//! the connection in between. If the owner passes all available requests on as one batch, the transaction is executed
//! as one. `DISCARD` drops the queue, and so does an error before `EXEC`. `WATCH` is not supported.
//!
//! # Limits
//!
//! A request has at most [`RespLimits::octets`] octets and [`RespLimits::elements`] elements. At most
//! [`RespLimits::pipelined`] requests wait for replies. Nothing is read while [`RespLimits::output_buffer`] octets wait
//! to be written. If the owner stops reading when [`Session::wants_bytes`] returns false, the remaining memory is
//! bounded by the size of one read. A transaction may have [`RespLimits::pipelined`] commands with
//! [`RespLimits::octets`] octets in total, where each word counts 32 octets more than its length; its requests are
//! emitted at once, even if others are pending.
#![forbid(unsafe_code)]

mod client_commands;
mod cluster_node;
mod error;
mod inline;
mod pool_commands;
mod redis_command;
mod request_scanner;
mod resp_options;
mod resp_reply;
mod resp_request;
mod scripts;
mod session;
mod transaction;

pub use cluster_node::ClusterNode;
pub use error::ProtocolError;
pub use resp_options::{RespLimits, RespOptions};
pub use resp_reply::RespReply;
pub use resp_request::{Event, PoolRead, ReplyTicket, RespRequest};
pub use scripts::{ScriptSha1, Scripts};
pub use session::Session;
