//! Access control of the admin's API: callers with their roles and permissions, users, tokens, sessions, and the append-only
//! audit log.
//!
//! This crate hashes no passwords and contains no HTTP. Password hashes and the time are arguments.
#![forbid(unsafe_code)]

mod access;
mod audit;
mod caller;
mod error;
mod secret;
mod session;
mod user_directory;

pub use access::Access;
pub use audit::{AuditQuery, DEFAULT_AUDIT_RETENTION};
pub use caller::Caller;
pub use error::AccessError;
pub use session::{NewSession, Principal, Session};
pub use user_directory::{NewUser, UserChange};
