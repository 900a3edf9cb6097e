//! Number pools, over every interface.

mod command_line;
mod files;
mod foreign;
mod http;
mod journal;
mod model;
mod races;
mod redis;
mod sender;
