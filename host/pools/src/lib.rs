//! The Redis listener for number pools: serves any client of the Redis protocol, including clients of the legacy system
//! and `redis-cli`.
//!
//! [`RedisServer`] listens. One task per connection (`connection.rs`) moves octets between the socket and a
//! [`resp::Session`]. A request handler (`request_handler.rs`), which does no I/O, converts requests to engine events
//! and the engine's answers to replies. All requests of one read are one batch for the engine; consecutive operations
//! on one pool are one event; answers of one commit are one write. Therefore pipelined requests are cheap.
//!
//! A reply is sent after the change is on disk. A request is completed even if its client has disconnected.
#![forbid(unsafe_code)]

mod accounts;
mod client_socket;
mod connection;
mod counts;
mod leader_connection;
mod redis_options;
mod redis_server;
mod replies;
mod request_handler;
mod server_state;

pub use counts::RedisServerState;
pub use redis_options::{AcceptedScripts, RedisAccountOptions, RedisOptions, RedisPermissions};
pub use redis_server::{RedisListenError, RedisServer, RedisServerError};
