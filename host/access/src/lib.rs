//! Who may do what: callers of the admin's API, their roles and rights; users, tokens and sessions; and the log of what was
//! done, to which lines are added and in which nothing is ever changed.
//!
//! Nothing here hashes a password or speaks HTTP: hashes come in as texts, and so does the time.
#![forbid(unsafe_code)]

mod access;
mod audit;
mod caller;
mod error;
mod people;
mod secret;
mod session;

pub use access::Access;
pub use audit::{AUDIT_KEPT, AuditEntry, AuditPage, AuditQuery, Deed, Outcome};
pub use caller::{Caller, Right, Role};
pub use error::AccessError;
pub use people::{MadeToken, NewToken, NewUser, User, UserChange};
pub use session::{Opened, Session, Who};
