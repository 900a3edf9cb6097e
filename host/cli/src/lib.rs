//! The admin's commands. They are clients of the HTTP API and can do nothing that it cannot.
#![forbid(unsafe_code)]

mod output;
mod pool;
mod table;

pub use pool::PoolCommand;
