//! Client of the admin's API for commands: connection arguments ([`ConnectionArgs`]), requests ([`ApiClient`]), and safe output
//! of answers ([`terminal`]).
#![forbid(unsafe_code)]

mod api_client;
mod contexts;
mod error;
mod private_file;
mod progress;
mod saved_logins;
pub mod terminal;
mod tls_args;

pub use api_client::{ApiClient, ConnectionArgs, encode_segment};
pub use contexts::{ContextSettings, Contexts};
pub use error::ClientError;
pub use progress::Progress;
pub use tls_args::root_certificates;
