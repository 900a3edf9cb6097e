//! What every door of the house needs, whatever protocol it speaks: the way into the core ([`Core`]), the way back
//! ([`Hub`], or [`Desk`] for those that only ask), what wakes those who watch number pools ([`PoolFeed`]), the question where a message goes ([`Routing`]), the way from a text to its
//! octets ([`text`]), and the rules that all of them hold to: passwords ([`Verifier`], [`Guard`]), addresses ([`Network`],
//! [`SourceRules`]), rates ([`Bucket`]).
//!
//! A door is anything through which messages come and go: an SMPP or SGIP link, a business system's HTTP call, a push to
//! its URL. Doors know nothing of queues and nothing of each other.
#![forbid(unsafe_code)]

mod certificates;
mod desk;
mod guard;
mod hub;
mod password;
mod pool_feed;
mod ports;
mod rate;
mod rules;
pub mod text;
mod unread;

pub use certificates::{ServerTls, TlsFileError, authorities, certificates, private_key, provider};
pub use desk::{Desk, NoAnswer};
pub use guard::{Guard, Permit};
pub use hub::{Deliveries, Delivery, Hub, take_leave};
pub use password::{PasswordError, Verifier, check_password_hash, hash_password};
pub use pool_feed::{PoolFeed, PoolNews};
pub use ports::{Core, Routing};
pub use rate::Bucket;
pub use rules::{Network, ParseNetworkError, SourceRules, matches};
pub use unread::Unread;
