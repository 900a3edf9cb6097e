//! Client of the admin's API for commands: connection arguments ([`ConnectionArgs`]), requests ([`ApiClient`]), and safe output
//! of answers ([`terminal`]).
#![forbid(unsafe_code)]

mod api_client;
mod saved_logins;
pub mod terminal;
mod tls_args;

pub use api_client::{ApiClient, ClientError, ConnectionArgs, encode_segment};
pub use tls_args::root_certificates;
